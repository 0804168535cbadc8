"""Whether the inputs have changed: columns of new rows beside those of the training rows, at looks fixed beforehand.

Columns are compared whenever the number of rows has doubled, each time by the rows since the last comparison. Look j of
C columns has the share 1 / ((j + 1) (j + 2) C) of the significance, so that all looks together have all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from guardband.audit.drift import Shift
from guardband.monitor.cells import CELLS, ColumnCells

Counts = NDArray[np.int64]

FIRST_LOOK = 128
FEWEST = 20
"""A cell with fewer rows is not looked at by itself."""
MOST_NAMED = 3


@dataclass(frozen=True)
class MovedColumn:
    """A column that has moved beyond chance: how far, how, and how many rows there were when it was seen first."""

    name: str
    gap: float
    p_value: float
    detail: str
    row: int


@dataclass(frozen=True, eq=False)
class Inputs:
    """What is kept to compare columns: rows by cell since the last look, ``(C, CELLS + 1)``, and what was found."""

    counts: Counts
    look: int = 0
    moved: tuple[MovedColumn, ...] = ()

    @classmethod
    def empty(cls, columns: int) -> Inputs:
        """Return what is known before the first row."""
        return cls(np.zeros((columns, CELLS + 1), dtype=np.int64))

    @property
    def next_look(self) -> int:
        """After how many rows columns are compared again."""
        return FIRST_LOOK << self.look

    def added(
        self, codes: NDArray[np.int16], rows: int, columns: tuple[ColumnCells, ...], significance: float
    ) -> Inputs:
        """Return the same with further rows, ``(n, C)``: ``rows`` in all, at most as many as at the next look."""
        own = [np.bincount(column[column >= 0], minlength=CELLS + 1) for column in codes.T]
        counts = self.counts + np.array(own, dtype=np.int64).reshape(self.counts.shape)
        if rows < self.next_look:
            return replace(self, counts=counts)
        limit = significance / ((self.look + 1) * (self.look + 2) * max(1, len(columns)))
        known = {own.name for own in self.moved}
        shifts = [column.shift(own) for column, own in zip(columns, counts, strict=True)]
        found = [_moved(own, rows) for own in shifts if own.p_value < limit and own.name not in known]
        return Inputs(np.zeros_like(counts), self.look + 1, self.moved + tuple(found))


def moved_since(
    seen: Counts, columns: tuple[ColumnCells, ...], significance: float, row: int
) -> tuple[MovedColumn, ...]:
    """Return the columns whose rows since a change, counted by cell, are unlike the training rows."""
    shifts = [column.shift(own) for column, own in zip(columns, seen, strict=True)]
    found = [_moved(own, row) for own in shifts if own.p_value < significance / max(1, len(columns))]
    return tuple(sorted(found, key=lambda own: -own.gap))


@dataclass(frozen=True)
class LowCell:
    """Rows of one column's cell that are missed more often than others."""

    column: str
    name: str
    rows: int
    misses: int


def low_cells(seen: Counts, lost: Counts, columns: tuple[ColumnCells, ...], significance: float) -> tuple[LowCell, ...]:
    """Return the cells that are missed more often than all rows together, beyond chance, the worst first."""
    found = []
    for column, rows, misses in zip(columns, seen, lost, strict=True):
        usual = misses.sum() / max(1, rows.sum())
        for name, n, m in zip(column.names, rows, misses, strict=True):
            if name and n >= FEWEST and m > usual * n:
                p = float(betainc(m, n - m + 1, usual))
                if p * len(columns) * (CELLS + 1) < significance:
                    found.append((p, LowCell(column.name, name, int(n), int(m))))
    return tuple(own for _, own in sorted(found, key=lambda pair: pair[0])[:MOST_NAMED])


def _moved(shift: Shift, row: int) -> MovedColumn:
    return MovedColumn(shift.name, shift.gap, shift.p_value, shift.detail, row)
