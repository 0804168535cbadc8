"""Targets that are far beyond all others, such as a forgotten comma or a code for "unknown"."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.order_statistics import middle_ranks
from guardband.data.questions import AskLargest, AskRanks, AskSpread, View
from guardband.data.row_numbers import Rows, known_as
from guardband.data.table import Column
from guardband.data.transforms import instead
from guardband.exceptions import TargetWarning, warn
from guardband.words import number

LARGEST_SHARE = 0.01
"""At most this share of rows can be absurd: more of them belong to the target."""
LEAST_RATIO = 10.0
"""An absurd value is at least so many times as far from the median as any other."""
CHANCE = 1e-3
"""How likely a gap as wide would be in a tail as heavy as the others show."""
FEWEST_OTHERS, OTHERS = 10, 20
SHOWN = 5


def absurd(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are few and far beyond all others, ``(n,)``; a heavy tail is none of that.

    Let d_1 >= d_2 >= ... be distances from the median. In a tail that falls like a power, the spacings
    i (log d_i - log d_(i+1)) are independent exponentials with one mean (Rényi). So a spacing in units of the mean of
    the m next ones exceeds t with probability (1 + t / m)^-m, whatever the power; lighter tails exceed it less often.
    """
    median, least = answered(asks_absurd(), Column("", values))
    distances: NDArray[np.float64] = np.abs(values / 2 - median)
    return distances >= least


def asks_absurd() -> Asking[tuple[float, float]]:
    """Learn half of the median, and from which distance of halves on values are absurd: infinity if none is."""
    spread = yield AskSpread()
    n = spread.values
    median = float(np.mean((yield AskRanks(middle_ranks(n), spread)) / 2))  # halves, whose differences never overflow
    most, others = math.ceil(LARGEST_SHARE * n), max(OTHERS, math.isqrt(n))
    top = yield AskLargest(most + others + 1, View(origin=median, halved=True))
    logs = np.log(top[top > 0])
    gaps = logs[:-1] - logs[1:]
    spacings = np.arange(1, len(logs)) * gaps
    found = 0
    for i in np.flatnonzero(gaps[:most] >= math.log(LEAST_RATIO)):
        next_ones = spacings[i + 1 : i + 1 + others]
        m, total = len(next_ones), float(next_ones.sum())
        if m >= FEWEST_OTHERS and (total == 0 or (1 + spacings[i] / total) ** -m < CHANCE):
            found = int(i) + 1
    return median, float(top[found - 1]) if found else math.inf


def warn_of_absurd(y: NDArray[np.float64], wrong: Rows, rows: Rows, trains: bool = True) -> None:
    """Warn of the absurd ones among targets that train, or calibrate; ``rows`` are positions in the user's table."""
    if len(wrong) == 0:
        return
    shown = zip(wrong[:SHOWN], known_as(rows[wrong]), strict=False)
    values = ", ".join(f"{number(y[i])} in row {row}" for i, row in shown)
    more = f" and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
    them, they_are, rows_are = ("it", "it is", "row") if len(wrong) == 1 else ("them", "they are", "rows")
    kind = "training" if trains else "calibration"
    done = f"guardband does not train on {them}, and intervals" if trains else "Intervals"
    warn(
        f"{len(wrong):,} of {len(y):,} {kind} targets {they_are.split()[1]} far beyond all others: {values}{more}. "
        f"{done} will rarely contain such values. "
        f"If {they_are} wrong, correct or remove the {rows_are}. "
        f'If {they_are} right, use the transform "{instead(y)}".',
        TargetWarning,
    )
