"""The paper's artificial data, with the oracle that knows how they were made (section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from guardband.bands.intervals import Intervals

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PaperModel:
    """X uniform on [0, 1]^d, s the sum of its first five entries, Y ~ N(2 sin(pi s) + pi s, 1 + s^2)."""

    n_features: int = 100
    n_active: int = 5

    def draw(self, n: int, seed: int | np.random.Generator) -> tuple[Array, Array]:
        """Return n independent rows, ``(n, d)`` and ``(n,)``."""
        rng = np.random.default_rng(seed)
        X = rng.random((n, self.n_features))
        return X, self.median(X) + self.deviation(X) * rng.standard_normal(n)

    def signal(self, X: Array) -> Array:
        """Return s = beta'x, ``(n,)``."""
        signal: Array = X[:, : self.n_active].sum(axis=1)
        return signal

    def median(self, X: Array) -> Array:
        """Return the conditional median f(s), ``(n,)``."""
        s = self.signal(X)
        return 2 * np.sin(np.pi * s) + np.pi * s

    def deviation(self, X: Array) -> Array:
        """Return the conditional standard deviation, ``(n,)``."""
        return np.sqrt(1 + self.signal(X) ** 2)

    def oracle(self, X: Array, confidence_level: float = 0.9) -> Intervals:
        """Return the interval between the true conditional quantiles."""
        median, half = self.median(X), ndtri((1 + confidence_level) / 2) * self.deviation(X)
        return Intervals(median - half, median, median + half, confidence_level)

    def coverage(self, X: Array, lower: Array, upper: Array) -> Array:
        """Return P(lower <= Y <= upper | x) for each row, ``(n,)``."""
        median, deviation = self.median(X), self.deviation(X)
        inside: Array = ndtr((upper - median) / deviation) - ndtr((lower - median) / deviation)
        return inside
