"""The history of a monitor as it is shown: blocks of rows with what was expected of each, and columns by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guardband.bands.law import Law
from guardband.monitor.cells import ColumnCells
from guardband.monitor.finding import when
from guardband.monitor.history import History


@dataclass(frozen=True)
class Block:
    """Rows that followed each other.

    Parameters
    ----------
    first : int
        How many rows came before them.
    rows, inside : int
        How many rows these are, and how many of them fell inside at the first level.
    low, high : int
        The range of ``inside`` if the promise holds; it allows for the number of blocks.
    log_evidence, log_highest : float
        The logarithm of the evidence after the last of them, and its highest value among them.
    width : float
        The mean width of their intervals at the first level, NaN if none is finite.
    begin, end : str
        The first and the last of their times in words, empty if times are not known.
    """

    first: int
    rows: int
    inside: int
    low: int
    high: int
    log_evidence: float
    log_highest: float
    width: float
    begin: str
    end: str

    @property
    def is_low(self) -> bool:
        """Whether fewer rows fell inside than chance explains."""
        return self.inside < self.low


@dataclass(frozen=True)
class ColumnHistory:
    """How far a column was from the training rows in each block, from 0 to 1, and in which beyond chance."""

    name: str
    gaps: tuple[float, ...]
    moved: tuple[bool, ...]


MOST_SHOWN = 32
"""More blocks are joined: with fewer rows each, the expected ranges say little."""


def shown(history: History) -> History:
    """Return a history in as many blocks as a picture has room for."""
    return history if history.used <= MOST_SHOWN else shown(history.joined())


def blocks_of(history: History, law: Law, significance: float, time_is: str) -> tuple[Block, ...]:
    """Return the blocks that have rows; ``law`` is that of how many rows of a block fall inside."""
    used, out = history.used, []
    for i in range(used):
        n, finite = int(history.rows[i]), int(history.finite[i])
        out.append(
            Block(
                i * history.size,
                n,
                n - int(history.misses[i]),
                *law.band(n, significance / 2 / used),
                float(history.last[i]),
                float(history.peak[i]),
                float(history.width[i]) / finite if finite else float("nan"),
                when(float(history.begin[i]), time_is),
                when(float(history.end[i]), time_is),
            )
        )
    return tuple(out)


def columns_of(history: History, columns: tuple[ColumnCells, ...], significance: float) -> tuple[ColumnHistory, ...]:
    """Return the columns block by block; a block is beyond chance by a test that allows for all blocks and columns."""
    limit = significance / max(1, history.used * len(columns))
    out = []
    for j, column in enumerate(columns):
        shifts = [column.shift(history.seen[i, j]) for i in range(history.used)]
        out.append(
            ColumnHistory(column.name, tuple(own.gap for own in shifts), tuple(own.p_value < limit for own in shifts))
        )
    return tuple(sorted(out, key=lambda own: (-sum(own.moved), -float(np.mean(own.gaps or [0.0])))))
