"""The page's plots as files for papers, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from guardband.data.files import write_whole
from guardband.data.packages import need_packages
from guardband.report.parts import Checked
from guardband.words import level_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOLD, PALE, MISS, BAND, EDGE, INK = "#14406b", "#5c8fbf", "#c2410c", "#e3e9ef", "#7d8894", "#5a636c"
SIDES: tuple[Literal["low"], Literal["high"]] = ("low", "high")
KINDS = ("svg", "png")
LONGEST_LABEL = 32
FARTHEST = 1e300


def write_figures(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the plots of a document as SVG and PNG, each whole or not at all, and return the files.

    A document without labelled rows has none. Of several targets each has a folder of its own.
    """
    need_packages("plots", "matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if document["audit"] is None:
        return []
    if "several" in document:
        shared = {name: value for name, value in document.items() if name != "several"}
        each = [shared | own for own in document["several"]]
        return [path for j, own in enumerate(each) for path in write_figures(own, Path(folder) / f"target-{j + 1}")]
    own, folder = cast(Checked, document), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plots: dict[str, tuple[tuple[float, float], Callable[[Axes, Checked], None]]] = {
        "intervals": ((7.2, 3.0), _intervals),
    }
    if any(family["key"] == "width" for family in own["audit"]["families"]):
        plots["coverage-by-width"] = ((4.6, 3.2), _by_width)
    if any(family["key"] == "time" for family in own["audit"]["families"]):
        plots["coverage-over-time"] = ((7.2, 3.0), _over_time)
    if own["audit"]["curve"] is not None:
        plots["levels"] = ((4.2, 3.6), _levels)
    if own["widths"] is not None:
        plots["widths"] = ((4.6, 2.6), _widths)
    written = []
    # The salt makes the names inside an SVG, and so the whole file, the same in every run. No name goes to LaTeX.
    with rc_context({"svg.hashsalt": "guardband", "font.size": 9, "text.usetex": False}):
        for name, (size, draw) in plots.items():
            figure = Figure(figsize=size, layout="constrained")
            axes = figure.subplots()
            draw(axes, own)
            axes.spines[["top", "right"]].set_visible(False)
            for kind in KINDS:
                path = folder / f"{name}.{kind}"
                write_whole(path, partial(_save, figure, kind))
                written.append(path)
    return written


def _save(figure: Figure, kind: str, part: Path) -> None:
    figure.savefig(part, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)


def _intervals(axes: Axes, document: Checked) -> None:
    rows = document["rows"]
    at, n = rows["headline"], rows["sampled"]
    order = np.arange(n)
    lower, upper, y = (_drawable(side[:n]) for side in (rows["lower"][at], rows["upper"][at], rows["y"]))
    inside = np.array([hit == "1" for hit in rows["inside"][at][:n]])
    axes.vlines(order[inside], lower[inside], upper[inside], color=PALE, lw=0.8)
    axes.vlines(order[~inside], lower[~inside], upper[~inside], color=MISS, lw=0.8)
    axes.scatter(order[inside], y[inside], s=3, color=HOLD, label="inside", zorder=3)
    axes.scatter(order[~inside], y[~inside], s=14, color=MISS, marker="x", lw=1, label="outside", zorder=3)
    axes.set(xlabel="rows in order of prediction", ylabel=_safe(document["response"]), xticks=[])
    axes.legend(frameon=False, loc="upper left")


def _by_width(axes: Axes, document: Checked) -> None:
    (family,) = (own for own in document["audit"]["families"] if own["key"] == "width")
    strata = [own for own in family["strata"] if own["n"]]
    place, shares = np.arange(len(strata)), [own["covered"] / own["n"] for own in strata]
    low, high = (np.array([own[side] / own["n"] for own in strata]) for side in SIDES)
    axes.barh(place, high - low, left=low, height=0.6, color=BAND, ec=EDGE, label="expected range")
    axes.scatter(shares, place, color=HOLD, s=18, zorder=3, label="rows inside")
    axes.axvline(document["level"], color=INK, lw=0.8, ls="--")
    axes.set(
        yticks=place, yticklabels=[_safe(own["label"]) for own in strata], xlabel="share of rows inside", ylabel="width"
    )
    axes.set_xlim(min([low.min(), *shares]) - 0.01, 1.01)
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)


def _over_time(axes: Axes, document: Checked) -> None:
    (family,) = (own for own in document["audit"]["families"] if own["key"] == "time")
    strata = [own for own in family["strata"] if own["n"]]
    place, shares = np.arange(len(strata)), np.array([own["covered"] / own["n"] for own in strata])
    low, high = (np.array([own[side] / own["n"] for own in strata]) for side in SIDES)
    fewer = np.array([own["flag"] == "low" for own in strata])
    axes.bar(place, high - low, 0.6, bottom=low, color=BAND, ec=EDGE, label="expected range")
    axes.scatter(place[~fewer], shares[~fewer], color=HOLD, s=18, zorder=3, label="rows inside")
    if fewer.any():
        axes.scatter(place[fewer], shares[fewer], color=MISS, marker="x", s=24, zorder=3, label="fewer than expected")
    axes.axhline(document["level"], color=INK, lw=0.8, ls="--")
    axes.set(xlabel=_safe(family["title"]), ylabel="share of rows inside", xticks=place)
    axes.set_xticklabels([_safe(own["label"]) for own in strata], rotation=90)
    axes.set_ylim(min([low.min(), shares.min()]) - 0.01, 1.01)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _levels(axes: Axes, document: Checked) -> None:
    curve, n = document["audit"]["curve"], document["audit"]["n"]
    assert curve is not None
    levels = np.array(curve["levels"])
    low, high, covered = (np.array(curve[key]) / n for key in ("low", "high", "covered"))
    axes.fill_between(levels, low, high, fc=BAND, ec=EDGE, lw=0.8, label="expected range")
    axes.plot(levels, levels, color=INK, lw=0.8, ls="--")
    axes.plot(levels, covered, color=HOLD, lw=1.6, label="rows inside")
    axes.set(xlabel="confidence level", ylabel="share of rows inside")
    axes.legend(frameon=False, loc="upper left")


def _widths(axes: Axes, document: Checked) -> None:
    own = document["widths"]
    assert own is not None
    edges = _drawable(own["edges"])
    axes.bar(edges[:-1], own["counts"], np.diff(edges), align="edge", color=PALE, ec="white", lw=0.4, label="rows")
    axes.bar(edges[:-1], own["missed"], np.diff(edges), align="edge", color=MISS, ec="white", lw=0.4, label="outside")
    level = "" if document.get("risk") is not None else f"{level_name(document['level'])} "
    axes.set(xlabel=f"width of the {level}interval", ylabel="rows")
    axes.legend(frameon=False, loc="upper right")


def _drawable(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return numbers whose differences are numbers too: an axis has no room for others."""
    return np.asarray(np.clip(np.array(values, dtype=float), -FARTHEST, FARTHEST), dtype=float)


def _safe(text: str) -> str:
    """Return a name on one line, of bounded length, in which no dollar sign starts a formula."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return (plain if len(plain) <= LONGEST_LABEL else f"{plain[: LONGEST_LABEL - 1]}…").replace("$", r"\$")
