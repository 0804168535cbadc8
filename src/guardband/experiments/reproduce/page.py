"""One page for a run: the verdicts, every figure with its table, and the choices that were made."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.experiments.reproduce.claims import Claim
from guardband.experiments.reproduce.compare import METHODS, joined
from guardband.experiments.reproduce.figures import BOXES, FIGURE_1
from guardband.experiments.reproduce.summary import AGREEMENT, READ, agreement_rows, remarks
from guardband.report.rendering import rendered

if TYPE_CHECKING:
    import pandas as pd

CAPTIONS = {
    "figure-1": (
        "Figure 1",
        "Artificial data, each measure along β'x. Weight decay chosen on the training rows (setting “tuned”).",
    ),
    "figure-1-plain": (
        "Figure 1, no weight decay",
        "The same without weight decay, as in the paper (setting “plain”).",
    ),
    "figure-S1": ("Figure S1", "The same measures against the number of training and calibration rows."),
    "figure-S2": ("Figure S2", "Figure 1 on fewer rows."),
    "figure-S3": ("Figure S3", "conf-nn with one or two hidden layers, absolute or squared loss."),
    "convergence": ("As the data grow", "conf-nn's scale, pav's level and the network's distance from the quantiles."),
    "sensitivity": (
        "How sensitive each method is",
        "Relative length at each batch size and weight decay; neg-ll, which chooses its own, is left out.",
    ),
}
NUMBERS = ("printed", "ours", "difference", "standard error")
Folded = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""A table behind its title: the title, the head and the rows."""


def page_of(
    drawn: Path,
    about: dict[str, Any],
    tables: dict[str, pd.DataFrame],
    comparison: pd.DataFrame,
    claims: Sequence[Claim],
    figures: Sequence[str],
    note: str | None,
) -> str:
    """Return the page, on its own: the figures drawn are inside it."""
    agreement = agreement_rows(comparison)
    view = {
        "title": "The paper, reproduced",
        "made_with": _listed(about["settings"]),
        "runs": [_listed(run) for run in about["runs"]],
        "note": note,
        "claims": claims,
        "read": READ,
        "agreement_head": AGREEMENT,
        "agreement": agreement,
        "remarks": remarks(comparison) if agreement else "",
        "figures": [_figure(drawn, name, comparison) for name in figures],
        "settings": _settings(tables),
        "dead": _dead(tables),
    }
    return rendered("reproduction.html", view)


def _listed(entries: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in entries.items())


def _figure(drawn: Path, name: str, comparison: pd.DataFrame) -> dict[str, Any]:
    """Return a figure with its words, its picture and the tables that belong to it."""
    title, caption = _caption(name)
    return {
        "name": name,
        "title": title,
        "caption": caption,
        "source": _inline(drawn / name),
        "tables": _beside(name, comparison),
    }


def _caption(name: str) -> tuple[str, str]:
    if name in CAPTIONS:
        return CAPTIONS[name]
    setting = name.removeprefix("figure-2-").replace("-", " ")
    return f"Figure 2, {setting}", f"Real data: {BOXES[setting]}. Grey bars are the printed quartiles."


def _inline(stem: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(stem.with_suffix(".svg").read_bytes()).decode()


def _beside(name: str, comparison: pd.DataFrame) -> list[Folded]:
    """Return the tables of a figure: printed, ours, the difference and its standard error."""
    if not len(comparison):
        return []
    if name.startswith("figure-2-"):
        setting = name.removeprefix("figure-2-").replace("-", " ")
        own = comparison[(comparison["figure"] == "2") & (comparison["setting"] == setting)]
        return [_boxes(str(experiment), part) for experiment, part in own.groupby("experiment")]
    own = comparison[comparison["figure"].str.startswith(name.removeprefix("figure-"))]
    if name in FIGURE_1:
        own = comparison[(comparison["figure"] == "1") & (comparison["setting"] == FIGURE_1[name])]
    return [_points(str(figure), part) for figure, part in own.groupby("figure")]


def _boxes(name: str, own: pd.DataFrame) -> Folded:
    order = sorted(own.index, key=lambda i: (own["measure"][i], METHODS.index(own["method"][i])))
    rows = [(own["measure"][i], own["method"][i], *_numbers(own.loc[i])) for i in order]
    return f"{name}: printed, guardband, difference", ("measure", "method", *NUMBERS), rows


def _points(name: str, own: pd.DataFrame) -> Folded:
    rows = [
        (row["measure"], row["method"], f"{row['x']:g}", *_numbers(row), "" if row["measured"] else "interpolated")
        for _, row in own.iterrows()
    ]
    return f"{name}: printed, guardband, difference", ("measure", "method", "x", *NUMBERS, "printed curve"), rows


def _numbers(row: pd.Series[Any]) -> tuple[str, ...]:
    return (f"{row['printed']:.3f}", f"{row['ours']:.3f}", f"{row['difference']:+.3f}", f"{row['standard_error']:.3f}")


def _settings(tables: dict[str, pd.DataFrame]) -> list[Folded]:
    """Return means over repetitions, with standard errors, for each experiment, setting and method."""
    if not len(tables["results"]):
        return []
    both = joined(tables)
    out: list[Folded] = []
    for (experiment, setting), own in both.groupby(["experiment", "setting"], sort=False):
        known = own.dropna(axis="columns", how="all")
        measures = [name for name in ("coverage", "length", "relative_length", "mae") if name in known]
        rows = []
        for method, values in own.groupby("method", sort=False):
            shown = [_with_error(values[name].to_numpy()) for name in measures]
            rows.append(
                (method, len(values), *shown, f"{values['epochs'].median():g}", f"{values['weight_decay'].median():g}")
            )
        head = ("method", "repetitions", *(name.replace("_", " ") for name in measures), "epochs", "weight decay")
        title = f"{experiment}, {setting}: {int(own['n_train'].iloc[0]):,} rows train, "
        title += f"{int(own['n_calibration'].iloc[0]):,} calibrate, {int(own['n_test'].iloc[0]):,} judge"
        out.append((title, head, rows))
    return out


def _dead(tables: dict[str, pd.DataFrame]) -> list[tuple[str, ...]]:
    """Return the share of networks with a dead side, and of repetitions whose conf-nn interval is the whole line."""
    details, results = tables["details"], tables["results"]
    relu = (
        details[details["setting"].str.startswith("relu") & (details["method"] == "pav")] if len(details) else details
    )
    rows: list[tuple[str, ...]] = []
    if not len(relu):
        return rows
    for (experiment, setting), own in relu.groupby(["experiment", "setting"], sort=False):
        lengths = results[
            (results["experiment"] == experiment) & (results["setting"] == setting) & (results["method"] == "conf-nn")
        ]["length"]
        rows.append((experiment, setting, f"{own['dead'].mean():.1%}", f"{np.isinf(lengths).mean():.1%}"))
    return rows


def _with_error(values: np.ndarray[Any, Any]) -> str:
    infinite = int(np.isinf(values).sum())
    if infinite:
        return f"{infinite} of {len(values)} infinite"
    error = f" ({values.std(ddof=1) / np.sqrt(len(values)):.4f})" if len(values) > 1 else ""
    return f"{values.mean():.4f}{error}"
