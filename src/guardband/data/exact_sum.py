"""Sums of floats without an error: the same in any order of rows, and of any parts that are added up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

SHIFT = 1126
"""Every finite float64 is a whole multiple of 2 to the power of minus this: the least one is 2**-1074."""
HALF = 27
"""Mantissas of 53 bits are added in two parts of so many bits, so that float64 counts 2**26 of each exactly."""
AT_A_TIME = 2**16


@dataclass(frozen=True)
class ExactSum:
    """The sum of ``count`` floats as a whole number of units of ``2**-SHIFT``.

    >>> (ExactSum.of(np.array([1e300, 1.0])) + ExactSum.of(np.array([-1e300]))).mean
    0.3333333333333333
    """

    count: int = 0
    units: int = 0

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> ExactSum:
        """Return the sum of finite values, ``(n,)``."""
        parts = (values[i : i + AT_A_TIME] for i in range(0, len(values), AT_A_TIME))
        return cls(len(values), sum(map(_units, parts)))

    def __add__(self, other: ExactSum) -> ExactSum:
        return ExactSum(self.count + other.count, self.units + other.units)

    @property
    def exact(self) -> Fraction:
        """The sum."""
        return Fraction(self.units, 1 << SHIFT)

    @property
    def mean(self) -> float:
        """The mean, rounded once: Python divides whole numbers correctly."""
        return self.units / (self.count << SHIFT)


def _units(values: NDArray[np.float64]) -> int:
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    first = int(exponents.min())
    high, low = (
        np.bincount(exponents - first, weights=part.astype(np.float64))
        for part in (whole >> HALF, whole & ((1 << HALF) - 1))
    )
    total = 0
    for i in np.flatnonzero(high.astype(bool) | low.astype(bool)).tolist():
        total += ((int(high[i]) << HALF) + int(low[i])) << (i + first + SHIFT - 53)
    return total
