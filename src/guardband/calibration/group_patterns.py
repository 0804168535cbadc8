"""Patterns: which groups a row belongs to, as one number, and the thresholds of those that were solved for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Levels
from guardband.calibration.overlapping_groups import pattern_thresholds
from guardband.calibration.summary import Array
from guardband.data.group_sets import MOST_BITS, sets_of
from guardband.data.grouping import NONE

Codes = NDArray[np.integer[Any]]
Keys = NDArray[np.int64]

FIRST = 2
"""Where the first group stands in a table that begins with ``UNKNOWN`` and ``NONE``."""
MOST_PATTERNS = 2**50
ODD = -(2**51)
"""What a group adds to a pattern's number if no calibration row has it: whatever the others add, that is negative."""
FEW_PATTERNS = 2**20
"""So many patterns have an entry each in a table; more are searched for."""
ROWS_AT_A_TIME, MANY_ROWS = 2**14, 2**16
FEW_ROWS = 2**11
"""So many rows mostly show all groups."""


@dataclass(frozen=True, eq=False)
class Occurring:
    """The patterns of rows: those that occur, ``(P,)``, rising, how often, and which of them a row has, ``(n,)``."""

    keys: Keys
    counts: NDArray[np.int64]
    of_row: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Patterns:
    """Which groups rows belong to, as one number: a digit for each column, with as many values as it was seen to have.

    ``digit`` is ``(J, 2 + G)``, -1 for what was not seen; ``place`` is the value of each digit's place, ``(J,)``; and
    ``known`` are the patterns that are known, ``(P,)``, rising.
    """

    digit: Any
    place: Any
    known: Any

    @classmethod
    def of(cls, codes: Codes, groups: int) -> Patterns | None:
        """Return how to number the patterns that calibration rows could have; none of them is known yet.

        None if there could be more than can be told apart.
        """
        digit = np.full((codes.shape[1], FIRST + groups), -1)
        sizes = []
        for j, found in enumerate(_seen(codes, groups)):
            seen = np.union1d(np.flatnonzero(found), [NONE]) + FIRST
            digit[j, seen] = np.arange(len(seen))
            sizes.append(len(seen))
        if math.prod(sizes) > MOST_PATTERNS:
            return None
        place = np.array([math.prod(sizes[:j]) for j in range(len(sizes))], dtype=np.int64)
        return cls(digit, place, np.empty(0, dtype=np.int64))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Patterns:
        """Return the patterns that calibration found."""
        return cls(arrays["digit"], arrays["place"], arrays["pattern"])

    def arrays(self, levels: int) -> dict[str, Array]:
        """Return all that finds patterns again, with the thresholds of none."""
        empty = np.empty((0, levels))
        return {"digit": self.digit, "place": self.place, "pattern": self.known, "threshold": empty}

    @cached_property
    def number(self) -> int:
        """How many patterns there could be."""
        return int(self.place[-1] * (self.digit[-1].max() + 1))

    def keys(self, codes: Any, xp: Any = np) -> Any:
        """Return the pattern of each row as one number, -1 if it has a group that was not seen."""
        if xp is np:
            return self._keys(codes)
        out = xp.zeros_like(codes[:, 0], dtype=xp.int64)
        odd = out < 0
        for j in range(codes.shape[1]):
            digits = self.digit[j][codes[:, j] + FIRST]
            odd = odd | (digits < 0)
            out = out + digits * self.place[j]
        return xp.where(odd, -1, out)

    def _keys(self, codes: Codes) -> Codes:
        """Return the same by numpy, a block of rows at a time, which stays in the cache."""
        if self._has_one_group_each and codes.shape[1] <= MOST_BITS:
            blocks = [codes[first : first + MANY_ROWS] for first in range(0, len(codes), MANY_ROWS)] or [codes]
            if min(block.min(initial=0) for block in blocks) >= NONE:  # so that all digits are 0 or 1
                return np.concatenate([sets_of(block >= 0) for block in blocks])
        out = np.empty(len(codes), dtype=np.int64)
        table = np.where(self.digit < 0, ODD, self.digit * self.place[:, None])
        for first in range(0, len(codes), ROWS_AT_A_TIME):
            block, own = codes[first : first + ROWS_AT_A_TIME], out[first : first + ROWS_AT_A_TIME]
            own[:] = table[0].take(block[:, 0] + FIRST)
            for j in range(1, block.shape[1]):
                own += table[j].take(block[:, j] + FIRST)
            np.maximum(own, -1, out=own)
        return out

    @cached_property
    def _has_one_group_each(self) -> bool:
        """Whether of each column a row can only have its one group or none, as all groups that there are were seen."""
        return bool((self.digit.max(axis=1) == 1).all() and (self.digit[:, FIRST:] >= 0).any(axis=0).all())

    def thresholds(self, table: Any, codes: Any, xp: Any) -> Any:
        """Return the threshold of each row, infinite where its pattern is not known, ``(P, L), (n, J) -> (n, L)``."""
        if not len(self.known):
            return xp.zeros_like(codes[:, :1], dtype=table.dtype) + xp.inf + xp.zeros_like(table[:0].sum(0))
        keys = self.keys(codes, xp)
        if xp is np and self.number <= FEW_PATTERNS:
            every = np.full((self.number + 1, table.shape[1]), np.inf)  # the last is that of -1
            every[self.known] = table
            return every.take(keys, axis=0)
        # a graph has no search, so torch counts
        at = np.searchsorted(self.known, keys) if xp is np else (self.known < keys[:, None]).sum(1)
        at = xp.where(at < len(self.known), at, 0)
        return xp.where((self.known[at] == keys)[:, None], table[at], xp.inf)

    def members(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which groups each pattern has, ``(P,) -> (P, G)``."""
        out = np.zeros((len(keys), self.digit.shape[1] - FIRST), dtype=bool)
        for j, place in enumerate(self.place):
            size = self.digit[j].max() + 1
            column = np.full(size, -1)
            seen = np.flatnonzero(self.digit[j] >= 0)
            column[self.digit[j][seen]] = seen - FIRST
            group = column[(keys // place) % size]
            out[np.flatnonzero(group >= 0), group[group >= 0]] = True
        return out

    def occurring(self, keys: Keys) -> Occurring:
        """Return the patterns that occur; ``keys`` are those of rows, and may be changed."""
        if self.number > FEW_PATTERNS or keys.min(initial=0) < 0:
            every, own, counts = np.unique(keys, return_inverse=True, return_counts=True)
            return Occurring(every, counts, own)
        counts = np.zeros(self.number, dtype=np.intp)
        for first in range(0, len(keys), MANY_ROWS):  # which are copied as large numbers
            counts += np.bincount(keys[first : first + MANY_ROWS], minlength=self.number)
        every = np.flatnonzero(counts)
        if len(every) < self.number:
            place = np.zeros(self.number, dtype=np.intp)
            place[every] = np.arange(len(every))
            for first in range(0, len(keys), ROWS_AT_A_TIME):  # in place: to get memory for so many rows takes longer
                keys[first : first + ROWS_AT_A_TIME] = place.take(keys[first : first + ROWS_AT_A_TIME])
        return Occurring(every, counts[every], keys)

    def add(self, arrays: dict[str, Any], scores: Array, codes: Codes, new: Codes, levels: Levels) -> None:
        """Solve for patterns of new rows that are not known yet, and put them among the others."""
        keys = self.keys(new)
        if len(keys) > self.number:
            keys = self._different(keys)
        asked = np.unique(keys[(keys >= 0) & ~np.isin(keys, self.known)])
        if len(asked):
            self.add_solved(arrays, scores, self.occurring(self.keys(codes)), asked, levels)

    def add_solved(self, arrays: dict[str, Any], scores: Array, rows: Occurring, asked: Keys, levels: Levels) -> None:
        """Solve for patterns, by scores of rows with the patterns ``rows``, and put them among those known."""
        known = np.concatenate([self.known, asked])
        table = np.concatenate([arrays["threshold"], self._solved(scores, rows, asked, levels)])
        order = np.argsort(known)
        arrays["pattern"], arrays["threshold"] = known[order], table[order]

    def _solved(self, scores: Array, rows: Occurring, asked: Keys, levels: Levels) -> Array:
        """Return the thresholds of patterns, ``(Q, L)``; one of no group is infinite."""
        members = self.members(np.maximum(rows.keys, 0)) & (rows.keys >= 0)[:, None]
        new = self.members(asked)
        out = np.full((len(asked), len(levels)), np.inf)
        some = new.any(axis=1)
        for i, level in enumerate(levels.values):
            out[some, i] = pattern_thresholds(scores, rows.of_row, members, Fraction(level), new[some], rows.counts)
        return out

    def _different(self, keys: Keys) -> Keys:
        """Return the patterns that occur, if there are not many that could."""
        seen = np.zeros(self.number + 1, dtype=bool)  # the last is that of -1
        seen[keys] = True
        return np.flatnonzero(seen[:-1])


def different_codes(codes: Codes, groups: int) -> tuple[Codes, Codes]:
    """Return which of several patterns each row has, and the groups of these, ``(n, J) -> (n,), (P, J)``."""
    patterns = Patterns.of(codes, groups)
    if patterns is not None and codes.min(initial=0) >= NONE:
        rows = patterns.occurring(patterns.keys(codes))
        one_each = np.empty(len(rows.keys), dtype=np.intp)
        one_each[rows.of_row] = np.arange(len(codes))
        return rows.of_row, codes[one_each]
    return np.arange(len(codes)), codes


def _seen(codes: Codes, groups: int) -> NDArray[np.bool_]:
    """Return which groups each column has, ``(n, J) -> (J, G)``; rows are read until every group was seen."""
    out = np.zeros((codes.shape[1], groups), dtype=bool)
    for first in range(0, len(codes), FEW_ROWS):
        for own, column in zip(out, codes[first : first + FEW_ROWS].T, strict=True):
            own |= np.bincount(column + FIRST, minlength=FIRST + groups)[FIRST:] > 0
        if out.any(axis=0).all():
            break
    return out
