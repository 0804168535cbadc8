"""Order statistics of values that never meet: cells of an interval are counted, then those of the cell that is sought.

A finite float64 has a whole number, its key, that is ordered as the floats are. An interval of keys that holds some
ranks is divided into cells, and the rows of each cell are counted. That narrows it to a cell for each rank, in which
few values are left after a few passes; these are then kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

CELLS, FEWEST_CELLS = 2048, 16
"""Cells of all intervals of one search in a pass, and the fewest of each: what a worker tells stays below 64 KB."""
KEPT = 512
"""An interval with at most so many values gives them all."""
SIGN, LARGEST = np.uint64(1 << 63), np.uint64(2**64 - 1)


def keys_of(values: Array) -> Keys:
    """Return the keys of values that are not NaN; both zeros have the same."""
    bits = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)


def values_of(keys: Keys) -> Array:
    """Return the values of keys."""
    return np.where(keys >= SIGN, keys ^ SIGN, ~keys).view(np.float64)


@dataclass(frozen=True, eq=False)
class Interval:
    """Keys from ``first`` to ``last``, of which there are ``count``, ``before`` of them that many smaller ones.

    ``ranks`` are those that lie in it, of all values. ``kept`` are its keys in order, once they are known.
    """

    first: int
    last: int
    before: int
    count: int
    ranks: tuple[int, ...]
    cells: int = CELLS
    kept: Keys | None = None

    @classmethod
    def all(cls, ranks: Sequence[int], first: int, last: int, count: int) -> list[Interval]:
        """Return the interval of all values."""
        return [cls(first, last, 0, count, tuple(sorted(set(ranks))))]

    def is_open(self, few: float) -> bool:
        """Whether its values are still unknown, and more than ``few``."""
        return self.kept is None and self.first < self.last and self.count > few

    @property
    def gives_all(self) -> bool:
        """Whether its values are few enough to be kept."""
        return self.count <= KEPT

    def edges(self) -> Keys:
        """Return the last key of each cell."""
        width = -(-(self.last - self.first + 1) // self.cells)
        # No key of a finite number is so large that this overflows.
        ends = np.uint64(self.first - 1) + np.uint64(width) * np.arange(1, self.cells + 1, dtype=np.uint64)
        edges: Keys = np.minimum(ends, np.uint64(self.last))
        return edges

    def values(self) -> dict[int, float]:
        """Return the value of each rank, or the least that its interval can hold if that was not narrowed further."""
        if self.kept is None:
            return dict.fromkeys(self.ranks, float(values_of(np.array([self.first], dtype=np.uint64))[0]))
        known = values_of(self.kept)
        return {rank: float(known[rank - self.before]) for rank in self.ranks}


@dataclass(frozen=True, eq=False)
class Cells:
    """How many values lie in each cell of an interval, and the first and the last key there."""

    counts: NDArray[np.int64]
    first: Keys
    last: Keys

    @classmethod
    def of(cls, keys: Keys, own: Interval) -> Cells:
        """Return it for keys in order."""
        start = int(np.searchsorted(keys, np.uint64(own.first)))
        ends = start + np.searchsorted(keys[start:], own.edges(), side="right")
        counts = np.diff(ends, prepend=start)
        some = np.flatnonzero(counts)
        first, last = np.full(len(ends), LARGEST), np.zeros(len(ends), dtype=np.uint64)
        first[some], last[some] = keys[ends[some] - counts[some]], keys[ends[some] - 1]
        return cls(counts.astype(np.int64), first, last)

    def __add__(self, other: Cells) -> Cells:
        first, last = np.minimum(self.first, other.first), np.maximum(self.last, other.last)
        return Cells(self.counts + other.counts, first, last)


@dataclass(frozen=True, eq=False)
class Places:
    """For each interval what lies in its cells, or all its keys."""

    each: tuple[Cells | Keys, ...]

    @classmethod
    def of(cls, keys: Keys, intervals: Sequence[Interval]) -> Places:
        """Return it for some values."""
        keys = np.sort(keys)
        return cls(tuple(_inside(keys, own) if own.gives_all else Cells.of(keys, own) for own in intervals))

    def __add__(self, other: Places) -> Places:
        return Places(tuple(_added(one, more) for one, more in zip(self.each, other.each, strict=True)))


def _inside(keys: Keys, own: Interval) -> Keys:
    return keys[np.searchsorted(keys, np.uint64(own.first)) : np.searchsorted(keys, np.uint64(own.last), side="right")]


def _added(one: Cells | Keys, other: Any) -> Cells | Keys:
    return one + other if isinstance(one, Cells) else np.concatenate([one, other])


def narrowed(intervals: Sequence[Interval], places: Places) -> list[Interval]:
    """Return the intervals that hold the same ranks, each a cell of one, or with its keys."""
    found: list[Interval] = []
    for own, known in zip(intervals, places.each, strict=True):
        if not isinstance(known, Cells):
            found.append(replace(own, kept=np.sort(known)))
            continue
        up_to = own.before + np.cumsum(known.counts)
        where = np.searchsorted(up_to, own.ranks, side="right")
        for cell in np.unique(where).tolist():
            count = int(known.counts[cell])
            ranks = tuple(rank for rank, at in zip(own.ranks, where, strict=True) if at == cell)
            ends = int(known.first[cell]), int(known.last[cell])
            found.append(Interval(*ends, int(up_to[cell]) - count, count, ranks))
    cells = max(FEWEST_CELLS, CELLS // max(1, len(found)))
    return [replace(own, cells=cells) for own in found]


# --------------------------------------------------------------------------------------------- quantiles


def ranks_around(share: float, n: int) -> tuple[int, int]:
    """Return the ranks of the two of n values between which a quantile lies, as numpy does."""
    low = int(np.floor(share * (n - 1)))
    return low, min(low + 1, n - 1)


def between(low: float, high: float, share: float, n: int) -> float:
    """Return the quantile of n values from those at ``ranks_around``, to the last bit as numpy's linear one."""
    place = share * (n - 1)
    part, gap = place - np.floor(place), np.float64(high) - low
    return float(low + gap * part if part < 0.5 else high - gap * (1 - part))


def middle_ranks(n: int) -> tuple[int, int]:
    """Return the ranks of the two of n values whose mean is the median: one of them, twice, if n is odd."""
    return (n - 1) // 2, n // 2
