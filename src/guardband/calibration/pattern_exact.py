"""Thresholds for groups that overlap in whole numbers, so that nothing is rounded: slow, and for every case.

``overlapping_groups.py`` states the problem, and finds the same thresholds faster wherever rounding cannot matter.

All floats are whole numbers of one small unit, and patterns are whole. Times the determinant of a basis, so are the
thresholds of all patterns and the weights of the basis. A basis whose weights are all within their limits is a
solution. Otherwise a point with such a weight leaves to its side. Thresholds then move on as long as the loss falls,
past points that change sides, and the last one enters (the dual simplex method with long steps).
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Patterns = NDArray[np.bool_]
Whole = NDArray[Any]
"""Whole numbers of any size, as objects."""

NOISE = 62
"""So many binary digits tell equal sums of scores apart: with a step of no length, bases could go in circles."""


def exact_thresholds(
    scores: Array, pattern: Rows, patterns: Patterns, level: Fraction, asked: Patterns, near: Array
) -> Array:
    """Return the threshold of each asked pattern, ``(n,), (n,), (P, r), level, (Q, r), (P,) -> (Q,)``.

    ``pattern`` says which row of ``patterns`` a calibration row has; these have r independent columns. Where the
    thresholds of patterns are ``near``, little is to do. With too few rows, a threshold is infinite.

    >>> scores, halves = np.arange(1.0, 20.0), np.arange(19) % 2
    >>> apart = np.array([[True, False], [False, True]])
    >>> exact_thresholds(scores, halves, apart, Fraction(4, 5), apart, np.zeros(2)).tolist()
    [17.0, 16.0]
    """
    problem = _Problem(scores, pattern, patterns.astype(np.int64), level, near)
    return np.array([problem.threshold(new) for new in asked.astype(int).astype(object)])


@dataclass(frozen=True, eq=False, slots=True)
class _Distance:
    """How far it is to a point, as a quotient: two are compared only if they are equal rounded, which keeps order."""

    length: int
    speed: int
    point: int

    def rounded(self) -> float:
        try:
            return self.length / self.speed
        except OverflowError:
            return math.inf

    def __lt__(self, other: _Distance) -> bool:
        return self.length * other.speed < other.length * self.speed


class _Problem:
    """Points, the different scores of each pattern, rising, and a basis: each solution starts where the last ended.

    Of pattern p, the points from ``start`` to ``low`` are below its threshold, those from ``high`` to ``end`` above it,
    and one that is between is in the basis. ``before`` says how many rows come before a point. ``adjoint`` is the
    inverse of the patterns of the basis, times their determinant, which is positive.
    """

    def __init__(self, scores: Array, pattern: Rows, phi: NDArray[np.int64], level: Fraction, near: Array) -> None:
        order = np.lexsort((scores, pattern))
        own, score = pattern[order], scores[order]
        first = np.flatnonzero(np.r_[True, (own[1:] != own[:-1]) | (score[1:] != score[:-1])])
        self.score, self.owner, self.before = score[first], own[first], np.r_[first, len(order)]
        self.sorted = np.sort(self.score)
        self.start, self.end = (np.searchsorted(self.owner, np.arange(len(phi)), side) for side in ("left", "right"))
        self.rows_of, self.phi = phi, phi.astype(object)
        self.most, self.least = level.numerator, level.numerator - level.denominator
        r = phi.shape[1]
        digits = r * (r + 1).bit_length() + 8
        """No sum of so many minors of patterns as occur has more."""
        self.shift, self.share = NOISE + digits, 1 << digits
        exponents = np.frexp(self.score[np.isfinite(self.score)])[1]
        self.unit: int = 1 << (53 - int(exponents.min(initial=0)))
        self.beyond: int = self.unit << (int(exponents.max(initial=0)) + 2 * digits)
        self.noise = np.random.default_rng(0).integers(1 << NOISE, size=len(first))
        self.wholes: dict[int, int] = {}
        self._begin(near)

    def threshold(self, new: Whole) -> float:
        """Return the threshold of a new row with this pattern."""
        while True:
            weights = self._rest(new) @ self.adjoint
            rows = [self.share * self.det * self._count(i) for i in self.basis]
            each = zip(weights, rows, strict=True)
            beyond = [max(weight - self.most * own, self.least * own - weight) for weight, own in each]
            leaving = max(range(len(beyond)), key=beyond.__getitem__)
            if beyond[leaving] <= 0:
                return self._read(new)
            is_above = weights[leaving] > self.most * rows[leaving]
            if not self._pivoted(leaving, is_above, beyond[leaving]):
                return math.inf

    # ------------------------------------------------------------------------ scores as whole numbers

    def _units(self, i: int) -> int:
        """Return how many units a score is; an infinite one is larger than all sums of finite ones that occur."""
        score = float(self.score[i])
        if math.isinf(score):
            return self.beyond if score > 0 else -self.beyond
        numerator, denominator = score.as_integer_ratio()
        return numerator * (self.unit // denominator)

    def _whole(self, i: int) -> int:
        """Return the same in units so small that what tells equal sums apart changes the order of no others."""
        if i not in self.wholes:
            self.wholes[i] = (self._units(i) << self.shift) + int(self.noise[i])
        return self.wholes[i]

    def _count(self, i: int) -> int:
        """Return how many rows are at a point."""
        return int(self.before[i + 1] - self.before[i])

    # ------------------------------------------------------------------------ bases

    def _begin(self, near: Array) -> None:
        """Take a basis of points that are near the thresholds given."""
        r = self.phi.shape[1]
        self.adjoint, self.det = np.array([[int(i == j) for i in range(r)] for j in range(r)], dtype=object), 1
        self.basis, free = [-1] * r, list(range(r))
        nearest = []
        for threshold, a, b in zip(near, self.start, self.end, strict=True):
            at = int(np.clip(np.searchsorted(self.score[a:b], threshold), 1, max(b - a - 1, 1))) + int(a)
            nearest += [(abs(float(self.score[i]) - float(threshold)), i) for i in (at - 1, at) if i < b]
        for _, i in sorted(nearest):
            row = self.phi[self.owner[i]] @ self.adjoint
            taken = next((j for j in free if row[j]), None)
            if taken is not None:
                self._enter(i, taken)
                free.remove(taken)
        thresholds = self._thresholds()
        each = zip(self.start, self.end, thresholds, strict=True)
        self.low = np.array(
            [bisect_left(range(b), own, lo=int(a), key=lambda i: self.det * self._whole(i)) for a, b, own in each]
        )
        self.high = self.low.copy()
        for i in self.basis:
            self.low[self.owner[i]], self.high[self.owner[i]] = i, i + 1

    def _enter(self, i: int, leaving: int) -> None:
        """Put a point in the place of one of the basis (Edmonds: all divisions leave no rest)."""
        row, column = self.phi[self.owner[i]] @ self.adjoint, self.adjoint[:, leaving].copy()
        self.adjoint = (row[leaving] * self.adjoint - np.outer(column, row)) // self.det
        self.adjoint[:, leaving] = column
        self.det = row[leaving]
        if self.det < 0:
            self.adjoint, self.det = -self.adjoint, -self.det
        self.basis[leaving] = i

    def _thresholds(self) -> Whole:
        """Return the thresholds of all patterns, times the determinant, ``(P,)``."""
        out: Whole = self.phi @ (self.adjoint @ np.array([self._whole(i) for i in self.basis], dtype=object))
        return out

    def _rest(self, new: Whole) -> Whole:
        """Return what the weights of the basis must sum to, times ``share``, ``(r,)``.

        The new row counts a little less: of several solutions, the one with the least threshold is then the only one.
        """
        below = (self.before[self.low] - self.before[self.start]) @ self.rows_of
        above = (self.before[self.end] - self.before[self.high]) @ self.rows_of
        rows = self.least * below.astype(object) + self.most * above.astype(object)
        out: Whole = (1 - self.most * self.share) * new - self.share * rows
        return out

    def _pivoted(self, leaving: int, is_above: bool, beyond: int) -> bool:
        """Let a point of the basis leave to a side, and another one enter; return whether there is one.

        ``beyond`` is how far the weight is beyond its limit. Each point that changes sides makes it less.
        """
        low, high, left = self.low.copy(), self.high.copy(), self.owner[self.basis[leaving]]
        if is_above:  # its threshold falls
            high[left] = low[left]
        else:
            low[left] = high[left]
        moves = self.phi @ (self.adjoint[:, leaving] * (-1 if is_above else 1))
        thresholds = self._thresholds()

        def first(p: int) -> list[tuple[float, _Distance]]:
            """Return how far it is to the first point that the threshold of a pattern meets."""
            i = int(high[p] if moves[p] > 0 else low[p] - 1)
            if not self.start[p] <= i < self.end[p]:
                return []
            own = _Distance(abs(self.det * self._whole(i) - thresholds[p]), abs(moves[p]), i)
            return [(own.rounded(), own)]

        ahead = [own for p in np.flatnonzero(moves) for own in first(int(p))]
        heapify(ahead)
        while ahead:
            i = ahead[0][1].point
            p = int(self.owner[i])
            beyond -= (self.most - self.least) * self.share * self._count(i) * abs(moves[p])
            if beyond <= 0:
                low[p], high[p] = i, i + 1
                self.low, self.high = low, high
                self._enter(i, leaving)
                return True
            low[p] = high[p] = i + 1 if moves[p] > 0 else i
            following = first(p)
            if following:
                heapreplace(ahead, following[0])
            else:
                heappop(ahead)
        return False

    def _read(self, new: Whole) -> float:
        """Return the threshold, not rounded down; one that is a score but for rounding is not below that score."""
        shares = new @ self.adjoint
        own = [(int(share), i) for share, i in zip(shares, self.basis, strict=True) if share]
        if any(math.isinf(self.score[i]) for _, i in own):
            return math.inf
        exact = Fraction(sum(share * self._units(i) for share, i in own), self.det * self.unit)
        try:
            out = float(exact)
        except OverflowError:
            return math.inf
        if Fraction(out) < exact:
            out = math.nextafter(out, math.inf)
        at = int(np.searchsorted(self.sorted, out))
        rounding = sys.float_info.epsilon * sum(abs(share / self.det * float(self.score[i])) for share, i in own)
        if at < len(self.sorted) and self.sorted[at] - out <= rounding:
            return float(self.sorted[at])
        return out
