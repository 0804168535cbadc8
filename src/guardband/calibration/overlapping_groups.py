"""Thresholds for groups that overlap, exact on average for each of them (Gibbs, Cherian & Candès 2023).

A row belongs to some of G groups: its pattern, a vector phi of zeros and ones. The threshold of a new row with pattern
phi comes from a quantile regression of the scores on their patterns, to which the new row is added with a score that
grows without end. It depends on phi alone, so there is one problem for each pattern. In its dual form, with a weight
for each calibration row,

    maximise  sum_i eta_i score_i   where  sum_i eta_i phi_i = -level phi  and  level - 1 <= eta_i <= level.

Scores below the threshold of their pattern have the least weight, those above it the largest. The multipliers b of the
G equations give the thresholds phi b. Groups that do not overlap get the thresholds of their own ranks.

The problems differ in one row of n, so all solutions are near the one without a new row. Rows far from that keep their
side, and only points near it are looked at. A solution counts if no row that was left out is on the wrong side of it,
and if rounding cannot have put a point on the wrong side that is much smaller than others. What does not count is
solved for in whole numbers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from guardband.calibration.one_thread import one_thread
from guardband.calibration.pattern_exact import exact_thresholds
from guardband.calibration.pattern_paths import Followed, Points, Solutions, farthest, follow, follow_all

Array = NDArray[np.float64]
Patterns = NDArray[np.bool_]
Rows = NDArray[np.intp]

FEW_PATTERNS = 2**16
"""So many patterns have small numbers, which are sorted faster."""
SAMPLE = 20_000
"""With more rows, a first guess comes from so many of them."""
WINDOW = 0.06
"""The share of all rows, those nearest to the guess, that a better one is found from."""
STEPS = 12
ROWS_AT_A_TIME = 2**16
NEAR = 24
"""So many points for each group are looked at first, and four times as many whenever they were too few."""
MOST_POINTS = 2**15
"""With so many points, whole numbers are quicker."""
MOST_ENTRIES = 2**21
"""So many numbers are in one array at most: patterns are solved for in lots."""
PIVOTS = 60
"""So many pivots for each group are enough, unless many scores are equal."""
WHOLE = 8
"""The smallest patterns are looked at whole, if together they have at most so many times as many rows."""
FAR = 1e4
"""So many times farther than the farthest finite score an infinite one is taken to be."""
GOLDEN = (5**0.5 - 1) / 2
NOT_WHOLE = 1e-6
ROUNDING = 1e-12
"""How far numbers may be from exact, relative to the scores that they come from."""
SUMMED = 1e-14
"""The same for sums of so few scores as a threshold is."""
UNSURE = 4e-12
"""The same for how far points are from thresholds after all pivots, with what tells equal points apart."""
DIGITS = 1e-9
"""Scores may be mistaken for others that differ by no larger share of them."""


@one_thread()
def pattern_thresholds(
    scores: Array, pattern: Rows, patterns: Patterns, level: Fraction, asked: Patterns, counts: Rows | None = None
) -> Array:
    """Return the threshold of each asked pattern, ``(n,), (n,), (P, G), level, (Q, G) -> (Q,)``.

    ``pattern`` says which row of ``patterns`` a calibration row has; rows of no group count for nothing. With too few
    rows, a threshold is infinite. ``counts`` are the rows of each pattern, if they are known.

    >>> scores, halves = np.arange(1.0, 20.0), np.arange(19) % 2
    >>> apart = np.array([[True, False], [False, True]])
    >>> pattern_thresholds(scores, halves, apart, Fraction(4, 5), apart).tolist()
    [17.0, 16.0]
    """
    out = np.full(len(asked), np.inf)
    counts = np.bincount(pattern, minlength=len(patterns)) if counts is None else counts
    has: NDArray[np.bool_] = np.asarray(patterns.any(axis=1))
    columns, spread = _independent(patterns[has & (counts > 0)].astype(np.float64))
    new = asked.astype(np.float64)
    # A pattern that is no combination of those of calibration rows has weights that nothing balances.
    solvable = np.flatnonzero(np.abs(new[:, columns] @ spread - new).max(axis=1) < NOT_WHOLE)
    if not len(columns) or not len(solvable):
        return out
    problems = _Problems(scores, pattern, patterns[has][:, columns].astype(np.float64), has, counts[has], level)
    found, sure = problems.thresholds(new[np.ix_(solvable, columns)])
    rest = np.flatnonzero(~sure)
    if len(rest):
        rows, short = np.flatnonzero(has.take(pattern)), patterns[:, columns]
        unsolved, near = asked[np.ix_(solvable[rest], columns)], short @ problems.centre
        exact = exact_thresholds(scores[rows], pattern[rows], short, level, unsolved, near)
        found[rest] = np.where(np.abs(found[rest] - exact) <= SUMMED * np.abs(exact), found[rest], exact)
    out[solvable] = found
    return out


def _independent(phi: Array) -> tuple[Rows, Array]:
    """Return columns that all others are combinations of, ``(r,)``, and the combinations, ``(r, G)``."""
    from scipy.linalg import qr

    diagonal, order = qr(phi, mode="r", pivoting=True)
    sizes = np.abs(np.diag(diagonal))
    rank = int((sizes > NOT_WHOLE).sum())
    columns: Rows = np.sort(order[:rank])
    return columns, np.asarray(np.linalg.lstsq(phi[:, columns], phi, rcond=None)[0], dtype=np.float64)


def _counted(pattern: Rows, chosen: NDArray[np.bool_], patterns: int) -> Rows:
    """Return how many of the chosen rows have each pattern, ``(P,)``."""
    return np.bincount(pattern.take(np.flatnonzero(chosen)), minlength=patterns)


def _least(scores: Array) -> float:
    """Return the size of the smallest score that is not zero: no share of a score counts as less than of this."""
    return float(np.abs(scores[scores != 0]).min(initial=np.inf))


class _Problems:
    """The rows of all problems, which differ in the new row alone.

    ``phi`` are the patterns that have groups, ``counts`` the rows of each, and ``number`` says which of them a pattern
    is; rows of no group are left out everywhere. ``centre`` is near all solutions, ``rows`` are the rows near it, and
    ``gaps`` how far their scores are above it.
    """

    def __init__(
        self, scores: Array, pattern: Rows, phi: Array, has: NDArray[np.bool_], counts: Rows, level: Fraction
    ) -> None:
        self.scores, self.pattern, self.phi, self.counts = scores, pattern, phi, counts
        self.has, self.number = has, np.cumsum(has) - 1
        # Weights are multiplied by the level's denominator: the equations then hold between whole numbers.
        self.most, self.least = float(level.numerator), float(level.numerator - level.denominator)
        self.n = int(counts.sum())
        self.sample = self._sample()
        sample, own = scores[self.sample], self._patterns(self.sample)
        start = self._first(sample, own, float(level))
        start = start + self._improved(sample - (phi @ start)[own], own, np.zeros(phi.shape[1]))
        self._look_at(start)

    def thresholds(self, new: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the threshold of each new pattern, ``(Q, r) -> (Q,)``, nan if none was found, and which are sure."""
        out, sure = np.full(len(new), np.nan), np.zeros(len(new), dtype=bool)
        left, take = np.arange(len(new)), NEAR * (self.phi.shape[1] + 2)
        while len(left):
            found = self._solved(new[left], take)
            if found is not None:
                out[left], sure[left] = found
            if take >= min(self.n, MOST_POINTS):
                break
            left, take = left[np.isnan(out[left])], 4 * take
        return out, sure

    # ------------------------------------------------------------------------ a guess, from many rows

    def _sample(self) -> Rows:
        """Return every so many-th of the rows that count."""
        chosen = np.arange(0, self.n, max(1, self.n // SAMPLE))
        if self.n == len(self.scores):
            return chosen
        out = np.flatnonzero((~self.has).take(self.pattern))
        return chosen + np.searchsorted(out - np.arange(len(out)), chosen, side="right")

    def _patterns(self, rows: Rows) -> Rows:
        """Return which pattern each of some rows has, all of them with groups."""
        return self.number.take(self.pattern.take(rows))

    def _first(self, scores: Array, pattern: Rows, level: float) -> Array:
        """Return what is nearest to the quantiles of each pattern apart, by least squares."""
        order = np.argsort(scores)
        kind = np.uint16 if len(self.phi) <= FEW_PATTERNS else np.int64
        order = order[np.argsort(pattern[order].astype(kind), kind="stable")]
        counts = np.bincount(pattern, minlength=len(self.phi))
        has = counts > 0
        place = (np.cumsum(counts) - counts)[has] + np.minimum((level * counts[has]).astype(int), counts[has] - 1)
        quantiles = scores[order][place]
        usable = np.isfinite(quantiles)
        root = np.sqrt(counts[has][usable])
        out: Array = np.linalg.lstsq(self.phi[has][usable] * root[:, None], quantiles[usable] * root, rcond=None)[0]
        return out

    def _improved(self, gaps: Array, pattern: Rows, fixed: Array) -> Array:
        """Return how far to move to where weights nearly balance, by Newton's method.

        ``fixed`` is the sum of the weights of all rows that are not among these.
        """
        phi, r = self.phi, self.phi.shape[1]
        counts = np.bincount(pattern, minlength=len(phi))
        guess = best = np.zeros(r)
        least, share, slow = np.inf, 0.2, 0
        for _ in range(STEPS):
            gap = gaps - (phi @ guess).take(pattern)
            below = _counted(pattern, gap <= 0, len(phi))
            excess = fixed + (self.least * below + self.most * (counts - below)) @ phi
            size = float(np.abs(excess).sum()) / (self.most - self.least)
            slow = slow + 1 if size > least / 2 else 0
            if size < least:
                best, least = guess, size
            if size <= r or slow > 1:
                break
            distance = np.abs(gap)
            wanted = min(len(gap), max(int(share * len(gap)), 16 * r)) - 1
            width = float(np.partition(distance, wanted)[wanted])
            if not 0 < width < np.inf:
                break
            density = _counted(pattern, distance <= width, len(phi)) / (2 * width)
            curvature = (phi.T * (density * (self.most - self.least))) @ phi
            guess = guess + np.linalg.lstsq(curvature, excess, rcond=1e-10)[0]
            share *= 0.5
        return best

    def _look_at(self, centre: Array) -> None:
        """Keep the rows near a guess, and move it to where all rows nearly balance."""
        for share in (WINDOW, WINDOW, 2 * WINDOW, 4 * WINDOW, 1.0):
            sample = np.abs(self.scores[self.sample] - (self.phi @ centre)[self._patterns(self.sample)])
            nearest = int(share * (len(sample) - 1))
            window = float(np.partition(sample, nearest)[nearest])
            if share == 1 or self.n <= SAMPLE or not 0 < window < np.inf:
                window = np.inf
            rows, gaps, above = self._within(centre, window)
            own = self._patterns(rows)
            kept = np.bincount(own, minlength=len(self.phi))
            moved = self._improved(gaps, own, self._sum(above, self.counts - above - kept))
            centre = centre + moved
            self.reach = window - float(np.abs(self.phi @ moved).max())
            """All rows at least so near to the centre are among those kept."""
            if self.reach > window / 16 or window == np.inf:
                break
        # Exactly as for points later: a row on the centre must not be above it once and below it then.
        self.centre, self.rows, self.gaps = centre, rows, self.scores[rows] - (self.phi @ centre)[own]
        self.above = above + np.bincount(own[self.gaps > 0], minlength=len(self.phi))

    def _within(self, centre: Array, window: float) -> tuple[Rows, Array, Rows]:
        """Return the rows near a guess, how far they are above it, and how many of each pattern are farther above.

        A block of rows at a time, which stays in the cache; those below all windows are not looked at if they are many.
        """
        at, above = np.full(len(self.has), np.nan), np.zeros(len(self.has), dtype=np.intp)
        at[self.has] = self.phi @ centre  # rows of no group are neither near nor above
        lowest = (low := float(np.nanmin(at))) - window - ROUNDING * (abs(low) + window)
        many_are_low = bool((self.scores[self.sample] < lowest).mean() > 0.5)
        rows, gaps = [], []
        for first in range(0, len(self.scores), ROWS_AT_A_TIME):
            scores = self.scores[first : first + ROWS_AT_A_TIME]
            own = self.pattern[first : first + ROWS_AT_A_TIME]
            if many_are_low:
                high = np.flatnonzero(scores >= lowest)
                scores, own = scores.take(high), own.take(high)
            gap = scores - at.take(own)
            near = np.flatnonzero(np.abs(gap) <= window)
            rows.append((high.take(near) if many_are_low else near) + first)
            gaps.append(gap.take(near))
            above += _counted(own, gap > window, len(above))
        return np.concatenate(rows), np.concatenate(gaps), above[self.has]

    def _sum(self, above: Rows, below: Rows) -> Array:
        """Return the sum of the weights of so many rows of each pattern."""
        out: Array = (self.most * above + self.least * below) @ self.phi
        return out

    # ------------------------------------------------------------------------ solutions, from few points

    def _solved(self, new: Array, take: int) -> tuple[Array, NDArray[np.bool_]] | None:
        """Return thresholds from so many rows near the guess, nan where they do not suffice, and which are sure."""
        chosen = self._chosen(take)
        if chosen is None:
            return None
        rows, reach = chosen
        points, scores, fixed = self._points(rows)
        base = self._base(points, fixed)
        if base is None:
            return None
        out, sure, r = np.empty(len(new)), np.empty(len(new), dtype=bool), self.phi.shape[1]
        lot = max(1, MOST_ENTRIES // max(len(scores), r * r))
        for first in range(0, len(new), lot):
            asked = new[first : first + lot]
            found = follow_all(points, base, -self.most * asked, PIVOTS * r)
            own = out[first : first + lot] = self._read(points, scores, found, asked, reach)
            sure[first : first + lot] = np.isinf(own) | (~np.isnan(own) & self._is_sure(points, scores, found))
        return out, sure

    def _chosen(self, take: int) -> tuple[Rows, Array] | None:
        """Return the rows nearest to the centre, and how near all other rows of each pattern are not, ``(P,)``.

        The patterns that have the fewest rows are taken whole: their thresholds move farthest.
        """
        if take >= self.n:
            return np.flatnonzero(self.has.take(self.pattern)), np.full(len(self.phi), np.inf)
        near = np.abs(self.gaps)
        if take >= len(near):
            return None
        limit = float(np.partition(near, take)[take])
        if limit > self.reach or not np.isfinite(limit):
            return None
        rows, reach = self.rows[near <= limit], np.full(len(self.phi), limit)
        order = np.argsort(self.counts, kind="stable")
        few = order[(np.cumsum(self.counts[order]) <= WHOLE * take) & (4 * self.counts[order] <= take)]
        if self.counts[few].any():
            whole = np.zeros(len(self.has), dtype=bool)
            whole[np.flatnonzero(self.has)[few]] = True
            reach[few] = np.inf
            rows = np.concatenate([rows[~whole[self.pattern[rows]]], np.flatnonzero(whole[self.pattern])])
        return rows, reach

    def _points(self, rows: Rows) -> tuple[Points, Array, Array]:
        """Return equal rows as points, the score of each, and the sum of the weights of all other rows."""
        pattern, scores = self._patterns(rows), self.scores[rows]
        gaps = scores - (self.phi @ self.centre)[pattern]
        kept, above = (np.bincount(own, minlength=len(self.phi)) for own in (pattern, pattern[gaps > 0]))
        fixed = self._sum(self.above - above, self.counts - self.above - kept + above)
        order = np.lexsort((scores, pattern))
        own, score = pattern[order], scores[order]
        first = np.flatnonzero(np.r_[True, (own[1:] != own[:-1]) | (score[1:] != score[:-1])])
        gap, finite = gaps[order][first], np.isfinite(score[first])
        size = float(np.abs(gap[finite]).max(initial=0)) or 1.0
        # Infinite scores are farther away than any finite solution; equal ones are told apart by more than rounding,
        # or pivots could go in circles.
        gap = np.where(finite, gap, np.sign(gap) * FAR * size)
        gap = gap + ROUNDING * (size + float(np.abs(self.phi @ self.centre).max())) * (np.arange(len(gap)) * GOLDEN % 1)
        count = np.diff(np.r_[first, len(order)]).astype(np.float64)
        return Points(gap, self.phi[own[first]], count, self.least, self.most), score[first], fixed

    def _base(self, points: Points, fixed: Array) -> Solutions | None:
        """Return the solution without a new row."""
        basis = points.basis_near(np.argsort(np.abs(points.score), kind="stable"))
        if basis is None:
            return None
        start = Solutions.through(points, basis)
        found = follow(points, start, -(fixed + start.total(points)), 4 * PIVOTS * self.phi.shape[1])
        if not found.ended[0]:
            return None
        out = replace(Solutions.through(points, found.basis[0]), weight=found.weight)
        # A point that the thresholds go through but for rounding may now be on the other side than on the way.
        if np.abs(fixed + out.total(points)).max() > (self.most - self.least) / 2:
            return None
        return out

    def _read(self, points: Points, scores: Array, found: Followed, asked: Array, reach: Array) -> Array:
        """Return the thresholds of solutions that hold for all rows."""
        matrix = points.phi[found.basis]
        shares = np.linalg.solve(matrix.transpose(0, 2, 1), asked[:, :, None])[:, :, 0]
        whole = np.round(shares)
        shares = np.where(np.abs(shares - whole) < NOT_WHOLE, whole, shares)
        own = np.where(shares == 0, 0.0, scores[found.basis])
        endless = found.endless | np.isinf(own).any(axis=1)
        exact = out = (shares * np.where(np.isinf(own), 0.0, own)).sum(axis=1)
        # A threshold that is a score, but for rounding, is that score: the row that it belongs to is inside.
        order, largest = np.sort(scores), np.abs(own).max(axis=1)
        at = np.minimum(np.searchsorted(order, out), len(order) - 1)
        for near in (order[np.maximum(at - 1, 0)], order[at]):
            with np.errstate(invalid="ignore"):
                out = np.where(np.abs(near - out) <= ROUNDING * largest, near, out)
        with np.errstate(invalid="ignore"):
            is_near = exact - out + SUMMED * largest <= DIGITS * np.maximum(np.abs(exact), _least(scores))
        holds = found.ended & is_near & self._is_within(found.multiplier, reach)
        out[endless] = np.inf
        return np.where(holds | (endless & np.isinf(reach).all()), out, np.nan)

    def _is_sure(self, points: Points, scores: Array, found: Followed) -> NDArray[np.bool_]:
        """Return whether rounding can have put only points on a wrong side that hardly are, ``(Q,)``."""
        finite = np.isfinite(scores)
        error = UNSURE * (float(np.abs(points.score[finite]).max(initial=0)) + float(np.abs(self.centre).sum()))
        is_small = finite & ~(np.maximum(np.abs(scores), _least(scores)) >= error / DIGITS)
        small = np.flatnonzero(is_small)
        near = ~(np.abs(points.score[small] - found.multiplier @ points.phi[small].T) > error)
        out: NDArray[np.bool_] = np.asarray(near.sum(axis=1) <= is_small[found.basis].sum(axis=1))
        return out

    def _is_within(self, multiplier: Array, reach: Array) -> NDArray[np.bool_]:
        """Return whether the thresholds of all patterns are as near to the centre as that, ``(Q, r), (P,) -> (Q,)``."""
        reach = reach * (1 - ROUNDING) - ROUNDING * float(np.abs(self.centre).sum())
        out: NDArray[np.bool_] = np.asarray(farthest(multiplier) < reach.min())
        rest = np.flatnonzero(~out)
        moved = multiplier[rest] @ self.phi.T
        out[rest] = (moved <= reach).all(axis=1) & (moved >= -reach).all(axis=1)
        return out
