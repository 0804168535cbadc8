"""Long tails: numbers of which some are far beyond what is usual, on a scale that tells them all apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONG, FAR = 10, 0.01
"""A tail is long if this share of the values is so many times farther from the median than is usual."""
FEWEST = 100
"""So many values other than the median are needed to speak of a tail."""


def origin_and_unit(values: Array) -> tuple[float, float | None]:
    """Return the median of values and how far from it the others usually are, None if no tail is long."""
    if len(values) == 0:
        return 0.0, None
    origin = 2 * float(np.median(values / 2))  # the sum of two numbers near the largest overflows
    with np.errstate(over="ignore"):
        distances = np.abs(values - origin)
        away = distances[distances > 0]
        if len(away) < FEWEST or not np.isfinite(distances).all():
            return origin, None
        unit = float(np.median(away))
        is_long = float(np.quantile(away, 1 - FAR)) > LONG * unit and np.isfinite(distances.max() / unit)
    return origin, unit if is_long else None


def signed_log(values: Any, xp: Any) -> Any:
    """Return the logarithms of one more than the size of values, with their signs."""
    return xp.sign(values) * xp.log1p(xp.abs(values))


def signed_exp(values: Any, xp: Any) -> Any:
    """Return the values that ``signed_log`` was given."""
    return xp.sign(values) * xp.expm1(xp.abs(values))
