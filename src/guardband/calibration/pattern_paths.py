"""Many quantile regressions on the same few points, followed side by side from one solution to the next.

A problem has M points (score c_i, pattern phi_i, so many rows m_i) and asks for weights

    maximise  sum_i eta_i c_i   where  sum_i eta_i phi_i = rhs   and   least m_i <= eta_i <= most m_i.

Its solution is a basis: r points that the thresholds phi b go through, and the side of all others. As the right-hand
side moves along a line, the weights of the basis move too. When one reaches its limit, that point leaves the basis, the
thresholds move until they meet another point, and that enters (the parametric simplex method).

Paths are short: most meet the points nearest to their start alone, and are followed among these.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

NOTHING = 1e-9
"""Rates and steps below this are rounding: a 0-1 matrix of a size that occurs has no inverse with such entries."""
LEAST_STEP = np.array([np.inf, 0.0])
"""How far it is at least to what is not ahead, and to what is: with ``fmax``, which skips 0/0, twice as quick as where.
"""
NEAREST = 6
"""So many points for each column of patterns are looked at on most paths."""


@dataclass(frozen=True, eq=False)
class Points:
    """Scores ``(M,)``, patterns ``(M, r)`` and numbers of rows ``(M,)``; the weights of a row and their limits."""

    score: Array
    phi: Array
    count: Array
    least: float
    most: float

    def rows(self, rows: Rows) -> Points:
        """Return some of the points."""
        return replace(self, score=self.score[rows], phi=self.phi[rows], count=self.count[rows])

    def basis_near(self, order: Rows) -> Rows | None:
        """Return the first points in this order whose patterns are independent, ``(r,)``; None if there are too few."""
        chosen: list[int] = []
        directions = np.empty((0, self.phi.shape[1]))
        for i in order:
            rest = self.phi[i] - directions.T @ (directions @ self.phi[i])
            rest -= directions.T @ (directions @ rest)  # once more, for what rounding left
            size = float(np.sqrt(rest @ rest))
            if size > NOTHING:
                chosen.append(int(i))
                directions = np.concatenate([directions, rest[None] / size])
            if len(chosen) == self.phi.shape[1]:
                return np.array(chosen)
        return None


@dataclass(frozen=True, eq=False)
class Solutions:
    """Solutions of Q problems: bases ``(Q, r)`` with weights and inverses, and the sides of the points ``(Q, M)``.

    A side is 1 above the threshold, -1 below it and 0 in the basis. ``gap`` is how far a score is above its threshold.
    ``multiplier`` gives the thresholds, ``(Q, r)``.
    """

    basis: Rows
    weight: Array
    inverse: Array
    side: NDArray[np.int8]
    gap: Array
    multiplier: Array

    @classmethod
    def through(cls, points: Points, basis: Rows) -> Solutions:
        """Return one solution, for the right-hand side at which the weights of its basis are halfway."""
        inverse: Array = np.asarray(np.linalg.inv(points.phi[basis]), dtype=np.float64)
        multiplier = inverse @ points.score[basis]
        gap = points.score - points.phi @ multiplier
        side = np.where(gap >= 0, 1, -1).astype(np.int8)
        gap[basis], side[basis] = 0, 0
        weight = (points.least + points.most) / 2 * points.count[basis]
        return cls(basis[None], weight[None], inverse[None], side[None], gap[None], multiplier[None])

    def total(self, points: Points) -> Array:
        """Return the right-hand side of each, ``(Q, r)``."""
        each = np.where(self.side > 0, points.most, np.where(self.side < 0, points.least, 0)) * points.count
        out: Array = each @ points.phi + np.einsum("qj,qjr->qr", self.weight, points.phi[self.basis])
        return out

    def repeated(self, times: int) -> Solutions:
        """Return the only solution so many times."""
        return self.rows(np.zeros(times, dtype=np.intp))

    def rows(self, rows: Rows) -> Solutions:
        """Return some of the solutions."""
        return Solutions(*(getattr(self, own.name).take(rows, axis=0) for own in fields(self)))

    def among(self, points: Rows) -> Solutions:
        """Return the same for some of the points, in their order, all of the bases among them."""
        basis = np.searchsorted(points, self.basis)
        return replace(self, basis=basis, side=self.side[:, points], gap=self.gap[:, points])


@dataclass(frozen=True, eq=False)
class Followed:
    """Where paths ended: bases, weights and multipliers ``(Q, r)``; which of them ended, or went beyond all points."""

    basis: Rows
    weight: Array
    multiplier: Array
    ended: NDArray[np.bool_]
    endless: NDArray[np.bool_]


def farthest(multiplier: Array) -> Array:
    """Return how far from zero the threshold of any pattern can be, ``(Q, r) -> (Q,)``."""
    up = np.maximum(multiplier, 0).sum(axis=1)
    out: Array = np.maximum(up, up - multiplier.sum(axis=1))
    return out


def follow_all(points: Points, start: Solutions, towards: Array, most_pivots: int) -> Followed:
    """Follow paths from one solution, those that leave the points nearest to it once more, among all points."""
    distance = np.abs(start.gap[0])
    nearest = NEAREST * (points.phi.shape[1] + 2)
    if nearest >= len(distance):
        return follow(points, start.repeated(len(towards)), towards, most_pivots)
    within = float(np.partition(distance, nearest)[nearest])
    near = np.flatnonzero(distance <= within)
    found = follow(points.rows(near), start.among(near).repeated(len(towards)), towards, most_pivots, within)
    out = replace(found, basis=near[found.basis])
    left = np.flatnonzero(~found.ended)
    if len(left):
        again = follow(points, start.repeated(len(left)), towards[left], most_pivots)
        for own in fields(out):
            getattr(out, own.name)[left] = getattr(again, own.name)
    return out


def follow(points: Points, start: Solutions, towards: Array, most_pivots: int, within: float = np.inf) -> Followed:
    """Move the right-hand sides from those of the start by ``towards``, ``(Q, r)``.

    If a weight reaches its limit exactly at the end, its point stays: of several solutions, the first on the way. A
    path whose thresholds may have moved farther than ``within`` is left: it could meet points that are not among these.
    """
    basis, weight, multiplier = start.basis.copy(), start.weight.copy(), start.multiplier.copy()
    ended, endless = np.zeros((2, len(basis)), dtype=bool)
    limits = np.array([points.least, points.most])
    active, now, share = np.arange(len(basis)), start, np.zeros(len(basis))
    for _ in range(most_pivots + 1):
        rate = np.einsum("qrj,qr->qj", now.inverse, towards[active])
        rate[np.abs(rate) < NOTHING] = 0
        limit = limits.take(rate > 0) * points.count.take(now.basis)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.fmax((limit - now.weight) / rate, LEAST_STEP.take(rate != 0))
        own, leaving = np.arange(len(active)), step.argmin(axis=1)
        least = step[own, leaving]
        here = share + least >= 1 - NOTHING
        if here.any():
            done = active[here]
            basis[done], multiplier[done], ended[done] = now.basis[here], now.multiplier[here], True
            weight[done] = now.weight[here] + rate[here] * (1 - share[here])[:, None]
            on = np.flatnonzero(~here)
            if not len(on):
                break
            active, share, least, leaving, rate = active[on], share[on], least[on], leaving[on], rate[on]
            now = now.rows(on)
        share = share + least
        now = replace(now, weight=now.weight + rate * least[:, None])
        now, beyond = _pivoted(points, now, leaving, rate[np.arange(len(active)), leaving] > 0)
        endless[active[beyond]] = True
        on = np.flatnonzero(~beyond & (farthest(now.multiplier - start.multiplier[active]) <= within))
        if len(on) < len(active):
            active, share, now = active[on], share[on], now.rows(on)
            if not len(on):
                break
    return Followed(basis, weight, multiplier, ended, endless)


def _pivoted(
    points: Points, now: Solutions, leaving: Rows, is_above: NDArray[np.bool_]
) -> tuple[Solutions, NDArray[np.bool_]]:
    """Let one point of each basis leave to a side, and the first enter that thresholds then meet; or none is met."""
    own = np.arange(len(leaving))
    away = np.where(is_above, -1.0, 1.0)  # a point is above its threshold if that falls
    column = now.inverse[own, :, leaving]
    towards = column * away[:, None]
    move = towards @ points.phi.T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.fmax(now.gap / move, LEAST_STEP.take(now.side * move > NOTHING))
    entering = reach.argmin(axis=1)
    distance = reach[own, entering]
    beyond = np.isinf(distance)
    distance[beyond] = 0
    left = now.basis[own, leaving]
    move *= distance[:, None]
    gap, side = now.gap - move, now.side.copy()
    weight, basis = now.weight, now.basis.copy()
    limit = np.where(side[own, entering] > 0, points.most, points.least)
    weight[own, leaving] = limit * points.count[entering]
    side[own, left] = np.where(is_above, 1, -1)
    side[own, entering], gap[own, entering] = 0, 0
    basis[own, leaving] = entering
    # The inverse of a matrix with one row replaced (Sherman & Morrison).
    row = np.einsum("qr,qrj->qj", points.phi[entering], now.inverse)
    by = np.where(beyond, 1.0, row[own, leaving])
    row[own, leaving] -= 1
    change = column[:, :, None] * (row / by[:, None])[:, None, :]
    inverse = np.subtract(now.inverse, change, out=change)
    return Solutions(basis, weight, inverse, side, gap, now.multiplier + distance[:, None] * towards), beyond
