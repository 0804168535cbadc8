"""Scores: how far an outcome lies from its prediction, and the interval of all outcomes that lie no further.

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

    A subclass holds two formulas, ``distance`` and ``around``. Where rounding could break the rule above, let it be in
    favour of y: a slack makes each side longer by a few units in the last place.
    """

    takes: ClassVar[type[Predicted]]
    """What kind of prediction it needs."""
    extends: ClassVar[bool] = False
    """Whether an interval may hold more than the outcomes whose score is at most c: coverage is then larger."""

    @abstractmethod
    def distance(self, predicted: Any, y: Array) -> Array:
        """Return how far each outcome lies, ``(C, K, n), (n,) -> (C, K, n)``; NaN is as far as can be."""

    @abstractmethod
    def around(self, predicted: Any, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the ends of what lies no further, ``(C, K, n), () or (n,) -> (C, K, n)``; a side may be infinite."""

    def of(self, predicted: Predicted, y: Array) -> Array:
        """Return the score of each row, infinite where it is no number or the prediction is not finite."""
        with np.errstate(all="ignore"):
            score = self.distance(predicted, y)
        return np.where(predicted.finite() & ~np.isnan(score), score, np.inf)

    def interval(self, predicted: Predicted, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the ends, and the whole line where the threshold or the prediction is not finite."""
        with _quiet(xp):
            low, high = self.around(predicted, threshold, xp)
            usable = xp.isfinite(threshold + xp.zeros_like(low)) & predicted.finite(xp)
        usable = usable & ~xp.isnan(low) & ~xp.isnan(high)
        return xp.where(usable, low, -xp.inf), xp.where(usable, high, xp.inf)


@dataclass(frozen=True)
class Scaled(Score):
    """conf-nn's score: the least c >= 0 for which [m - c (m - l), m + c (u - m)] contains y (paper, Algorithm 1).

    Only the side on which y lies counts, so 0/0 never arises: y = m scores 0, a y beyond a side of no width
    scores infinity. So does one whose quotient is too small for a normal number: its interval could not be
    computed back. Wherever both widths are positive this is the paper's maximum of two quotients, and one more
    than the score CQR-m of Sesia & Candès (2020).
    """

    takes = PredictedInterval

    def distance(self, predicted: PredictedInterval, y: Array) -> Array:
        """Return the gap between y and the point, in widths of its side."""
        lower, point, upper = predicted.parts
        gap = np.abs(y - point)
        width = np.maximum(np.where(y < point, point - lower, upper - point), 0)
        score = np.where(gap == 0, 0.0, gap / width)
        return np.where((gap > 0) & (score < np.finfo(np.float64).tiny), np.inf, score)

    def around(self, predicted: PredictedInterval, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the interval scaled about its point.

        The slack of a side is 4 eps (|m| + c times its width): without it a tenth of all rows at the threshold fall
        outside their own interval.
        """
        lower, point, upper = predicted.parts
        limits, zero = xp.finfo(point.dtype), xp.zeros_like(point)
        below, above = (threshold * xp.maximum(side, zero) for side in (point - lower, upper - point))
        # tiny: in all four times the smallest number there is, for products that lose digits by underflow
        least = xp.abs(point) + limits.tiny * (threshold > 0)
        return point - below - 4 * limits.eps * (least + below), point + above + 4 * limits.eps * (least + above)


@dataclass(frozen=True)
class Residual(Score):
    """conf-fw's score: |y - m|, whose intervals all have one length (Papadopoulos & Haralambous, 2011)."""

    takes = Predicted

    def distance(self, predicted: Predicted, y: Array) -> Array:
        """Return the gap between y and the point."""
        gap: Array = np.abs(y - predicted.point)
        return gap

    def around(self, predicted: Predicted, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the point and the threshold on both sides of it."""
        point = predicted.point
        slack = 4 * xp.finfo(point.dtype).eps * (xp.abs(point) + threshold)
        return point - threshold - slack, point + threshold + slack


@dataclass(frozen=True)
class Additive(Score):
    """CQR's score: max(l - y, y - u), in units of the response (Romano, Patterson & Candès, 2019).

    ``relative`` divides it by u - l: CQR-r (Sesia & Candès, 2020). Beyond a band of no width that is infinite;
    on it, -1/2, the least that there is. A negative threshold shortens the band, and the interval is extended
    to contain the point.
    """

    takes = PredictedInterval
    extends = True
    relative: bool = False

    def distance(self, predicted: PredictedInterval, y: Array) -> Array:
        """Return how far y lies outside, less than zero inside."""
        lower, _, upper = predicted.parts
        score: Array = np.maximum(lower - y, y - upper)
        if not self.relative:
            return score
        width, beyond = upper - lower, np.where(score > 0, np.inf, -0.5)
        return np.where(width > 0, score / np.where(width > 0, width, 1), beyond)

    def around(self, predicted: PredictedInterval, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the interval moved outward on both sides by the threshold."""
        lower, point, upper = predicted.parts
        limits = xp.finfo(point.dtype)
        by = threshold * (upper - lower) if self.relative else threshold
        low = lower - by - (4 * limits.eps * (xp.abs(lower) + abs(by)) + limits.tiny)
        high = upper + by + (4 * limits.eps * (xp.abs(upper) + abs(by)) + limits.tiny)
        return xp.minimum(low, point), xp.maximum(high, point)


def _quiet(xp: Any) -> AbstractContextManager[Any]:
    """Return what keeps numpy from warning of infinities; torch does not warn, and could not compile that."""
    return np.errstate(over="ignore", invalid="ignore") if xp is np else nullcontext()
