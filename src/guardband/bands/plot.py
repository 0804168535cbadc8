"""A picture of intervals, by matplotlib (the extra ``plots``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.words import level_name

if TYPE_CHECKING:
    from guardband.bands.intervals import Intervals

THOUSAND, LARGEST, SPAN = 1e3, 1e15, 20
"""From where to where, and over how much, the numbers of an axis are whole and have separators."""
INSIDE, OUTSIDE, POINT = "#2f6db3", "#c0392b", "#1b1b1b"


def plot_intervals(
    bands: Intervals, y: NDArray[np.float64] | None, level: int, most: int, ax: Any, name: Any = None
) -> Any:
    """Draw intervals as vertical lines in order of their point; see ``Intervals.plot``."""
    from matplotlib import pyplot

    inside = None if y is None else bands.contains(y).reshape(len(bands), -1)[:, level]
    rows = np.random.default_rng(0).permutation(len(bands))[:most]
    rows = rows[np.argsort(bands.point[rows], kind="stable")]
    lower, upper = (side[rows, level] for side in bands.per_level())
    place = np.arange(len(rows))
    ax = pyplot.subplots(figsize=(8, 4), layout="constrained")[1] if ax is None else ax
    bottom, top = _ends(lower, upper, bands.point[rows] if y is None else np.append(bands.point[rows], y[rows]))
    ax.vlines(place, bottom, top, color=INSIDE, alpha=0.35, lw=1.5, label="interval")
    ax.plot(place, bands.point[rows], color=POINT, lw=1, label="prediction")
    if y is not None and inside is not None:
        hit = inside[rows]
        ax.scatter(place[hit], y[rows][hit], s=9, color=INSIDE, zorder=3, label="true value, inside")
        ax.scatter(place[~hit], y[rows][~hit], s=24, color=OUTSIDE, marker="x", zorder=3, label="true value, outside")
    named = "Calibrated" if bands.confidence_level is None else level_name(bands.levels[level])
    counted = "" if inside is None else f": {inside.sum():,} of {len(bands):,} true values inside"
    drawn = "rows" if len(rows) == len(bands) else f"{len(rows):,} of {len(bands):,} rows"
    bounds = "intervals" if bands.side == "both" else f"{bands.side} bounds"
    ax.set(title=f"{named} {bounds}{counted}", xlabel=f"{drawn} in order of their prediction")
    ax.set(ylabel=name.replace("$", r"\$") if isinstance(name, str) else "target", xticks=[])
    if THOUSAND <= np.abs(ax.get_ylim()).max() < LARGEST and np.ptp(ax.get_ylim()) >= SPAN:
        ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.legend(frameon=False)
    return ax


def _ends(lower: Any, upper: Any, values: Any) -> tuple[Any, Any]:
    """Return ends that can be drawn: infinite ones lie beyond all that is finite."""
    finite = np.concatenate([end[np.isfinite(end)] for end in (lower, upper, values)])
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    beyond = 0.1 * (high - low or 1.0)
    return np.maximum(lower, low - beyond), np.minimum(upper, high + beyond)
