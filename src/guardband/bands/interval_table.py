"""Intervals as a small table with bars on one axis, for notebooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.few_rows import EACH_END, FewRows
from guardband.markup import rendered

if TYPE_CHECKING:
    from guardband.bands.intervals import Intervals

Array = NDArray[np.float64]

WIDTH, HEIGHT, EDGE = 220.0, 16.0, 8.0
"""Size of a picture; infinite ends are arrows in the margin of this width."""


def interval_table(bands: Intervals) -> str:
    """Return the HTML of intervals."""
    few = FewRows.of(bands)
    axis = _Axis(np.concatenate([few.lower.ravel(), few.point, few.upper.ravel()]))
    levels = few.lower.shape[1]
    rows: list[dict[str, Any] | None] = [
        {
            "label": few.labels[i],
            "cells": cells,
            "bars": [axis.bar(few.lower[i, step], few.upper[i, step], step, levels) for step in range(levels)],
            "point": axis.place(few.point[i]),
            "spoken": f"from {cells[0]} to {cells[-1]}",
        }
        for i, cells in enumerate(few.cells())
    ]
    if few.rows_left_out:
        rows.insert(EACH_END, None)
    return rendered(
        "intervals.html",
        title=few.title,
        names=few.names,
        rows=rows,
        hidden=few.rows_left_out,
        low=few.written(axis.low),
        high=few.written(axis.high),
        zero=axis.place(0.0) if axis.low < 0 < axis.high else None,
        notes=_notes(bands, few.levels_left_out),
    )


def _notes(bands: Intervals, levels_left_out: int) -> list[str]:
    out = []
    if levels_left_out:
        more = "1 more level is" if levels_left_out == 1 else f"{levels_left_out} more levels are"
        out.append(f"{more} not shown. Call to_pandas() or to_polars() to see all of them.")
    if bands.certificate is not None:
        out.append(bands.certificate.promise.headline(bands.certificate.method))
    return [*out, bands.unlike_words] if bands.unlike_words else out


class _Axis:
    """From values to places in a picture; what is infinite lies in the margins."""

    def __init__(self, values: Array) -> None:
        finite = values[np.isfinite(values)]
        self.low, self.high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)

    def place(self, value: float) -> float | None:
        """Return where a value lies, None if it is missing."""
        if math.isnan(value):
            return None
        if math.isinf(value):
            return 0.0 if value < 0 else WIDTH
        half = self.high / 2 - self.low / 2  # halves: the difference of two large numbers may be infinite
        share = 0.5 if half == 0 else (float(value) / 2 - self.low / 2) / half
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)

    def bar(self, lower: float, upper: float, step: int, steps: int) -> str:
        """Return the outline of an interval: the widest of several is the thinnest, and infinite ends are arrows."""
        left, right = self.place(lower), self.place(upper)
        if left is None or right is None:
            return ""
        half, middle = (HEIGHT / 2 - 2) * (step + 1) / (2 * steps) + 1, HEIGHT / 2
        top, bottom = middle - half, middle + half
        if math.isinf(lower):
            start = f"M{EDGE} {bottom:g}V{HEIGHT:g}L0 {middle:g}L{EDGE} 0V{top:g}"
        else:
            start = f"M{left:g} {bottom:g}V{top:g}"
        if math.isinf(upper):
            edge = WIDTH - EDGE
            return f"{start}H{edge:g}V0L{WIDTH:g} {middle:g}L{edge:g} {HEIGHT:g}V{bottom:g}Z"
        return f"{start}H{max(right, left + 1):g}V{bottom:g}Z"
