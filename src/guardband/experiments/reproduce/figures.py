"""The paper's figures in its own arrangement, the printed ones beneath ours or behind them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.data.files import write_whole
from guardband.experiments.reproduce.compare import MEASURES, METHODS, SHOWN, joined, printed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = dict[str, "pd.DataFrame"]

STYLES: dict[str, dict[str, Any]] = {
    "bayes": {"color": "tab:purple", "ls": (0, (5, 1))},
    "qreg-un": {"color": "tab:brown", "ls": ":"},
    "conf-fw": {"color": "tab:green", "ls": "-."},
    "neg-ll": {"color": "tab:red", "ls": (0, (3, 1, 1, 1))},
    "high-q": {"color": "0.45", "ls": "--"},
    "conf-nn": {"color": "tab:blue", "ls": "-"},
    "pav": {"color": "tab:orange", "ls": "-"},
    "dep1 loss_l1": {"color": "tab:blue", "ls": "-"},
    "dep1 loss_l2": {"color": "tab:blue", "ls": "--"},
    "dep2 loss_l1": {"color": "tab:orange", "ls": "-"},
    "dep2 loss_l2": {"color": "tab:orange", "ls": "--"},
}
TITLES = {
    "coverage": "Average coverage",
    "relative_length": "Relative length",
    "combined_mae": "Combined MAE",
    "length": "Average length",
    "mae": "Mean absolute error",
}
ROWS = {"bike": "Bike Share", "boneage": "Bone Age", "house": "House Price (log)", "traffic": "Traffic"}
BOXES = {
    "paper": "the encoding that comes closest to the paper's, epochs by cross-validation",
    "100 passes": "the same encoding, 100 passes over the training rows whatever cross-validation says",
    "full": "the full encoding, epochs by cross-validation",
}
"""The settings of Figure 2, in words."""
FIGURE_1 = {"figure-1": "tuned", "figure-1-plain": "plain"}
"""The settings that Figure 1 is drawn in."""
SIGNAL = "β'x"


def draw(tables: Tables, folder: Path, note: str | None) -> list[str]:
    """Write every figure that there are results for as SVG and PNG, and return their names.

    ``note`` stands on each of them.
    """
    import matplotlib

    folder.mkdir(exist_ok=True)
    drawn = []
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "guardband", "font.size": 9}):
        for name, make in _figures(tables).items():
            figure = make(tables)
            if figure is None:
                continue
            if note:
                figure.text(0.5, 0.5, note, ha="center", va="center", fontsize=26, color="0.5", alpha=0.25, rotation=12)
            write_whole(folder / f"{name}.svg", partial(figure.savefig, format="svg", metadata={"Date": None}))
            write_whole(folder / f"{name}.png", partial(figure.savefig, format="png", dpi=110))
            drawn.append(name)
    return drawn


def _figures(tables: Tables) -> dict[str, Callable[[Tables], Figure | None]]:
    real = tables["results"]
    real = real[real["experiment"].isin(list(ROWS))] if len(real) else real
    settings = [s for s in BOXES if len(_of(real, setting=s))]
    boxes = {f"figure-2-{s.replace(' ', '-')}": _boxes(s) for s in settings}
    return {
        **{name: _over_signal("1", setting) for name, setting in FIGURE_1.items()},
        **boxes,
        "figure-S1": _sizes,
        "figure-S2": _over_signal("S2"),
        "figure-S3": _depths,
        "convergence": _convergence,
        "sensitivity": _sensitivity,
    }


FURTHEST = 3.0
"""Where an axis ends at the latest, in medians of the methods."""


def _of(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """Return the rows with these values."""
    for name, value in wanted.items():
        frame = frame[frame[name] == value] if len(frame) else frame
    return frame


def _panels(rows: int, height: float = 2.9) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 0.5 + height * rows), layout="constrained")
    return figure, figure.subplots(rows, 3, squeeze=False)


def _over_signal(figure: str, setting: str | None = None) -> Callable[[Tables], Figure | None]:
    """Figures 1 and S2; of Figure 1 in one setting."""
    wanted = [shown for shown in SHOWN if shown[0].startswith(figure) and setting in (None, shown[2])]
    return lambda tables: _curves(tables, wanted)


def _curves(tables: Tables, wanted: list[tuple[str, str, str]]) -> Figure | None:
    """Coverage, length and error along beta'x, ours above, the printed below."""
    curves = tables["curves"]
    parts = [(name, _of(curves, experiment=experiment, setting=setting)) for name, experiment, setting in wanted]
    found = [(name, own) for name, own in parts if len(own)]
    if not found:
        return None
    figure, axes = _panels(2 * len(found))
    for i, (name, own) in enumerate(found):
        for j, measure in enumerate(MEASURES):
            ours, theirs = axes[2 * i][j], axes[2 * i + 1][j]
            for method in METHODS:
                mean = _of(own, method=method).groupby("x")[measure].mean()
                curve = _of(printed("curves"), figure=name, measure=measure, method=method)
                ours.plot(mean.index, mean, label=method, **STYLES[method])
                theirs.plot(curve["x"], curve["value"], label=method, **STYLES[method])
            _alike(ours, theirs, measure, SIGNAL)
            size = "" if name == "1" else f", {name.removeprefix('S2 ')}"
            ours.set_title(f"{TITLES[measure]}: guardband{size}")
            theirs.set_title(f"{TITLES[measure]}: printed{size}")
    axes[0][0].legend(frameon=False, fontsize=7, ncols=2)
    return figure


def _alike(ours: Axes, theirs: Axes, measure: str, below: str) -> None:
    """Give two panels the same limits."""
    low, high = np.min([ours.get_ylim(), theirs.get_ylim()]), np.max([ours.get_ylim(), theirs.get_ylim()])
    for axes in (ours, theirs):
        axes.set_ylim(low, min(high, 3.0) if measure == "relative_length" else high)
        axes.set_xlabel(below)
        axes.spines[["top", "right"]].set_visible(False)
        if measure != "combined_mae":
            axes.axhline(0.9 if measure == "coverage" else 1.0, color="tab:red", lw=0.6)


def _boxes(setting: str) -> Callable[[Tables], Figure | None]:
    """Figure 2: a row for each data set, box plots of 20 repetitions; grey bars are the printed quartiles."""

    def make(tables: Tables) -> Figure:
        figure, axes = _panels(len(ROWS), 2.3)
        for panels, (experiment, title) in zip(axes, ROWS.items(), strict=True):
            own = _of(tables["results"], experiment=experiment, setting=setting)
            for panel, measure in zip(panels, ("coverage", "length", "mae"), strict=True):
                boxes = _of(printed("figure2"), experiment=experiment, measure=measure).set_index("method")
                _box_panel(panel, own, measure, boxes)
                panel.set_title(f"{title}: {TITLES[measure].lower()}", fontsize=9)
        figure.supxlabel("grey: the printed quartiles and median", fontsize=8, color="0.4")
        return figure

    return make


def _box_panel(panel: Axes, own: pd.DataFrame, measure: str, boxes: pd.DataFrame) -> None:
    places = range(len(METHODS), 0, -1)
    for place, method in zip(places, METHODS, strict=True):
        q1, middle, q3 = boxes.loc[method, ["q1", "median", "q3"]]
        panel.plot([q1, q3], [place - 0.33] * 2, color="0.7", lw=3, solid_capstyle="butt")
        panel.plot([middle], [place - 0.33], "|", color="0.4", ms=6)
    panel.set_yticks(list(places), METHODS)
    panel.spines[["top", "right"]].set_visible(False)
    if measure == "coverage":
        panel.axvline(0.9, color="tab:red", lw=0.8)
    values = [_of(own, method=method)[measure].to_numpy() for method in METHODS] if len(own) else []
    if not values:
        panel.text(0.5, 0.5, "not run", transform=panel.transAxes, ha="center", color="0.5")
        return
    finite = [v[np.isfinite(v)] for v in values]
    panel.boxplot(finite, orientation="horizontal", positions=list(places), widths=0.45, flierprops={"ms": 3})
    panel.set_yticks(list(places), METHODS)
    furthest = FURTHEST * np.median([np.median(v) for v in values])
    if panel.get_xlim()[1] > furthest:  # a method that failed would hide all others
        nearest = min(np.concatenate([*finite, boxes["q1"].dropna()]))
        panel.set_xlim(nearest - 0.05 * (furthest - nearest), furthest)
    for place, own_values in zip(places, values, strict=True):
        beyond = int((own_values > panel.get_xlim()[1]).sum())
        if beyond:
            text = f"{beyond} of {len(own_values)} beyond"
            panel.text(0.99, place + 0.3, text, transform=panel.get_yaxis_transform(), ha="right", fontsize=6)


def _sizes(tables: Tables) -> Figure | None:
    """Figure S1: against the number of rows."""
    own = _of(joined(tables), experiment="supplement")
    own = own[own["setting"].str.startswith("n=")] if len(own) else own
    if not len(own):
        return None
    own = own.assign(n=own["setting"].str.removeprefix("n=").astype(int))
    figure, axes = _panels(2)
    for j, measure in enumerate(MEASURES):
        ours, theirs = axes[0][j], axes[1][j]
        for method in METHODS:
            mean = _of(own, method=method).groupby("n")[measure].mean()
            curve = _of(printed("curves"), figure="S1", measure=measure, method=method)
            ours.plot(mean.index, mean, label=method, **STYLES[method])
            theirs.plot(curve["x"], curve["value"], label=method, **STYLES[method])
        _alike(ours, theirs, measure, "training and calibration rows")
        ours.set_title(f"{TITLES[measure]}: guardband")
        theirs.set_title(f"{TITLES[measure]}: printed")
    axes[0][0].legend(frameon=False, fontsize=7, ncols=2)
    return figure


def _depths(tables: Tables) -> Figure | None:
    """Figure S3: conf-nn with one or two hidden layers, absolute or squared loss."""
    own = _of(tables["curves"], experiment="supplement", method="conf-nn")
    own = own[own["setting"].str.startswith("dep")] if len(own) else own
    if not len(own):
        return None
    figure, axes = _panels(2)
    for j, measure in enumerate(MEASURES):
        ours, theirs = axes[0][j], axes[1][j]
        for setting in dict.fromkeys(own["setting"]):
            mean = _of(own, setting=setting).groupby("x")[measure].mean()
            curve = _of(printed("curves"), figure="S3", measure=measure, method=setting)
            ours.plot(mean.index, mean, label=setting, **STYLES[setting])
            theirs.plot(curve["x"], curve["value"], label=setting, **STYLES[setting])
        _alike(ours, theirs, measure, SIGNAL)
        ours.set_title(f"{TITLES[measure]}: guardband")
        theirs.set_title(f"{TITLES[measure]}: printed")
    axes[0][0].legend(frameon=False, fontsize=7)
    return figure


def _convergence(tables: Tables) -> Figure | None:
    """conf-nn's scale, pav's level and the network's distance from the quantiles, against the number of rows."""
    own = _of(tables["details"], experiment="supplement")
    own = own[own["setting"].str.startswith("n=")] if len(own) else own
    if not len(own):
        return None
    own = own.assign(n=own["setting"].str.removeprefix("n=").astype(int))
    figure, axes = _panels(1)
    for panel, (method, column, title, goal) in zip(
        axes[0],
        (
            ("conf-nn", "found", "conf-nn: scale", 1.0),
            ("pav", "found", "pav: chosen level", 0.1),
            ("qreg-un", "combined_mae", "network: distance from the quantiles", 0.0),
        ),
        strict=True,
    ):
        one = _of(own, method=method)
        mean = one.groupby("n")[column].mean()
        panel.plot(one["n"], one[column], ".", color="0.7", ms=4)
        panel.plot(mean.index, mean, "-", color=STYLES[method]["color"])
        panel.axhline(goal, color="tab:red", lw=0.6)
        panel.set_title(title)
        panel.set_xlabel("training and calibration rows")
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _sensitivity(tables: Tables) -> Figure | None:
    """Relative length at each batch size and weight decay, a line for each method."""
    own = _of(tables["details"], experiment="simulation")
    own = own[own["setting"].str.startswith("batch")] if len(own) else own
    if not len(own):
        return None
    parts = own["setting"].str.split(" ", expand=True)
    own = own.assign(batch=parts[1].astype(int), decay=parts[3])
    figure, axes = _panels(1)
    for panel, (batch, one) in zip(axes[0], own.groupby("batch"), strict=False):  # fewer if a run is not finished
        for method in (m for m in METHODS if m != "neg-ll"):  # which chooses its own weight decay
            mean = _of(one, method=method).groupby("decay", sort=False)["relative_length"].mean()
            panel.plot(mean.index, mean, marker=".", label=method, **STYLES[method])
        panel.set(title=f"batches of {batch}", xlabel="weight decay", ylabel="relative length", ylim=(0.7, 1.45))
        panel.axhline(1.0, color="tab:red", lw=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(frameon=False, fontsize=7, ncols=2)
    return figure
