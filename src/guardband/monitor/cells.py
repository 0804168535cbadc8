"""Columns in a few cells each, in which new rows are counted beside the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.drift import Shift, cells_p_value, fisher_p_value, ks_p_value
from guardband.data.reference import CategorySummary, NumberSummary, Reference, cell_of
from guardband.data.table import Column, Table, categories_from, numbers_from
from guardband.words import number

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

CELLS = 10
"""The cells of a column; one more is for missing values."""
MOST_COLUMNS = 100
COMMON = 20
"""Categories have cells of their own if each has so many training rows.

Rarer ones would be cells that the training rows have chosen. New rows of the same source have other rare categories,
and would seem to differ.
"""


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column: ranges of numbers, categories by name, or categories by a hash of their name.

    ``before`` are the training rows in each cell, ``(CELLS + 1,)``, the last for missing values. ``names`` says what
    the cells are; there is none for a cell that nobody would know again.
    """

    name: str
    kind: str
    edges: tuple[float, ...]
    categories: tuple[str, ...]
    names: tuple[str, ...]
    before: tuple[int, ...]

    @classmethod
    def of(cls, summary: NumberSummary | CategorySummary) -> ColumnCells:
        """Return the cells of a column of the training rows."""
        return _of_categories(summary) if isinstance(summary, CategorySummary) else _of_numbers(summary)

    def codes(self, column: Column) -> NDArray[np.int16]:
        """Return the cell of each row, ``(n,)``."""
        if self.kind != "category":
            values = numbers_from(column, self.kind)  # type: ignore[arg-type]
            found = np.searchsorted(self.edges, values, side="left")
            return np.where(np.isnan(values), CELLS, found).astype(np.int16)
        known: dict[str | None, int] = {own: i for i, own in enumerate(self.categories)}
        known[None] = CELLS
        cells = categories_from(column)
        other = {own: len(self.categories) if self.categories else cell_of(own or "") % CELLS for own in {*cells}}
        return np.array([known.get(own, other[own]) for own in cells], dtype=np.int16)

    def shift(self, now: Counts) -> Shift:
        """Return how far new rows, counted by cell, have moved from the training rows."""
        before = np.array(self.before)
        if not now.sum():
            return Shift(self.name, self.kind, 0.0, 1.0, "no rows")
        shares = now / now.sum() - before / before.sum()
        if self.kind == "category":
            gap = float(np.abs(shares).sum() / 2)
            at = int(np.abs(shares).argmax())
            detail = f"{self.names[at]}: {'more' if shares[at] > 0 else 'fewer'}" if self.names[at] else "other values"
            return Shift(self.name, self.kind, gap, cells_p_value(before, now), detail)
        first, second = before[:CELLS], now[:CELLS]
        p, gap, detail = 1.0, 0.0, "nothing to compare"
        if first.sum() and second.sum():
            difference = np.cumsum(second) / second.sum() - np.cumsum(first) / first.sum()
            largest = float(difference[np.abs(difference).argmax()])
            gap, p = abs(largest), ks_p_value(abs(largest), int(first.sum()), int(second.sum()))
            detail = "lower" if largest > 0 else "higher"
        if before[CELLS] + now[CELLS]:
            p_missing = fisher_p_value(int(before[CELLS]), int(before.sum()), int(now[CELLS]), int(now.sum()))
            if p_missing < p:
                gap, detail = abs(float(shares[CELLS])), f"missing: {'more' if shares[CELLS] > 0 else 'fewer'}"
            p = min(1.0, 2 * min(p, p_missing))
        return Shift(self.name, self.kind, gap, p, detail)

    def to_dict(self) -> dict[str, Any]:
        """Return the cells for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ColumnCells:
        """Return the cells that ``to_dict`` described."""
        own: dict[str, Any] = {name: tuple(own) if isinstance(own, list) else own for name, own in entries.items()}
        return cls(**own)


def cells_of(reference: Reference | None, keys: frozenset[str] = frozenset()) -> tuple[ColumnCells, ...]:
    """Return the cells of the columns of the training rows, but for those that name entities."""
    if reference is None:
        return ()
    every = [ColumnCells.of(own) for own in reference.columns if own.name not in keys]
    return tuple(every[:MOST_COLUMNS])


def codes_of(cells: tuple[ColumnCells, ...], table: Table | None, n: int) -> NDArray[np.int16]:
    """Return the cell of each row in each column, ``(n, C)``; -1 for a column that the table has not."""
    out = np.full((n, len(cells)), -1, dtype=np.int16)
    columns = {} if table is None else {own.name: own for own in table.columns}
    for j, own in enumerate(cells):
        if own.name in columns:
            out[:, j] = own.codes(columns[own.name])
    return out


def _of_numbers(summary: NumberSummary) -> ColumnCells:
    knots, at_most = np.array(summary.knots), np.array(summary.at_most)
    last = max(0, len(knots) - 1)  # up to the last knot lie all values
    chosen: NDArray[np.intp] = np.unique(np.linspace(0, last, CELLS + 1).round().astype(np.intp)[1:-1])
    chosen = chosen[chosen < last]
    edges = knots[chosen]
    counts = np.diff(np.concatenate([[0], at_most[chosen], [summary.count - summary.missing]]))
    before = [*counts.astype(int).tolist(), *[0] * (CELLS - len(counts)), summary.missing]
    names = [_range(edges, j) for j in range(len(counts))] if summary.kind != "date" else [""] * len(counts)
    return ColumnCells(
        summary.name,
        summary.kind,
        tuple(edges.tolist()),
        (),
        (*names, *[""] * (CELLS - len(counts)), "missing"),
        tuple(before),
    )


def _range(edges: Array, j: int) -> str:
    if not len(edges):
        return ""
    if j == 0:
        return f"at most {number(float(edges[0]))}"
    if j == len(edges):
        return f"above {number(float(edges[-1]))}"
    return f"{number(float(edges[j - 1]))} to {number(float(edges[j]))}"


def _of_categories(summary: CategorySummary) -> ColumnCells:
    if not summary.rare and len(summary.categories) < CELLS and min(summary.counts, default=0) >= COMMON:
        own = summary.categories
        empty = CELLS - len(own) - 1
        names = (*own, "other values", *[""] * empty, "missing")
        before = (*summary.counts, *[0] * (empty + 1), summary.missing)
        return ColumnCells(summary.name, "category", (), own, names, before)
    counts = np.zeros(CELLS + 1, dtype=int)
    for category, count in zip(summary.categories, summary.counts, strict=True):
        counts[cell_of(category) % CELLS] += count
    for cell, count in zip(summary.rare_cells, summary.rare_counts, strict=True):
        counts[cell % CELLS] += count
    counts[CELLS] = summary.missing
    return ColumnCells(summary.name, "category", (), (), ("",) * CELLS + ("missing",), tuple(counts.tolist()))
