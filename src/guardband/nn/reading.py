"""Readings: what the columns that a network puts out say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from guardband.bands.predicted import OneDeviation, Predicted, PredictedGaussian, PredictedInterval, PredictedPoint


class Reading:
    """Turns outputs into what they predict: by default each column is a part, in order."""

    columns: int
    """How many a network puts out."""
    predicts: ClassVar[type[Predicted]]
    """What kind of prediction they are."""

    def read(self, outputs: Any, xp: Any = np) -> Any:
        """Return what outputs say, ``(C, K, n, columns) -> (C, K, n)`` a part; ``xp`` is numpy or torch.

        Parameters
        ----------
        outputs : array of shape (C, K, n, columns)
            What K networks, in C copies each, put out.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """
        return self.predicts(*(outputs[..., i] for i in range(self.columns)))


@dataclass(frozen=True)
class IntervalColumns(Reading):
    """Lower bound, point and upper bound."""

    columns, predicts = 3, PredictedInterval


@dataclass(frozen=True)
class BoundColumns(Reading):
    """Lower and upper bound; the point is halfway between them."""

    columns, predicts = 2, PredictedInterval

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return the bounds and their midpoint."""
        lower, upper = outputs[..., 0], outputs[..., 1]
        return PredictedInterval(lower, (lower + upper) / 2, upper)


@dataclass(frozen=True)
class GaussianColumns(Reading):
    """Mean and standard deviation, or variance."""

    columns, predicts = 2, PredictedGaussian
    is_variance: bool = False

    def read(self, outputs: Any, xp: Any = np) -> Any:
        """Return the Gaussian."""
        return PredictedGaussian(outputs[..., 0], _deviation(outputs[..., 1], self.is_variance, xp))


@dataclass(frozen=True)
class DeviationColumns(Reading):
    """Mean and standard deviation, or variance, as an interval of one deviation on each side."""

    columns, predicts = 2, PredictedInterval
    is_variance: bool = False

    def read(self, outputs: Any, xp: Any = np) -> OneDeviation:
        """Return the interval."""
        mean, deviation = outputs[..., 0], _deviation(outputs[..., 1], self.is_variance, xp)
        return OneDeviation(mean - deviation, mean, mean + deviation)


@dataclass(frozen=True)
class PointColumn(Reading):
    """A point."""

    columns, predicts = 1, PredictedPoint


@dataclass(frozen=True)
class QuantileColumns(Reading):
    """Quantiles at increasing levels, of which an interval for each of ``taus`` is a pair around the median.

    ``below`` says how much of each tau lies below the lower bound, half of it unless given.
    """

    predicts = PredictedInterval
    quantiles: tuple[float, ...]
    taus: tuple[float, ...]
    below: tuple[float, ...] | None = None

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The number of quantiles."""
        return len(self.quantiles)

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return an interval for each tau as candidates, ``(C, 1, n, columns) -> (C, K, n)``."""
        levels = np.array(self.quantiles)
        below = self.below or tuple(tau / 2 for tau in self.taus)
        pairs = zip(below, self.taus, strict=True)
        at = [[int(np.abs(levels - q).argmin()) for q in (low, 0.5, 1 - (tau - low))] for low, tau in pairs]
        return PredictedInterval(
            *(xp.concatenate([outputs[..., i] for i in same], 1) for same in zip(*at, strict=True))
        )


@dataclass(frozen=True)
class EachColumn(Reading):
    """Each column as a candidate of its own."""

    predicts = PredictedPoint
    columns: int

    def read(self, outputs: Any, xp: Any = np) -> PredictedPoint:
        """Return the columns, ``(C, 1, n, columns) -> (C, columns, n)``."""
        return PredictedPoint(xp.concatenate([outputs[..., i] for i in range(self.columns)], 1))


def _deviation(values: Any, is_variance: bool, xp: Any) -> Any:
    """Return the deviation; where a variance is negative it is negative too, which is refused later."""
    return xp.sign(values) * xp.abs(values) ** 0.5 if is_variance else values
