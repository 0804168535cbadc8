"""Figures of experiments, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guardband.data.files import write_whole
from guardband.data.packages import need_packages

if TYPE_CHECKING:
    from guardband.experiments.demo import Demo

SHOWN = 200
COLOURS = {"oracle": "0.25", "conf-nn": "tab:blue", "pav": "tab:orange"}


def draw_demo(demo: Demo, path: Path) -> Path:
    """Write one figure: intervals, coverage and length along beta'x."""
    need_packages("plots", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    cloud, cover, length = figure.subplots(1, 3)
    edges = np.linspace(1, 4, 13)
    middle = (edges[1:] + edges[:-1]) / 2
    shown = np.argsort(demo.signal[:SHOWN])
    oracle = demo.rows[0].bands.upper - demo.rows[0].bands.lower
    for row in demo.rows:
        inside = (row.bands.lower <= demo.y) & (demo.y <= row.bands.upper)
        style = {"color": COLOURS[row.method], "label": row.method}
        cover.plot(middle, _binned(demo.signal, inside, edges), marker="o", ms=3, **style)
        length.plot(middle, _binned(demo.signal, (row.bands.upper - row.bands.lower) / oracle, edges), **style)
    perfect, ours = demo.rows[0].bands, demo.rows[1].bands
    at = demo.signal[shown]
    cloud.vlines(at, ours.lower[shown], ours.upper[shown], lw=1, alpha=0.4, color=COLOURS["conf-nn"], label="conf-nn")
    cloud.scatter(at, demo.y[shown], s=7, color="0.4", zorder=3, label="test rows")
    cloud.plot(at, perfect.lower[shown], color=COLOURS["oracle"], label="oracle")
    cloud.plot(at, perfect.upper[shown], color=COLOURS["oracle"])
    cover.axhline(0.9, color="tab:red", lw=1)
    cover.set(ylim=(0.8, 1), ylabel="coverage on test rows", title="Coverage, 90% asked for")
    length.set(ylabel="length / oracle's length", title="Length relative to the oracle")
    cloud.set(ylabel="y", title=f"Intervals of {SHOWN} test rows")
    for axes in (cloud, cover, length):
        axes.set_xlabel("β'x")
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    write_whole(path, lambda part: figure.savefig(part, format="png", dpi=150))
    return path


def _binned(x: NDArray[np.float64], values: NDArray[np.generic], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of values over bins of x, ``(bins,)``."""
    which = np.digitize(x, edges) - 1
    return np.array([values[which == j].mean() for j in range(len(edges) - 1)])
