"""The latest rows: are they covered less often than rows drawn at random, so that a random split flatters?

A small model trains on some of the earlier rows. Others of them, drawn at random, say how wide its intervals must be,
and the latest rows are counted. If rows are independent of their time, both are draws of the same kind. The count then
has the law of an audit, so its p-value is exact, whatever the model learnt from inputs that do not know the time.
Of inputs that tell the latest rows from the others, such as the date, trees learn noise that all the latest rows share,
and these would look different too often. So the difference must also be there without such inputs; with them it must
be, because a date may explain a trend.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from guardband.bands.law import Law
from guardband.bands.ranks import marginal_rank
from guardband.data.table import SomeRows, Table
from guardband.data.times import last_of_earlier
from guardband.learning.order import Order
from guardband.learning.proxy import Inputs, normal_scores
from guardband.words import percent

Array = NDArray[np.float64]

MOST_ROWS = 5000
LATEST = 0.25
"""The share of rows that are the latest: as large as the share that ``fit`` calibrates on."""
AT_RANDOM = 1 / 3
"""The share of the earlier rows that say how wide intervals must be."""
FEWEST_ROWS = 20
"""So many rows must train, say how wide intervals are, and be counted."""
TELLS_TIME = 0.95
"""An input knows the time if it puts so large a share of pairs, of a latest and another row, in one order."""
LEAST_LOSS = 0.02
"""The least difference of coverage that is worth a word."""


@dataclass(frozen=True)
class Flattery:
    """Which share of rows drawn at random set the width of a small model's intervals, and that of the latest inside.

    The p-value is that of so few if time did not matter.
    """

    at_random: float
    coverage: float
    p_value: float

    def in_words(self, by: str) -> str:
        """Return what was found; ``by`` says what the latest rows are the latest by."""
        return (
            f"A random split flatters: intervals of a small model that contain {percent(self.at_random, 0)} of rows "
            f"drawn at random contain {percent(self.coverage, 0)} of the latest rows{by}."
        )


def look_at_latest(
    table: Table | SomeRows, y: Array, order: Order, level: float, limit: float, seed: int
) -> Flattery | None:
    """Return how much a random split flatters, or None if chance may explain it or nothing is known of time."""
    if order.by == "file":
        return None
    found = compare_latest(table, y, order, level, seed)
    if found is None or found.p_value > limit or found.coverage > found.at_random - LEAST_LOSS:
        return None
    return found


def compare_latest(table: Table | SomeRows, y: Array, order: Order, level: float, seed: int) -> Flattery | None:
    """Return what a small model covers, or None if there are too few rows for this level."""
    rng = np.random.default_rng([seed, len(order.rows)])
    some = np.sort(rng.permutation(len(order.rows))[:MOST_ROWS])
    rows, times = order.rows[some], order.times[some]
    last = last_of_earlier(times, round(LATEST * len(rows)))
    if last is None:
        return None
    earlier = rng.permutation(np.flatnonzero(times <= last))
    random, train = np.split(earlier, [round(AT_RANDOM * len(earlier))])
    latest, trains = times > last, np.isin(np.arange(len(rows)), train)
    rank = marginal_rank(Fraction(str(level)), len(random))
    if rank > len(random) or min(len(train), len(random), latest.sum()) < FEWEST_ROWS:
        return None
    here, scores = table.take(rows), normal_scores(y[rows])
    every, count = Inputs.of(here, scores), int(latest.sum())
    timeless = [not _tells_latest(values, latest) for values in every.x.T]
    counts = []
    for inputs in (every,) if all(timeless) else (every, every.only(timeless)):
        errors = np.abs(inputs.errors_of(scores, trains))
        width = np.partition(errors[random], rank - 1)[rank - 1]
        counts.append(int((errors[latest] <= width).sum()))
    law = Law((rank, len(random)))
    return Flattery(rank / len(random), counts[0] / count, max(law.p_value(covered, count) for covered in counts))


def _tells_latest(values: Array, latest: NDArray[np.bool_]) -> bool:
    """Return whether the latest rows have larger values than nearly all others, or smaller ones."""
    from scipy.stats import rankdata

    ranks = rankdata(np.where(np.isnan(values), np.nanmedian(values), values))
    n, m = int(latest.sum()), int((~latest).sum())
    share = (ranks[latest].sum() - n * (n + 1) / 2) / (n * m)
    return bool(max(share, 1 - share) >= TELLS_TIME)
