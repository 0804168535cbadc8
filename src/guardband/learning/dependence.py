"""Doubts: do the training rows depend on each other, although the promise assumes that they do not?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Levels
from guardband.data.fingerprint import fingerprints
from guardband.data.several_targets import average_of
from guardband.data.table import SomeRows, Table
from guardband.learning.clusters import Clusters, Key, likeliest_keys, look_for_clusters, possible_keys
from guardband.learning.latest import Flattery, look_at_latest
from guardband.learning.learned import Learned
from guardband.learning.order import FEWEST_ROWS, Order, Ordered, look_for_order, possible_orders
from guardband.learning.training_rows import TrainingRows
from guardband.words import level_name, percent

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

FALSE_DOUBTS = 0.005
"""The most that independent rows raise a doubt, over all looks at a table."""
LOSS_TO_MENTION = 0.005
MOST_ERRORS = 20_000
"""So many rows tell whether the networks' errors are alike nearby."""
FEWER = "The guarantee may rest on fewer rows than were counted."


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt that rows are independent: what kind, by which columns, and what it means for new rows.

    ``expected_coverage`` is an estimate of the coverage of rows of new entities, or of later rows.
    """

    kind: Literal["cluster", "order"]
    columns: tuple[str, ...]
    p_value: float
    expected_coverage: float
    sentence: str


@dataclass(frozen=True, eq=False)
class Suspects:
    """Where to look for rows that depend on each other: keys and orders that are possible.

    Rows that are equal are looked at once, at the positions ``once``.
    """

    once: Ints
    keys: Sequence[Key] = ()
    orders: Sequence[Order] = ()

    @classmethod
    def of(cls, table: Table, y: Array, time: Array | None = None) -> Suspects:
        """Return where to look among training rows in the order of the file."""
        once = np.sort(np.unique(fingerprints(table, y), return_index=True)[1])
        table, y = table.take(once), y[once]
        if len(y) < FEWEST_ROWS or np.ptp(y) == 0:
            return cls(once)
        return cls(once, possible_keys(table), possible_orders(table, y, None if time is None else time[once]))

    def doubts(
        self,
        table: Table | SomeRows,
        y: Array,
        errors: Array | None,
        level: float,
        seed: int,
        of_coverage: bool = True,
    ) -> tuple[Doubt, ...]:
        """Return the doubts that these rows raise; none for nearly all independent rows.

        ``errors`` are the signed errors of networks that did not see a row, NaN where there is none. Unless the promise
        is ``of_coverage``, they speak of a mean loss.
        """
        if not self.keys and not self.orders:
            return ()
        rows, y, errors = SomeRows(table, self.once), y[self.once], None if errors is None else errors[self.once]
        if errors is not None and np.isnan(errors).all():
            errors = None
        timed = sum(order.by != "file" for order in self.orders)
        limit = FALSE_DOUBTS / (len(self.keys) + len(self.orders) + timed)
        likeliest = likeliest_keys(list(self.keys), y, errors)
        looked = [look_for_clusters(rows, y, key, level, limit, seed) for key in likeliest]
        clusters, orders = _coarsest([found for found in looked if found is not None]), list(self.orders)
        for own in clusters:
            orders = [_once_each(order, own.key.entities, seed) for order in orders]
        doubts = [_cluster_doubt(own, level, of_coverage) for own in clusters]
        for order in orders:
            ordered = look_for_order(rows, y, errors, order, level, limit, seed)
            flattered = look_at_latest(rows, y, order, level, limit, seed)
            if ordered is not None or flattered is not None:
                doubts.append(_order_doubt(order, ordered, flattered, level, of_coverage))
        return tuple(doubts)


def doubts_of(
    suspects: Suspects,
    rows: TrainingRows,
    learned: Learned,
    table: SomeRows,
    y: Array,
    levels: Levels,
    looked_at: Ints,
    of_coverage: bool,
) -> tuple[Doubt, ...]:
    """Return the doubts that rows which trained networks raise; the suspects are among those ``looked_at``.

    ``table`` and ``y`` hold all of them in the file's order.
    """
    errors = np.full(len(y), np.nan)
    if learned.left_out is not None:
        some = slice(0, MOST_ERRORS)
        predicted, seen = replace(learned, left_out=learned.left_out[some]).predict_left_out(rows.x[some])
        where = rows.kept[seen]
        own_errors = learned.target.to_work(y[where]) - predicted.point[0, 0]
        errors[where] = own_errors if y.ndim == 1 else average_of(own_errors)
    y = y if y.ndim == 1 else average_of(y)
    own = SomeRows(table, looked_at)
    return suspects.doubts(own, y[looked_at], errors[looked_at], levels.floats[0], rows.seed, of_coverage)


def _loses(found: Clusters | Ordered, level: float) -> bool:
    return found.coverage < level - LOSS_TO_MENTION


def _coarsest(found: Sequence[Clusters]) -> list[Clusters]:
    """Return clusters less those that lie within others, as pupils do within schools."""
    kept: list[Clusters] = []
    for own in sorted(found, key=lambda clusters: clusters.key.entities.max()):
        if not any(_lies_within(own.key, other.key) for other in kept):
            kept.append(own)
    return kept


def _lies_within(fine: Key, coarse: Key) -> bool:
    both = (fine.entities >= 0) & (coarse.entities >= 0)
    pairs = np.unique(np.stack([fine.entities[both], coarse.entities[both]]), axis=1)
    return bool(len(np.unique(pairs[0])) == pairs.shape[1])


def _once_each(order: Order, entities: NDArray[np.signedinteger[Any]], seed: int) -> Order:
    """Return an order with one row of each entity, drawn at random, so that only the entities' order is left."""
    at = np.random.default_rng(seed).permutation(len(order.rows))
    own = entities[order.rows[at]]
    first = np.unique(np.where(own < 0, own.max() + 1 + np.arange(len(own)), own), return_index=True)[1]
    kept = np.sort(at[first])
    return Order(order.by, order.column, order.rows[kept], order.times[kept])


def _cluster_doubt(found: Clusters, level: float, of_coverage: bool) -> Doubt:
    name = found.key.name
    words = [f"Rows with the same {name!r} have similar errors."]
    if _loses(found, level):
        words.append(f"For rows of a new {name!r}, expect {_about(found.coverage, level, of_coverage)}.")
    else:
        words.append(FEWER)
    words.append(
        f"If new rows come with a new {name!r}, add --split-by {shlex.quote(name)} (split_by={_quoted(name)})."
    )
    words.append("If they come with those of this table, add --independent-rows (split_by=[]).")
    return Doubt("cluster", (name,), found.p_value, found.coverage, " ".join(words))


def _order_doubt(
    order: Order, found: Ordered | None, flattered: Flattery | None, level: float, of_coverage: bool
) -> Doubt:
    by, name, words = order.by, order.column, []
    if found is not None:
        places = {"time": "near each other in time", "file": "near each other in the file"}
        near = places.get(by, f"with a similar {name!r}")
        words.append(f"Rows {near} have similar errors.")
    if flattered is not None:
        words.append(flattered.in_words("" if name is None else f" by {name!r}"))
    elif found is not None and _loses(found, level):
        words.append(f"For later rows, expect {_about(found.coverage, level, of_coverage)}.")
    else:
        words.append(FEWER)
    if by == "file":
        words.append("If the rows are in order of time, name its column by --time and add --split-by-time")
        words.append("(split_by_time=). If they belong together, name what they belong to by --split-by (split_by=).")
    elif name is None:
        words.append("Add --split-by-time (split_by_time=True).")
    else:
        words.append(f"Add --time {shlex.quote(name)} --split-by-time (split_by_time={_quoted(name)}).")
    coverages = [own.coverage for own in (flattered, found) if own is not None]
    p_values = [own.p_value for own in (flattered, found) if own is not None]
    return Doubt("order", () if name is None else (name,), min(p_values), coverages[0], " ".join(words))


def _about(coverage: float, level: float, of_coverage: bool) -> str:
    if not of_coverage:
        return "a larger mean loss than promised"
    return f"about {percent(coverage, 0)} coverage or less, not {level_name(level)}"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
