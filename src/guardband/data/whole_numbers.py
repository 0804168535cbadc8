"""Whole-number targets: intervals whose ends are whole numbers too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_WHOLE = 2.0**53
"""Beyond it not every whole number is a float: nothing is rounded."""
NOISE, LARGEST_NOISE = 1e-6, 0.25
"""Networks compute in single precision, and the same one elsewhere, as in ONNX, is off by some units of it."""
WHOLE_ENDS = (
    "The ends of intervals are rounded inward to whole numbers. "
    "The promise assumes that every target is a whole number."
)


def is_whole(y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are whole numbers, ``(n,)``."""
    return np.equal(y, np.floor(y))


def on_whole_numbers(
    lower: Any, point: Any, upper: Any, y_min: float | None, y_max: float | None, xp: Any = np
) -> tuple[Any, Any, Any]:
    """Return lower ends rounded up, upper ends rounded down and the nearest points; ``xp`` is numpy or torch.

    An interval keeps every whole number that it contained, so it covers no less. One that contained none gets its
    rounded point. A wider interval stays at least as wide, and infinite ends stay.
    """
    point = xp.where(abs(point) < LARGEST_WHOLE, xp.round(point) + 0.0, point)
    if y_min is not None or y_max is not None:
        least, most = None if y_min is None else math.ceil(y_min), None if y_max is None else math.floor(y_max)
        point = xp.clip(point, least, most)
    lower, upper = _stepped(lower, -1, xp.ceil, xp), _stepped(upper, 1, xp.floor, xp)
    own = point[:, None] if lower.ndim > point.ndim else point
    # Comparisons with a point that is no number leave the ends alone.
    return xp.where(own < lower, own, lower), point, xp.where(own > upper, own, upper)


def _stepped(end: Any, sign: int, step: Any, xp: Any) -> Any:
    """Return ends rounded; a whole number that only rounding errors keep from lying inside is not cut off."""
    noise = NOISE * xp.clip(abs(end), 1.0, LARGEST_NOISE / NOISE)
    return xp.where(abs(end) < LARGEST_WHOLE, step(end + sign * noise) + 0.0, end)  # 0.0 makes -0.0 a plain zero
