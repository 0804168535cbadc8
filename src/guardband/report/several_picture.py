"""Intervals of some rows as a picture that needs no script: bars in order of prediction, with the true values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from guardband.report.rendering import or_infinite

WIDTH, HEIGHT, LEFT, EDGE = 720.0, 220.0, 56.0, 10.0
MOST_BARS = 120
"""More bars than that cannot be told apart."""


def picture(rows: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the outlines of a picture of these rows at their first level; None if no interval is finite."""
    at = rows["headline"]
    parts = (rows["lower"][at], rows["point"], rows["upper"][at], rows["y"])
    every = [[np.nan if value is None else value for value in part] for part in parts]
    lower, point, upper, y = (np.array(part, dtype=np.float64)[: rows["sampled"]] for part in every)
    finite = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper) & np.isfinite(point) & np.isfinite(y))
    if not len(finite):
        return None
    order = finite[np.argsort(point[finite], kind="stable")]
    chosen = order[np.linspace(0, len(order) - 1, min(MOST_BARS, len(order))).round().astype(np.intp)]
    lower, point, upper, y = lower[chosen], point[chosen], upper[chosen], y[chosen]
    every_end = np.stack([lower, point, upper, y]) / 4  # a quarter of the largest number leaves room for differences
    low, high = every_end.min(), every_end.max()
    reach = (high - low) or 1.0

    def place(values: Any) -> Any:
        return np.round(HEIGHT - EDGE - (values / 4 - low) / reach * (HEIGHT - 2 * EDGE), 1)

    x = np.round(LEFT + (np.arange(len(chosen)) + 0.5) * (WIDTH - LEFT - EDGE) / len(chosen), 1)
    inside = (lower <= y) & (y <= upper)
    bars = [f"M{a:g} {b:g}V{c:g}" for a, b, c in zip(x, place(lower), place(upper), strict=True)]
    dots = [f"M{a:g} {b:g}h0" for a, b in zip(x, place(y), strict=True)]
    crosses = [f"M{a - 3:g} {b - 3:g}l6 6m0-6l-6 6" for a, b in zip(x, place(y), strict=True)]
    line = "".join(f"{'L' if i else 'M'}{a:g} {b:g}" for i, (a, b) in enumerate(zip(x, place(point), strict=True)))
    return {
        "held": "".join(bar for bar, is_in in zip(bars, inside, strict=True) if is_in),
        "lost": "".join(bar for bar, is_in in zip(bars, inside, strict=True) if not is_in),
        "dots": "".join(dot for dot, is_in in zip(dots, inside, strict=True) if is_in),
        "crosses": "".join(cross for cross, is_in in zip(crosses, inside, strict=True) if not is_in),
        "line": line,
        "ticks": [(or_infinite(tick), float(place(tick))) for tick in round_ticks(float(low), float(high))],
        "bars": len(chosen),
    }


def round_ticks(low: float, high: float) -> list[float]:
    """Return three to eight round numbers from four times ``low`` to four times ``high``; one if these are equal.

    >>> round_ticks(19.05, 3850)
    [5000.0, 10000.0, 15000.0]
    """
    least = (high - low) / 3 * 4
    if not 1e-300 < least < math.inf:
        return [4 * low]
    power = 10.0 ** math.floor(math.log10(least))
    step = next(own * power for own in (5, 2, 1, 0.5) if own * power <= least)
    first, last = math.ceil(low / (step / 4)), math.floor(high / (step / 4))
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)] or [4 * low]
