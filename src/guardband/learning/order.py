"""Order: rows near each other, in the file or by a date, with similar errors, as rows in time have.

A file that is sorted by an input has similar neighbours, too. So the order of such a file is not looked at, unless that
input merely counts the rows. In other files neighbours must be more alike than rows elsewhere whose inputs are as
similar.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import SomeRows, Table, numbers_from
from guardband.learning.likeness import centred_ranks, p_value
from guardband.learning.precision import counts_rows
from guardband.learning.proxy import Inputs, normal_scores

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

FEWEST_ROWS = 100
MOST_ROWS, STRETCHES = 5000, 5
LAGS = 3
LEAST_LIKENESS = 0.1
FOLDS, BLOCKS = 3, 5
GAP = 0.02
"""The share of the rows next to a block that do not train what predicts it."""
SORTED, SORTED_BY_INPUT = 0.9, 0.95
FINE = 0.2
"""An input of fewer values, as a share of the rows, is too coarse to have sorted the file: a year, for example."""
ELSEWHERE = 0.05
"""Rows are elsewhere if so large a share of all rows lies between."""
MOST_COMPARED, ROWS_AT_ONCE = 2000, 250
FEWEST_MATCHED = 0.05
CLEARLY = 3.0
"""Standard errors by which neighbours must be more alike than rows elsewhere with similar inputs."""


@dataclass(frozen=True)
class Order:
    """An order to look at: by what it is, the column if that is a date, ``rows`` in it, and ``times`` of these."""

    by: Literal["time", "date", "file"]
    column: str | None
    rows: Ints
    times: Array


@dataclass(frozen=True)
class Ordered:
    """What was found of an order: the p-value, the likeness of neighbours and the coverage of later rows to expect."""

    order: Order
    p_value: float
    likeness: float
    coverage: float


def possible_orders(table: Table, y: Array, time: Array | None) -> list[Order]:
    """Return the orders by ``time``, by each date and that of the file, each once.

    A file that is sorted by its target or by an input has no other order.
    """
    found: dict[bytes, Order] = {}

    def add(by: Literal["time", "date", "file"], column: str | None, values: Array) -> None:
        known = np.flatnonzero(~np.isnan(values))
        rows = known[np.argsort(values[known], kind="stable")]
        if len(rows) >= FEWEST_ROWS and values[rows[0]] < values[rows[-1]]:
            found.setdefault(rows.tobytes(), Order(by, column, rows, values[rows]))

    if time is not None:
        add("time", None, time)
    for column in table.columns:
        if column.kind == "date":
            add("date", column.name, numbers_from(column, "date"))
    if not (_is_sorted(y) or _is_sorted_by_an_input(table)):
        add("file", None, np.arange(table.n_rows, dtype=float))
    return list(found.values())


def look_for_order(
    table: Table | SomeRows, y: Array, errors: Array | None, order: Order, level: float, limit: float, seed: int
) -> Ordered | None:
    """Return what an order tells of the errors, or None if neighbours may as well be independent.

    In the order of the file the networks' errors are looked at. By a date they would hide what lasts for long, since
    they know the date: there a proxy that knows only what recurs predicts each stretch of time from the others.
    """
    rng = np.random.default_rng([seed, len(table.names)])
    rows = order.rows
    if order.by == "file" and errors is not None:
        rows = rows[~np.isnan(errors[rows])]
    rows = _stretches(rows)
    if len(rows) < FEWEST_ROWS:
        return None
    here, scores = table.take(rows), normal_scores(y[rows])
    blocks = np.arange(len(rows)) * BLOCKS // len(rows)
    if order.by == "file" and errors is not None:
        parts, found = np.zeros_like(blocks), errors[rows]
    elif order.by == "file":
        parts = rng.permutation(len(rows)) % FOLDS
        found = Inputs.of(here, scores).errors(scores, parts)
    else:
        parts = blocks
        found = Inputs.of(here, scores, days=False).errors(scores, parts)
    ranks = centred_ranks(found, parts)
    likeness = float(_nearby(ranks[None])[0]) / (LAGS * max(float((ranks**2).sum()), 1e-12))
    if likeness < LEAST_LIKENESS:
        return None
    p = p_value(_nearby, ranks, _blocks_of(parts, order), limit, rng)
    if p > limit or (order.by == "file" and not _exceeds_similar_inputs(ranks, _places(here, scores), rng)):
        return None
    inputs = Inputs.of(here, scores)
    seen = np.abs(inputs.errors(scores, rng.permutation(len(rows)) % BLOCKS))
    later = np.abs(inputs.errors(scores, blocks, gap=max(LAGS, round(GAP * len(rows)))))
    return Ordered(order, p, likeness, float((later <= np.quantile(seen, level, method="higher")).mean()))


def _blocks_of(parts: Ints, order: Order) -> list[tuple[int, int, int]]:
    """Return where rows may be exchanged: within each block of time, or everywhere if the folds are random."""
    if order.by == "file":
        return [(0, 1, len(parts))]
    counts = np.bincount(parts)
    return [(int(start), 1, int(count)) for start, count in zip(np.cumsum(counts) - counts, counts, strict=True)]


def _nearby(ranks: Array) -> Array:
    """Return for ``(times, n)`` ranks the sum of products of rows at most a few places apart."""
    return np.asarray(sum(np.einsum("tn,tn->t", ranks[:, lag:], ranks[:, :-lag]) for lag in range(1, LAGS + 1)))


def _exceeds_similar_inputs(ranks: Array, places: Array, rng: np.random.Generator) -> bool:
    """Return whether neighbours are clearly more alike than rows elsewhere whose inputs are as similar.

    A row's neighbour is compared with the row elsewhere that is at most as far in the inputs, and least closer.
    """
    n = len(ranks)
    looked_at = np.sort(rng.permutation(n - 1)[:MOST_COMPARED])
    squares, twins, matched = (places**2).sum(axis=1), [], []
    for here in np.array_split(looked_at, -(-len(looked_at) // ROWS_AT_ONCE)):
        distances = squares[here, None] + squares - 2 * places[here] @ places.T
        near = distances[np.arange(len(here)), here + 1]
        fits = (distances <= near[:, None] + 1e-9) & (np.abs(here[:, None] - np.arange(n)) > ELSEWHERE * n)
        twins.append(np.where(fits, distances, -np.inf).argmax(axis=1))
        matched.append(fits.any(axis=1))
    own, twin = looked_at[np.concatenate(matched)], np.concatenate(twins)[np.concatenate(matched)]
    if len(own) < FEWEST_MATCHED * len(looked_at):
        return False
    surplus = np.mean(ranks[own] * (ranks[own + 1] - ranks[twin])) / np.mean(ranks**2)
    return bool(surplus > max(LEAST_LIKENESS, CLEARLY * np.sqrt(2 / len(own))))


def _places(table: Table, y: Array) -> Array:
    """Return inputs as places in space: numbers by rank, from 0 to 1, and categories by whether they are equal."""
    from scipy.stats import rankdata

    inputs = Inputs.of(table, y)
    columns = [np.zeros(table.n_rows)]
    for values, is_category in zip(inputs.x.T, inputs.is_category, strict=True):
        if is_category:
            columns += [(values == level) / np.sqrt(2) for level in np.unique(values[~np.isnan(values)])[:20]]
        else:
            columns.append(rankdata(np.where(np.isnan(values), np.nanmedian(values), values)) / table.n_rows)
    return np.stack(columns, axis=1)


def _stretches(rows: Ints) -> Ints:
    """Return all rows, or of many a few long stretches that lie evenly."""
    if len(rows) <= MOST_ROWS:
        return rows
    length = MOST_ROWS // STRETCHES
    starts = np.linspace(0, len(rows) - length, STRETCHES).astype(np.intp)
    return np.concatenate([rows[start : start + length] for start in starts])


def _is_sorted(y: Array) -> bool:
    steps = np.diff(y)
    rising, falling = int((steps > 0).sum()), int((steps < 0).sum())
    return max(rising, falling) >= SORTED * max(rising + falling, 1)


def _is_sorted_by_an_input(table: Table) -> bool:
    numbers = (numbers_from(column) for column in table.columns if column.kind == "number")
    return any(_follows_the_rows(values) and not counts_rows(values) for values in numbers)


def _follows_the_rows(values: Array) -> bool:
    from scipy.stats import rankdata

    known = values[~np.isnan(values)]
    if len(known) < FEWEST_ROWS or len(np.unique(known)) < FINE * len(known):
        return False
    return bool(abs(np.corrcoef(rankdata(known), np.arange(len(known)))[0, 1]) > SORTED_BY_INPUT)
