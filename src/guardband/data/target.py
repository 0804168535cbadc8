"""The target: checked at the border, transformed, standardised on the training rows, and brought back."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.data.codes import center_and_scale
from guardband.data.table import as_array, numbers_of_objects
from guardband.exceptions import TargetWarning, warn
from guardband.words import rows_named

Array = NDArray[np.float64]
Transform = Literal["log"]


def read_target(y: Any, n_rows: int, first_row: int = 0, may_miss: bool = False) -> Array:
    """Return the target as ``(n,)`` float64; NaN and infinity are refused with the rows named.

    With ``may_miss`` NaN is left where it is.
    """
    array = as_array(y)
    if array.ndim != 1:
        raise ValueError(f"y must be one column of shape (n,), found shape {array.shape}.")
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported: y must hold real numbers.")
    try:
        if array.dtype.kind in "mM":
            raise TypeError("dates and durations have no unit of length")
        values = numbers_of_objects(array) if array.dtype.kind in "OU" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers, found {array.dtype} values: {error}.") from None
    if len(values) != n_rows:
        raise ValueError(f"X and y must have the same number of rows, found {n_rows} and {len(values)}.")
    for holds, what in (
        (np.isnan(values) & (not may_miss), "NaN"),
        (np.isinf(values), "infinity or a value too large for dtype('float64')"),
    ):
        if holds.any():
            raise ValueError(
                f"Input y contains {what}. It must be finite: see {rows_named(np.flatnonzero(holds) + first_row)}."
            )
    return values


@dataclass(frozen=True)
class Target:
    """The scale on which networks learn a target, and the way back to its own units.

    ``work`` units are those after the transform: intervals are calibrated there, since an increasing
    transform keeps coverage. ``learn`` units are work units standardised on the training rows.
    """

    transform: Transform | None
    y_min: float | None
    y_max: float | None
    center: float = 0.0
    scale: float = 1.0

    def learn(self, y: Array) -> Target:
        """Return the target standardised on the training rows."""
        center, scale = center_and_scale(self.to_work(y))
        if scale == 0:
            warn(f"y is constant on the training rows (n = {len(y)}): there is nothing to learn.", TargetWarning)
        return Target(self.transform, self.y_min, self.y_max, center, scale or 1.0)

    def to_work(self, y: Array) -> Array:
        """Return values in work units, ``(n,) -> (n,)``."""
        for bad, rule in (
            (y < self.y_min if self.y_min is not None else None, f"at least y_min = {self.y_min}"),
            (y > self.y_max if self.y_max is not None else None, f"at most y_max = {self.y_max}"),
            (y <= 0 if self.transform == "log" else None, 'positive for target_transform="log"'),
        ):
            if bad is not None and bad.any():
                rows = np.flatnonzero(bad)
                raise ValueError(f"y must be {rule}, found {y[rows[0]]:g}: see {rows_named(rows)}.")
        return np.log(y) if self.transform == "log" else y

    def to_learn(self, y: Array) -> Array:
        """Return values in learn units, ``(n,) -> (n,)``."""
        return (self.to_work(y) - self.center) / self.scale

    def to_units(self, lower: Any, point: Any, upper: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return ends and points in the target's own units, rounded outward; ``xp`` is numpy or torch."""
        if self.transform == "log":
            # An error of one unit in the last place of log y is one of |log y| units in y.
            slack = 4 * np.finfo(np.float64).eps
            with np.errstate(over="ignore", invalid="ignore") if xp is np else nullcontext():
                low = xp.exp(lower) * (1 - slack * (1 + xp.abs(lower)))
                high = xp.exp(upper) * (1 + slack * (1 + xp.abs(upper)))
            lower, upper, point = xp.where(lower == -xp.inf, 0.0, low), high, xp.exp(point)
        if self.y_min is not None or self.y_max is not None:
            lower, point, upper = (xp.clip(v, self.y_min, self.y_max) for v in (lower, point, upper))
        return lower, point, upper
