"""Placements: where an outcome lies within its prediction, and which outcome lies at a place.

A placement T(x, y) increases in y. Calibration rows tell how places are distributed, and the inverse turns a place into
an outcome of a new row (distributional conformal prediction: Chernozhukov, Wüthrich & Zhu 2021). What is proved holds
for every placement; a good one makes the result sharp.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SIDE = 0.02
"""A side of a prediction counts as at least this share of both: otherwise one row next to a side of no width would lie
further out than all others could, as with the quantiles of a forest."""
ROUNDED = 8 * float(np.finfo(np.float64).eps)
"""What a few roundings may come to, as a share."""
PRIOR_ROWS = 10.0
"""Tails start from those of a Laplace distribution, which count as much as so many rows beyond the last level."""


class Placement(ABC):
    """Says where outcomes lie within predictions of J numbers each: T and its inverse, both increasing."""

    name: ClassVar[str]
    what: ClassVar[str]
    """The J numbers, in words."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of columns of a prediction, J."""

    @abstractmethod
    def place(self, predictions: Array, y: Array) -> Array:
        """Return where outcomes lie, ``(n, J), (n,) -> (n,)``; an equal or larger y has an equal or larger place.

        Parameters
        ----------
        predictions : array of shape (n, J)
            The predictions.
        y : array of shape (n,)
            The outcomes.
        """

    @abstractmethod
    def outcome(self, predictions: Array, places: Array) -> Array:
        """Return the outcomes at some places, ``(n, J), (L,) -> (n, L)``; infinite places have infinite outcomes.

        Parameters
        ----------
        predictions : array of shape (n, J)
            The predictions.
        places : array of shape (L,) or (n, L)
            The places, the same for all rows or some for each.
        """

    def slack(self, predictions: Array, outcomes: Array) -> Array:
        """Return how far rounding may bring outcomes below those whose place they have, ``(n, J), (n, L) -> (n, L)``.

        A few units in the last place of outcome and first column, which is the point where there is one.

        Parameters
        ----------
        predictions : array of shape (n, J)
            The predictions.
        outcomes : array of shape (n, L)
            What ``outcome`` returned.
        """
        return ROUNDED * (np.abs(predictions[:, :1]) + np.abs(outcomes))

    @abstractmethod
    def slope(self, predictions: Array, y: Array) -> Array:
        """Return how fast the place grows with the outcome, ``(n, J), (n,) -> (n,)``.

        Parameters
        ----------
        predictions : array of shape (n, J)
            The predictions.
        y : array of shape (n,)
            The outcomes.
        """


@dataclass(frozen=True)
class ByQuantiles(Placement):
    """The distribution function through predicted quantiles, linear between them.

    Beyond the first and the last quantile the distribution is exponential. Its scale is ``below`` or ``above`` times
    the distance of that quantile from the middle one, or times a small share of the distance between first and last if
    that is more. There a place is not the probability u but, with a the level
    of the quantile, a + a log(u / a): it is linear in y, and no outcome is too far out for it.

    Parameters
    ----------
    levels : tuple of float
        The levels of the quantiles, increasing, at least two.
    below : float
        The scale of the lower tail.
    above : float
        The scale of the upper tail.
    """

    name = "quantiles"
    what = "quantiles"
    levels: tuple[float, ...]
    below: float
    above: float

    @classmethod
    def of(cls, levels: tuple[float, ...]) -> ByQuantiles:
        """Return the placement with the tails of a Laplace distribution."""
        return cls(levels, *_laplace(levels))

    @classmethod
    def learn(cls, levels: tuple[float, ...], predictions: Array, y: Array) -> ByQuantiles:
        """Return the placement with tails of the rows beyond the last levels, ``(n, J), (n,)``.

        The rows must not have trained what predicts them, and must not calibrate. A tail's scale is the mean distance
        beyond the quantile in units of its distance from the middle one, that of an exponential distribution.
        """
        units, prior = _units(predictions), _laplace(levels)
        pairs = ((predictions[:, 0] - y, units[0]), (y - predictions[:, -1], units[1]))
        return cls(levels, *(_tail(*pair, start) for pair, start in zip(pairs, prior, strict=True)))

    @property
    def columns(self) -> int:
        """The number of quantiles."""
        return len(self.levels)

    def place(self, predictions: Array, y: Array) -> Array:
        """Return the probability up to y, and beyond the first and last quantile what is linear in y."""
        levels = np.array(self.levels)
        out = np.empty(len(y))
        below = (predictions <= y[:, None]).sum(axis=1)  # how many quantiles lie at or below y
        inner = (below > 0) & (below < self.columns)
        rows = np.flatnonzero(inner)
        right = below[rows]
        start, end = predictions[rows, right - 1], predictions[rows, right]
        with np.errstate(all="ignore"):
            share = (y[rows] - start) / (end - start)
            step = levels[right] - levels[right - 1]
            # no more than the next level: places keep the order of outcomes, rounding included
            out[rows] = np.minimum(levels[right - 1] + step * np.nan_to_num(share, nan=0.0), levels[right])
            low, high = self._scales(predictions)
            rows = np.flatnonzero(below == 0)
            out[rows] = levels[0] - levels[0] * np.divide(predictions[rows, 0] - y[rows], low[rows])
            rows = np.flatnonzero(below == self.columns)
            beyond = y[rows] - predictions[rows, -1]
            far = np.where(beyond > 0, np.divide(beyond, high[rows]), 0.0)
            out[rows] = levels[-1] + (1 - levels[-1]) * far
        return out

    def outcome(self, predictions: Array, places: Array) -> Array:
        """Return the outcomes: a place has the same two quantiles about it in every row."""
        levels, (low, high) = np.array(self.levels), self._scales(predictions)
        right = np.searchsorted(levels, places, side="right")
        inner = np.clip(right, 1, self.columns - 1)
        out = _columns(predictions, inner - 1)
        with np.errstate(invalid="ignore"):
            share = (places - levels[inner - 1]) / (levels[inner] - levels[inner - 1])
            # below 1 between levels, so that the product, however it is rounded, goes no further than the next quantile
            out += share * (_columns(predictions, inner) - out)
            for beyond, start, far, scale in (
                (right == 0, predictions[:, :1], (places - levels[0]) / levels[0], low[:, None]),
                (right == self.columns, predictions[:, -1:], (places - levels[-1]) / (1 - levels[-1]), high[:, None]),
            ):
                if places.ndim == 1:
                    out[:, beyond] = start + far[beyond] * scale
                else:
                    np.copyto(out, start + far * scale, where=beyond)
        np.copyto(out, places, where=np.isinf(places))
        return out

    def slack(self, predictions: Array, outcomes: Array) -> Array:
        """Return a few units in the last place of all that is added up.

        A place is known to a unit in its own last place, which is worth the more of the outcome the less the place
        grows with it.
        """
        first, last = np.abs(predictions[:, :1]), np.abs(predictions[:, -1:])
        steps = (np.diff(self.levels).min(), self.levels[0] / self.below, (1 - self.levels[-1]) / self.above)
        apart = (predictions[:, -1:] - predictions[:, :1]) / min(steps)
        out: Array = ROUNDED * (first + last + np.abs(outcomes) + apart)
        return out

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return the density of the predicted distribution between quantiles, and the slope of a tail beyond."""
        levels, (low, high) = np.array(self.levels), self._scales(predictions)
        below = (predictions <= y[:, None]).sum(axis=1)
        right = np.clip(below, 1, self.columns - 1)
        rows = np.arange(len(y))
        with np.errstate(divide="ignore"):
            inner = (levels[right] - levels[right - 1]) / (predictions[rows, right] - predictions[rows, right - 1])
            tails = levels[0] / low, (1 - levels[-1]) / high
        out: Array = np.where(below == 0, tails[0], np.where(below == self.columns, tails[1], inner))
        return out

    def _scales(self, predictions: Array) -> tuple[Array, Array]:
        low, high = _units(predictions)
        return self.below * low, self.above * high


@dataclass(frozen=True)
class ByResidual(Placement):
    """The distance from a point, y - m: every row has the same distribution, moved."""

    name = "residual"
    what = "a point"

    @property
    def columns(self) -> int:
        """One: the point."""
        return 1

    def place(self, predictions: Array, y: Array) -> Array:
        """Return y - m."""
        out: Array = y - predictions[:, 0]
        return out

    def outcome(self, predictions: Array, places: Array) -> Array:
        """Return m + t."""
        return predictions[:, :1] + places

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return 1."""
        return np.ones(len(y))


@dataclass(frozen=True)
class ByScale(Placement):
    """The distance from a point in units of a scale, (y - m) / s, such as a standard deviation or a width."""

    name = "scale"
    what = "a point and a scale"

    @property
    def columns(self) -> int:
        """Two: the point and the scale."""
        return 2

    def place(self, predictions: Array, y: Array) -> Array:
        """Return (y - m) / s; where there is no scale, 0 at the point and infinity elsewhere."""
        gap = y - predictions[:, 0]
        with np.errstate(all="ignore"):
            return np.where(gap == 0, 0.0, gap / predictions[:, 1])

    def outcome(self, predictions: Array, places: Array) -> Array:
        """Return m + t s."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(places), places, predictions[:, :1] + predictions[:, 1:] * places)

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return 1 / s."""
        with np.errstate(divide="ignore"):
            out: Array = 1 / predictions[:, 1]
        return out


def _columns(predictions: Array, index: NDArray[np.intp]) -> Array:
    """Return columns of predictions, the same for all rows, ``(L,)``, or some for each, ``(n, L)``."""
    return predictions[:, index] if index.ndim == 1 else np.take_along_axis(predictions, index, axis=1)


def _laplace(levels: tuple[float, ...]) -> tuple[float, float]:
    """Return how a Laplace distribution's scale compares with the distance from the middle quantile to the last."""

    def quantile(level: float) -> float:
        return math.log(2 * level) if level <= 0.5 else -math.log(2 * (1 - level))

    own = np.array([[quantile(level) for level in levels]])
    center = float(_middle(own)[0])
    return 1 / (center - quantile(levels[0])), 1 / (quantile(levels[-1]) - center)


def _units(predictions: Array) -> tuple[Array, Array]:
    """Return how wide the lower and the upper side of each row is; a side of no width has a share of the other."""
    low, middle, high = predictions[:, 0], _middle(predictions), predictions[:, -1]
    least = LEAST_SIDE * (high - low)
    return np.maximum(middle - low, least), np.maximum(high - middle, least)


def _middle(predictions: Array) -> Array:
    """Return the middle column, or what lies halfway between the two in the middle."""
    columns = predictions.shape[1]
    return predictions[:, (columns - 1) // 2] / 2 + predictions[:, columns // 2] / 2


def _tail(beyond: Array, unit: Array, start: float) -> float:
    rows = (beyond > 0) & (unit > 0)
    return float((PRIOR_ROWS * start + (beyond[rows] / unit[rows]).sum()) / (PRIOR_ROWS + rows.sum()))
