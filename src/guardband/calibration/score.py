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
from guardband.bands.promise import Side

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
        """Return how far each outcome lies, ``(C, K, n), (n,) -> (C, K, n)``; NaN is as far as can be.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        y : array of shape (n,)
            The true values.
        """

    @abstractmethod
    def around(self, predicted: Any, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the ends of what lies no further, ``(C, K, n), () or (n,) -> (C, K, n)``; a side may be infinite.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        threshold : float or array of shape (n,)
            The largest score that is inside, for all rows or for each.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """

    def distance_on(self, side: Side, predicted: Any, y: Array) -> Array:
        """Return how far each outcome lies beyond one bound, ``(C, K, n), (n,) -> (C, K, n)``.

        Only the part of y on that side of the point counts: a y on the other side is as near as the point itself. The
        bound at threshold c then covers every y whose distance is at most c, and no other if the interval at c contains
        the point. A score that can be negative inside may override it with a formula that tells such y apart.

        Parameters
        ----------
        side : {"lower", "upper"}
            Which bound it is about.
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        y : array of shape (n,)
            The true values.
        """
        nearest = np.maximum if side == "upper" else np.minimum
        return self.distance(predicted, nearest(y, predicted.point))

    def of(self, predicted: Predicted, y: Array) -> Array:
        """Return the score of each row, infinite where it is no number or the prediction is not finite.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        y : array of shape (n,)
            The true values.
        """
        with np.errstate(all="ignore"):
            score = self.distance(predicted, y)
        return np.where(predicted.finite() & ~np.isnan(score), score, np.inf)

    def interval(self, predicted: Predicted, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the ends; they are infinite if the threshold or the prediction is not finite.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        threshold : float or array of shape (n,)
            The largest score that is inside, for all rows or for each.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """
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
    """conf-fw's score: |y - m|, whose intervals all have one width (Papadopoulos & Haralambous, 2011)."""

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
    """CQR's score: max(l - y, y - u), in units of the target (Romano, Patterson & Candès, 2019).

    ``relative`` divides it by u - l: CQR-r (Sesia & Candès, 2020). Beyond an interval of no width that is infinite; on
    it, -1/2, the least that there is. A negative threshold narrows the interval, which is then extended to contain the
    prediction.

    Parameters
    ----------
    relative : bool, default False
        Whether to divide the score by the width of the interval, as CQR-r does.
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
        return np.where(width > 0, score / width, beyond)

    def distance_on(self, side: Side, predicted: PredictedInterval, y: Array) -> Array:
        """Return y - u for the upper side and l - y for the lower, divided by the width if relative.

        An interval of no width covers all y up to its bound at every threshold. They get -1, the score of a y at the
        other end of an interval that has a width.
        """
        lower, _, upper = predicted.parts
        score: Array = y - upper if side == "upper" else lower - y
        if not self.relative:
            return score
        width, beyond = upper - lower, np.where(score > 0, np.inf, -1.0)
        return np.where(width > 0, score / width, beyond)

    def around(self, predicted: PredictedInterval, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the interval moved outward on both sides by the threshold."""
        lower, point, upper = predicted.parts
        limits = xp.finfo(point.dtype)
        by = threshold * (upper - lower) if self.relative else threshold
        low = lower - by - (4 * limits.eps * (xp.abs(lower) + abs(by)) + limits.tiny)
        high = upper + by + (4 * limits.eps * (xp.abs(upper) + abs(by)) + limits.tiny)
        return xp.minimum(low, point), xp.maximum(high, point)


@dataclass(frozen=True)
class OneSide(Score):
    """How far an outcome lies beyond one bound; the other end of the interval is infinite.

    Parameters
    ----------
    score : Score
        How far an outcome lies from its prediction, on both sides.
    side : {"lower", "upper"}
        Which bound it is about.
    """

    score: Score
    side: Side

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the score needs."""
        return self.score.takes

    @property
    def extends(self) -> bool:  # type: ignore[override]
        """Whether a bound may lie further out than the score asks for."""
        return self.score.extends

    def distance(self, predicted: Any, y: Array) -> Array:
        """Return how far y lies beyond the bound."""
        return self.score.distance_on(self.side, predicted, y)

    def around(self, predicted: Any, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the bound, and infinity on the other side."""
        low, high = self.score.around(predicted, threshold, xp)
        infinite = xp.zeros_like(low) + xp.inf
        return (low, infinite) if self.side == "lower" else (-infinite, high)


def _quiet(xp: Any) -> AbstractContextManager[Any]:
    """Return what keeps numpy from warning of infinities; torch does not warn, and could not compile that."""
    return np.errstate(over="ignore", invalid="ignore") if xp is np else nullcontext()
