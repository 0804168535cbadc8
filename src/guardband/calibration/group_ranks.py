"""The k-th smallest score of each of several groups, without sorting the rows of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.ranks import order_statistic
from guardband.calibration.counted import Counted
from guardband.calibration.group_patterns import FEW_PATTERNS, Codes, Occurring, Patterns
from guardband.calibration.summary import Array

MANY_ROWS = 50_000
"""With more rows, those far from the score that is wanted are only counted."""
SAMPLE = 20_000
DEVIATIONS = 6
"""So many standard deviations of a sample's rank to each side are looked at."""


@dataclass(frozen=True, eq=False)
class GroupScores(Counted):
    """The scores of rows ``(n,)`` that belong to groups ``(n, J)``; ``number`` is how many rows a group has, ``(G,)``.

    ``patterns`` is None if there are more than can be told apart. ``rows`` are the patterns of the rows, None if they
    are not needed or cannot be said, and ``members`` which groups each of these has, ``(P, G)``.
    """

    scores: Array
    codes: Codes
    patterns: Patterns | None
    number: NDArray[np.int64]
    rows: Occurring | None
    members: NDArray[np.bool_]

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows, also of those that belong to no group."""
        return len(self.scores)

    @classmethod
    def of(cls, scores: Array, codes: Codes, groups: int) -> GroupScores:
        """Return the scores of groups."""
        patterns = Patterns.of(codes, groups)
        if len(scores) > MANY_ROWS and patterns is not None and patterns.number <= FEW_PATTERNS:
            rows = patterns.occurring(patterns.keys(codes))
            if rows.keys[0] >= 0:
                members = patterns.members(rows.keys)
                return cls(scores, codes, patterns, rows.counts @ members.astype(np.int64), rows, members)
        number = np.zeros(groups, dtype=np.int64)
        for column in codes.T:
            number += np.bincount(column[column >= 0], minlength=groups)
        return cls(scores, codes, patterns, number, None, np.empty((0, groups), dtype=bool))

    def infinite(self) -> NDArray[np.int64]:
        """Return how many scores of each group are infinite, ``(G,)``."""
        rows = np.flatnonzero(self.scores == np.inf)
        own = self.codes[rows]
        return np.bincount(own[own >= 0], minlength=len(self.number))

    def smallest(self, ranks: NDArray[np.int64]) -> Array:
        """Return the k-th smallest scores of each group, infinite where there are fewer, ``(G, L) -> (G, L)``."""
        if self.rows is None:
            return self._each(ranks, self.scores, self.codes, np.zeros_like(self.number))
        low, high = self._between(ranks)
        rest = np.flatnonzero(self.scores >= low)  # mostly fewer than those below
        above = np.bincount(self.rows.of_row.take(rest), minlength=len(self.members))
        below = (self.rows.counts - above) @ self.members.astype(np.int64)
        kept = rest[self.scores.take(rest) <= high]
        out = self._each(ranks, self.scores.take(kept), self.codes.take(kept, axis=0), below)
        wrong = np.isnan(out).any(axis=1)
        if wrong.any():
            every = self._each(ranks, self.scores, self.codes, np.zeros_like(below))
            out[wrong] = every[wrong]
        return out

    def _between(self, ranks: NDArray[np.int64]) -> tuple[float, float]:
        """Return between which scores all that are wanted probably lie, by a sample of the rows."""
        every = slice(None, None, len(self.scores) // SAMPLE)
        scores, codes = self.scores[every], self.codes[every]
        limits = [np.inf, -np.inf]
        for group, rows in rows_of_groups(codes):
            own = np.sort(scores[rows])
            shares = np.minimum(ranks[group] / self.number[group], 1)
            slack = DEVIATIONS * np.sqrt(shares * (1 - shares) * len(own)) + 2
            first = np.floor(shares * len(own) - slack).min()
            last = np.ceil(shares * len(own) + slack).max()
            limits[0] = min(limits[0], own[int(first)] if first >= 0 else -np.inf)
            limits[1] = max(limits[1], own[int(last)] if last < len(own) else np.inf)
        return limits[0], limits[1]

    def _each(self, ranks: Any, scores: Array, codes: Codes, below: NDArray[np.int64]) -> Array:
        """Return the scores among some rows, of which so many are ``below``; nan if the rank is not among them."""
        out = np.full(ranks.shape, np.nan)
        out[ranks > self.number[:, None]] = np.inf
        for group, rows in rows_of_groups(codes):
            own = scores[rows]
            for i, rank in enumerate(ranks[group] - below[group]):
                if ranks[group, i] <= self.number[group] and 1 <= rank <= len(own):
                    out[group, i] = order_statistic(own, int(rank))
        return out


def rows_of_groups(codes: Codes) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Give each group that has rows, and these; a group belongs to one column."""
    if not len(codes):
        return
    for column in codes.T:
        order = np.argsort(column, kind="stable")
        groups, starts = np.unique(column[order], return_index=True)
        for group, rows in zip(groups, np.split(order, starts[1:]), strict=True):
            if group >= 0:
                yield int(group), rows
