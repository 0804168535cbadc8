"""A picture of intervals, by matplotlib (the extra ``plots``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from guardband.bands.intervals import Intervals

INSIDE, OUTSIDE, POINT = "#2f6db3", "#c0392b", "#1b1b1b"


def plot_intervals(bands: Intervals, y: NDArray[np.float64] | None, level: int, most: int, ax: Any) -> Any:
    """Draw intervals as vertical lines in order of their point; see ``Intervals.plot``."""
    from matplotlib import pyplot

    inside = None if y is None else bands.contains(y).reshape(len(bands), -1)[:, level]
    rows = np.random.default_rng(0).permutation(len(bands))[:most]
    rows = rows[np.argsort(bands.point[rows], kind="stable")]
    lower, upper = (side[rows, level] for side in bands.per_level())
    place = np.arange(len(rows))
    ax = pyplot.subplots(figsize=(8, 4))[1] if ax is None else ax
    bottom, top = _ends(lower, upper, bands.point[rows] if y is None else np.append(bands.point[rows], y[rows]))
    ax.vlines(place, bottom, top, color=INSIDE, alpha=0.35, lw=1.5, label="interval")
    ax.plot(place, bands.point[rows], color=POINT, lw=1, label="prediction")
    if y is not None and inside is not None:
        hit = inside[rows]
        ax.scatter(place[hit], y[rows][hit], s=9, color=INSIDE, zorder=3, label="true value, inside")
        ax.scatter(place[~hit], y[rows][~hit], s=24, color=OUTSIDE, marker="x", zorder=3, label="true value, outside")
    ax.set(xlabel="rows in order of their prediction", xticks=[])
    ax.legend(frameon=False)
    return ax


def _ends(lower: Any, upper: Any, values: Any) -> tuple[Any, Any]:
    """Return ends that can be drawn: infinite ones lie beyond all that is finite."""
    finite = np.concatenate([end[np.isfinite(end)] for end in (lower, upper, values)])
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    beyond = 0.1 * (high - low or 1.0)
    return np.maximum(lower, low - beyond), np.minimum(upper, high + beyond)
