"""Scores: how far a response lies from its band, and the interval of all responses that lie no further.

``xp`` is the library that the arrays belong to, numpy or torch: both spell these functions alike, so that
one formula serves arrays and the calibrated network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Predicted, PredictedInterval

Array = NDArray[np.float64]


class Score(ABC):
    """A conformity score with its interval: y lies in the interval at threshold c exactly if its score is at most c.

    Where rounding could break that, it is in favour of y: the slack makes each side longer by a few units in the last
    place. A prediction that is not finite scores infinity, and its interval is the whole line.
    """

    takes: ClassVar[type[Predicted]]
    """What kind of prediction it needs."""

    @abstractmethod
    def of(self, predicted: Any, y: Array) -> Array:
        """Return the score of each row, ``(C, K, n), (n,) -> (C, K, n)``."""

    @abstractmethod
    def interval(self, predicted: Any, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return lower and upper ends, ``(C, K, n), () or (n,) -> (C, K, n)`` each; a side may be infinite."""


@dataclass(frozen=True)
class Scaled(Score):
    """conf-nn's score: the least c >= 0 for which [m - c (m - l), m + c (u - m)] contains y (paper, Algorithm 1).

    Only the side on which y lies counts, so 0/0 never arises: y = m scores 0, a y beyond a side of no width
    scores infinity. So does one whose quotient is too small for a normal number: its interval could not be
    computed back. Wherever both widths are positive this is the paper's maximum of two quotients, and one more
    than the score CQR-m of Sesia & Candès (2020).
    """

    takes = PredictedInterval

    def of(self, predicted: PredictedInterval, y: Array) -> Array:
        """Return the score of each row."""
        lower, point, upper = predicted.parts
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            gap = np.abs(y - point)
            width = np.maximum(np.where(y < point, point - lower, upper - point), 0)
            score = np.where(gap == 0, 0.0, gap / width)
        tiny = np.finfo(np.float64).tiny
        return _or_infinite(predicted, np.where((gap > 0) & (score < tiny), np.inf, score))

    def interval(self, predicted: PredictedInterval, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the interval scaled about its point.

        The slack of a side is 4 eps (|m| + c times its width): without it a tenth of all rows at the threshold fall
        outside their own interval.
        """
        lower, point, upper = predicted.parts
        limits, zero = xp.finfo(point.dtype), xp.zeros_like(point)
        with _quiet(xp):
            below, above = (threshold * xp.maximum(side, zero) for side in (point - lower, upper - point))
            # tiny: in all four times the smallest number there is, for products that lose digits by underflow
            least = xp.abs(point) + limits.tiny * (threshold > 0)
            low = point - below - 4 * limits.eps * (least + below)
            high = point + above + 4 * limits.eps * (least + above)
        return _or_whole_line(predicted, threshold, low, high, xp)


@dataclass(frozen=True)
class Residual(Score):
    """conf-fw's score: |y - m|, whose intervals all have one length (Papadopoulos & Haralambous, 2011)."""

    takes = Predicted

    def of(self, predicted: Predicted, y: Array) -> Array:
        """Return the score of each row."""
        with np.errstate(over="ignore", invalid="ignore"):
            return _or_infinite(predicted, np.abs(y - predicted.point))

    def interval(self, predicted: Predicted, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the point and the threshold on both sides of it."""
        point = predicted.point
        with _quiet(xp):
            slack = 4 * xp.finfo(point.dtype).eps * (xp.abs(point) + threshold)
            return _or_whole_line(predicted, threshold, point - threshold - slack, point + threshold + slack, xp)


@dataclass(frozen=True)
class Additive(Score):
    """CQR's score: max(l - y, y - u), in units of the response (Romano, Patterson & Candès, 2019).

    ``relative`` divides it by u - l: CQR-r (Sesia & Candès, 2020). Beyond a band of no width that is infinite;
    on it, -1/2, the least that there is. A negative threshold shortens the band, and the interval is extended
    to contain the point.
    """

    takes = PredictedInterval
    relative: bool = False

    def of(self, predicted: PredictedInterval, y: Array) -> Array:
        """Return the score of each row."""
        lower, _, upper = predicted.parts
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            score = np.maximum(lower - y, y - upper)
            if self.relative:
                width = upper - lower
                beyond = np.where(score > 0, np.inf, -0.5)
                score = np.where(width > 0, score / np.where(width > 0, width, 1), beyond)
        return _or_infinite(predicted, score)

    def interval(self, predicted: PredictedInterval, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the interval moved outward on both sides by the threshold."""
        lower, point, upper = predicted.parts
        limits = xp.finfo(point.dtype)
        with _quiet(xp):
            by = threshold * (upper - lower) if self.relative else threshold
            low = lower - by - (4 * limits.eps * (xp.abs(lower) + abs(by)) + limits.tiny)
            high = upper + by + (4 * limits.eps * (xp.abs(upper) + abs(by)) + limits.tiny)
            low, high = xp.minimum(low, point), xp.maximum(high, point)
        return _or_whole_line(predicted, threshold, low, high, xp)


def _quiet(xp: Any) -> AbstractContextManager[Any]:
    """Return what keeps numpy from warning of infinities; torch does not warn, and could not compile that."""
    return np.errstate(over="ignore", invalid="ignore") if xp is np else nullcontext()


def _or_infinite(predicted: Predicted, score: Array) -> Array:
    """Return the score, infinite where it is no number or the prediction is not finite."""
    return np.where(predicted.finite() & ~np.isnan(score), score, np.inf)


def _or_whole_line(predicted: Predicted, threshold: Any, low: Any, high: Any, xp: Any) -> tuple[Any, Any]:
    """Return the ends, and the whole line where the threshold or the prediction is not finite."""
    usable = predicted.finite(xp) & xp.isfinite(threshold + xp.zeros_like(low)) & ~xp.isnan(low) & ~xp.isnan(high)
    return xp.where(usable, low, -xp.inf), xp.where(usable, high, xp.inf)
