"""Thresholds for groups that overlap, each by a linear program of its own: slow, and for every case.

``overlapping_groups.py`` states the problem, and finds the same thresholds faster wherever its pivots end.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Patterns = NDArray[np.bool_]

NEIGHBOURS = 8
"""So many scores on each side of a guess enter a problem first, and twice as many whenever they were too few."""
MOST_POINTS = 1_000
"""With more scores, a first guess comes from so many of them."""
TIE = 1e-6
"""By so much the new row counts less: of several solutions, the one with the least threshold is then the only one."""


ROUNDING = 1e-9
"""How far a solution may be from exact, relative to the largest score."""


def programmed_thresholds(
    scores: Array, pattern: NDArray[np.intp], patterns: Patterns, level: Fraction, asked: Patterns
) -> Array:
    """Return the threshold of each asked pattern, ``(n,), (n,), (P, G), level, (Q, G) -> (Q,)``.

    ``pattern`` says which row of ``patterns`` a calibration row has. With too few rows, a threshold is infinite.

    >>> scores, halves = np.arange(1.0, 20.0), np.arange(19) % 2
    >>> apart = np.array([[True, False], [False, True]])
    >>> programmed_thresholds(scores, halves, apart, Fraction(4, 5), apart).tolist()
    [17.0, 16.0]
    """
    order = np.lexsort((scores, pattern))
    lots = np.split(scores[order], np.searchsorted(pattern[order], np.arange(1, len(patterns))))
    problem = _Problems(lots, patterns.astype(float), level)
    return np.array([problem.threshold(new) for new in asked.astype(float)])


class _Problems:
    """The sorted scores of each pattern; problems differ in the new row alone, so each starts where the last ended."""

    def __init__(self, lots: list[Array], phi: Array, level: Fraction) -> None:
        self.lots, self.phi = lots, phi
        # Weights are multiplied by the level's denominator: the equations then hold between whole numbers.
        self.most, self.least = level.numerator, level.numerator - level.denominator
        self.finite = [int(np.searchsorted(lot, np.inf)) for lot in lots]
        ends = zip(lots, self.finite, strict=True)
        self.scale = max((float(np.abs(lot[:end]).max(initial=0)) for lot, end in ends), default=0.0) or 1.0
        self.windows = [(0, end) for end in self.finite]
        stride = max(1, sum(self.finite) // MOST_POINTS)
        while stride > 1:  # from afar first: a point stands for a run of scores
            self._move(self._solved(np.zeros(phi.shape[1]), stride), NEIGHBOURS * stride)
            stride //= NEIGHBOURS

    def threshold(self, new: Array) -> float:
        """Return the threshold of a new row with this pattern."""
        reach = NEIGHBOURS
        while True:
            solved = self._solved(new, 1)
            if solved is not None and self._holds(solved[1]):
                self._move(solved, NEIGHBOURS)
                return solved[0]
            if solved is None and self.windows == [(0, end) for end in self.finite]:
                return float(np.inf)
            reach *= 2
            self._move(solved, reach)

    def _move(self, solved: tuple[float, Array] | None, reach: int) -> None:
        """Move the windows to where the thresholds of the patterns are, or widen them."""
        if solved is None:
            self.windows = [
                (max(a - reach, 0), min(b + reach, end)) for (a, b), end in zip(self.windows, self.finite, strict=True)
            ]
        else:
            places = [np.searchsorted(lot, own) for lot, own in zip(self.lots, solved[1], strict=True)]
            self.windows = [
                (max(int(place) - reach, 0), min(int(place) + reach, end))
                for place, end in zip(places, self.finite, strict=True)
            ]

    def _solved(self, new: Array, stride: int) -> tuple[float, Array] | None:
        """Return the threshold of the new row and those of the patterns, ``(P,)``; None if no weights are a solution.

        Scores below a window have the least weight, those above it the largest. One score stands for ``stride``.
        """
        from scipy.optimize import linprog

        runs = [np.arange(a, b, stride) for a, b in self.windows]
        inner = [
            lot[np.minimum(run + stride // 2, b - 1)]
            for lot, run, (_, b) in zip(self.lots, runs, self.windows, strict=True)
        ]
        count = np.concatenate([np.minimum(stride, b - run) for run, (_, b) in zip(runs, self.windows, strict=True)])
        points, owner = np.concatenate(inner), np.repeat(np.arange(len(inner)), [len(own) for own in inner])
        if not len(points):
            return None
        below = np.array([a for a, _ in self.windows])
        above = np.array([len(lot) - b for lot, (_, b) in zip(self.lots, self.windows, strict=True)])
        phi = self.phi[owner]
        answer = linprog(
            -points / self.scale,
            A_eq=phi.T,
            b_eq=-(self.least * below + self.most * above) @ self.phi - (self.most - TIE) * new,
            bounds=np.stack([self.least * count, self.most * count], axis=1),
            method="highs-ds",
        )
        if answer.status != 0:
            return None
        multipliers = -self.scale * answer.eqlin.marginals
        of_lots = self.phi @ multipliers
        threshold = float(new @ multipliers)
        # A threshold that is a score, but for rounding, is that score: the row that it belongs to is inside.
        near = points[np.abs(points - threshold).argmin()]
        return float(near if abs(near - threshold) <= ROUNDING * self.scale else threshold), of_lots

    def _holds(self, of_lots: Array) -> bool:
        """Return whether scores outside of the windows lie on the side that their weights say."""
        each = zip(self.lots, of_lots, self.windows, strict=True)
        return all((a == 0 or lot[a - 1] <= own) and (b == len(lot) or own <= lot[b]) for lot, own, (a, b) in each)
