"""The history of a monitor in a limited number of blocks: when there are too many, neighbours are joined."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.monitor.cells import CELLS

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

BLOCKS = 64
LARGEST_LOG = 700.0
"""The exponential of more would be infinite."""
FIRST_SIZE = 32
"""How many rows a block has at first; it doubles whenever blocks are joined."""


@dataclass(frozen=True, eq=False)
class History:
    """What happened, block by block, ``(BLOCKS,)`` each; a block holds ``size`` rows.

    ``peak`` is the highest logarithm of the evidence within a block, ``last`` that at its end; ``width`` is a sum over
    the rows whose intervals are finite, of which there are ``finite``. ``seen`` and ``lost`` count rows and misses in
    the cells of columns, ``(BLOCKS, C, CELLS + 1)``.
    """

    size: int
    rows: Counts
    misses: Counts
    width: Array
    finite: Counts
    peak: Array
    last: Array
    begin: Array
    end: Array
    seen: Counts
    lost: Counts

    @classmethod
    def empty(cls, columns: int) -> History:
        """Return the history of no rows."""
        zeros, cells = np.zeros(BLOCKS, dtype=np.int64), np.zeros((BLOCKS, columns, CELLS + 1), dtype=np.int64)
        lowest, none = np.full(BLOCKS, -np.inf), np.full(BLOCKS, np.nan)
        return cls(FIRST_SIZE, zeros, zeros, np.zeros(BLOCKS), zeros, lowest, lowest, none, none, cells, cells)

    @property
    def total(self) -> int:
        """How many rows there were."""
        return int(self.rows.sum())

    @property
    def used(self) -> int:
        """How many blocks have rows."""
        return int(np.count_nonzero(self.rows))

    def added(
        self, missed: NDArray[np.bool_], width: Array, log_evidence: Array, time: Array, cells: NDArray[np.int16]
    ) -> History:
        """Return the history with further rows, ``(n,)`` each, and their cells, ``(n, C)``."""
        n = len(missed)
        if not n:
            return self
        first, own = self.total, self
        while (first + n - 1) // own.size >= BLOCKS:
            own = own.joined()
        block = (first + np.arange(n)) // own.size
        finite = np.isfinite(width)
        peak, begin, end = own.peak.copy(), own.begin.copy(), own.end.copy()
        np.maximum.at(peak, block, log_evidence)
        last = own.last.copy()
        last[block] = log_evidence  # of several rows the last one stays
        np.fmin.at(begin, block, time)
        np.fmax.at(end, block, time)
        seen, lost = (_counted(block[rows], cells[rows]) for rows in (slice(None), missed))
        return replace(
            own,
            rows=own.rows + np.bincount(block, minlength=BLOCKS),
            misses=own.misses + np.bincount(block[missed], minlength=BLOCKS),
            width=own.width + np.bincount(block[finite], width[finite], minlength=BLOCKS),
            finite=own.finite + np.bincount(block[finite], minlength=BLOCKS),
            peak=peak,
            last=last,
            begin=begin,
            end=end,
            seen=own.seen + seen,
            lost=own.lost + lost,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the blocks that have rows as columns of a table: see ``Monitor.history``."""
        used = slice(0, self.used)
        rows, finite = self.rows[used], self.finite[used]
        return {
            "row": np.cumsum(rows),
            "rows": rows,
            "share": 1 - self.misses[used] / rows,
            "width": np.divide(self.width[used], finite, out=np.full(len(rows), np.inf), where=finite > 0),
            "evidence": np.exp(np.minimum(self.last[used], LARGEST_LOG)),
            "begin": self.begin[used],
            "end": self.end[used],
        }

    def since(self, row: int) -> tuple[Counts, Counts]:
        """Return rows and misses by column and cell, ``(C, CELLS + 1)`` each, from the block that holds a row on."""
        first = min(row // self.size, BLOCKS - 1)
        return self.seen[first:].sum(axis=0), self.lost[first:].sum(axis=0)

    def block_of(self, row: int) -> int:
        """Return the block that holds a row."""
        return min(row // self.size, BLOCKS - 1)

    def joined(self) -> History:
        """Return the history with half as many blocks."""
        how: dict[str, Any] = {"peak": np.maximum, "begin": np.fmin, "end": np.fmax, "last": _later}
        found = {}
        for own in fields(self)[1:]:
            even, odd = getattr(self, own.name)[::2], getattr(self, own.name)[1::2]
            joined = how.get(own.name, np.add)(even, odd)
            empty = getattr(History.empty(self.seen.shape[1]), own.name)[: BLOCKS // 2]
            found[own.name] = np.concatenate([joined, empty])
        return replace(self, size=2 * self.size, **found)


def _later(first: Array, second: Array) -> Array:
    return np.where(np.isneginf(second), first, second)


def _counted(block: NDArray[np.int64], cells: NDArray[np.int16]) -> Counts:
    """Return how many rows of each block fall into each cell, ``(n,), (n, C) -> (BLOCKS, C, CELLS + 1)``."""
    columns = cells.shape[1]
    place = (block[:, None] * columns + np.arange(columns)) * (CELLS + 1) + cells
    size = BLOCKS * columns * (CELLS + 1)
    return np.bincount(place[cells >= 0], minlength=size).reshape(BLOCKS, columns, CELLS + 1)
