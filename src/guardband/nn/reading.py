"""Readings: what the columns that a network puts out say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.bands.predicted import OneDeviation, Predicted, PredictedGaussian, PredictedInterval, PredictedPoint


class Reading(ABC):
    """Turns outputs into what they predict."""

    columns: int
    """How many a network puts out."""

    @abstractmethod
    def read(self, outputs: Any, xp: Any = np) -> Predicted:
        """Return what outputs say, ``(C, K, n, columns) -> (C, K, n)`` a part; ``xp`` is numpy or torch."""


@dataclass(frozen=True)
class IntervalColumns(Reading):
    """Lower bound, point and upper bound."""

    columns = 3

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return the columns as they are."""
        return PredictedInterval(outputs[..., 0], outputs[..., 1], outputs[..., 2])


@dataclass(frozen=True)
class BoundColumns(Reading):
    """Lower and upper bound; the point is halfway between them."""

    columns = 2

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return the bounds and their midpoint."""
        lower, upper = outputs[..., 0], outputs[..., 1]
        return PredictedInterval(lower, (lower + upper) / 2, upper)


@dataclass(frozen=True)
class GaussianColumns(Reading):
    """Mean and standard deviation."""

    columns = 2

    def read(self, outputs: Any, xp: Any = np) -> PredictedGaussian:
        """Return the columns as they are."""
        return PredictedGaussian(outputs[..., 0], outputs[..., 1])


@dataclass(frozen=True)
class DeviationColumns(GaussianColumns):
    """Mean and standard deviation, as an interval of one deviation on each side."""

    def read(self, outputs: Any, xp: Any = np) -> OneDeviation:  # type: ignore[override]
        """Return the interval."""
        mean, deviation = super().read(outputs, xp).parts
        return OneDeviation(mean - deviation, mean, mean + deviation)


@dataclass(frozen=True)
class PointColumn(Reading):
    """A point."""

    columns = 1

    def read(self, outputs: Any, xp: Any = np) -> PredictedPoint:
        """Return the column."""
        return PredictedPoint(outputs[..., 0])


@dataclass(frozen=True)
class QuantileColumns(Reading):
    """Quantiles at increasing levels, of which an interval for each of ``taus`` is a pair around the median."""

    quantiles: tuple[float, ...]
    taus: tuple[float, ...]

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The number of quantiles."""
        return len(self.quantiles)

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return an interval for each tau as candidates, ``(C, 1, n, columns) -> (C, K, n)``."""
        levels = np.array(self.quantiles)
        at = [[int(np.abs(levels - q).argmin()) for q in (tau / 2, 0.5, 1 - tau / 2)] for tau in self.taus]
        return PredictedInterval(
            *(xp.concatenate([outputs[..., i] for i in same], 1) for same in zip(*at, strict=True))
        )
