"""One page for a run: the verdicts, every figure with its table, and the choices that were made."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.experiments.reproduce.claims import Claim
from guardband.experiments.reproduce.compare import METHODS, joined
from guardband.experiments.reproduce.figures import BOXES, FIGURE_1
from guardband.experiments.reproduce.summary import AGREEMENT, READ, agreement_rows, remarks
from guardband.report.html import skeleton, table

if TYPE_CHECKING:
    import pandas as pd

CAPTIONS = {
    "figure-1": ("Figure 1", "Artificial data, each measure along β'x. Weight decay chosen on D1 (setting “tuned”)."),
    "figure-1-plain": (
        "Figure 1, no weight decay",
        "The same without weight decay, as in the paper (setting “plain”).",
    ),
    "figure-S1": ("Figure S1", "The same measures against the number of rows of D1 and D2."),
    "figure-S2": ("Figure S2", "Figure 1 on fewer rows."),
    "figure-S3": ("Figure S3", "conf-nn with one or two hidden layers, absolute or squared loss."),
    "convergence": ("As the data grow", "conf-nn's scale, pav's level and the network's distance from the quantiles."),
    "sensitivity": (
        "How sensitive each method is",
        "Relative length at each batch size and weight decay; neg-ll, which chooses its own, is left out.",
    ),
}
CLASS = {"holds": "holds", "holds in part": "part", "does not hold": "not"}


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
    parts = [
        "<h1>Adaptive, Distribution-Free Prediction Intervals for Deep Networks, reproduced</h1>",
        "<p>Kivaranovic, Johnson &amp; Leeb, AISTATS 2020. Printed numbers were read off the paper's figures.</p>",
        f"<p class=small>{escape(_listed(about['settings']))}</p>",
        f"<ul class=small>{''.join(f'<li>{escape(_listed(run))}</li>' for run in about['runs'])}</ul>",
        f"<p class=quick>{escape(note)}</p>" if note else "",
        "<section><h2>The paper's claims</h2>",
        *(_claim(claim) for claim in claims),
        "</section><section><h2>How far the curves agree</h2>",
        _agreement(comparison),
    ]
    for name in figures:
        title, caption = _caption(name)
        parts += [
            f"</section><section><h2 id={name}>{escape(title)}</h2>",
            f"<figure><img alt='{escape(title)}: {escape(caption)}' src='{_inline(drawn / name)}'>",
            f"<figcaption>{escape(caption)}</figcaption></figure>",
            _beside(name, comparison),
        ]
    parts += ["</section><section><h2>All settings</h2>", _settings(tables)]
    parts += ["</section><section><h2>Dead sides of the ReLU ordering</h2>", _dead(tables), "</section>"]
    body = "\n".join(part for part in parts if part)
    return skeleton("The paper, reproduced", f"<main>\n{body}\n</main>")


def _listed(entries: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in entries.items())


def _claim(claim: Claim) -> str:
    words = "".join(f"<li>{escape(line)}</li>" for line in claim.words)
    return (
        f"<div class='claim {CLASS.get(claim.verdict, '')}'><p>{escape(claim.text)}</p>"
        f"<p class=says>{escape(claim.verdict.capitalize())}.</p>"
        f"{f'<p>{escape(claim.why)}</p>' if claim.why else ''}<ul>{words}</ul></div>"
    )


def _agreement(comparison: pd.DataFrame) -> str:
    """Return how many points of the printed curves ours differ from, beside how far a point may be misread."""
    rows = agreement_rows(comparison)
    if not rows:
        return "<p>Not run.</p>"
    return f"<p>{escape(READ)}</p>{table(AGREEMENT, rows)}<p>{escape(remarks(comparison))}</p>"


def _caption(name: str) -> tuple[str, str]:
    if name in CAPTIONS:
        return CAPTIONS[name]
    setting = name.removeprefix("figure-2-").replace("-", " ")
    return f"Figure 2, {setting}", f"Real data: {BOXES[setting]}. Grey bars are the printed quartiles."


def _inline(stem: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(stem.with_suffix(".svg").read_bytes()).decode()


def _beside(name: str, comparison: pd.DataFrame) -> str:
    """Return the table of a figure: printed, ours, the difference and its standard error."""
    if not len(comparison):
        return ""
    if name.startswith("figure-2-"):
        setting = name.removeprefix("figure-2-").replace("-", " ")
        own = comparison[(comparison["figure"] == "2") & (comparison["setting"] == setting)]
        return "".join(
            f"<details><summary>{escape(str(experiment))}: printed, ours, difference</summary>{_boxes(part)}</details>"
            for experiment, part in own.groupby("experiment")
        )
    own = comparison[comparison["figure"].str.startswith(name.removeprefix("figure-"))]
    if name in FIGURE_1:
        own = comparison[(comparison["figure"] == "1") & (comparison["setting"] == FIGURE_1[name])]
    return "".join(
        f"<details><summary>{escape(str(figure))}: printed, ours, difference</summary>{_points(part)}</details>"
        for figure, part in own.groupby("figure")
    )


def _boxes(own: pd.DataFrame) -> str:
    order = sorted(own.index, key=lambda i: (own["measure"][i], METHODS.index(own["method"][i])))
    rows = [(own["measure"][i], own["method"][i], *_numbers(own.loc[i])) for i in order]
    return table(("measure", "method", *NUMBERS), rows)


def _points(own: pd.DataFrame) -> str:
    rows = [
        (row["measure"], row["method"], f"{row['x']:g}", *_numbers(row), "" if row["measured"] else "interpolated")
        for _, row in own.iterrows()
    ]
    return table(("measure", "method", "x", *NUMBERS, "printed curve"), rows)


NUMBERS = ("printed", "ours", "difference", "standard error")


def _numbers(row: pd.Series[Any]) -> tuple[str, ...]:
    return (f"{row['printed']:.3f}", f"{row['ours']:.3f}", f"{row['difference']:+.3f}", f"{row['standard_error']:.3f}")


def _settings(tables: dict[str, pd.DataFrame]) -> str:
    """Return means over repetitions, with standard errors, for each experiment, setting and method."""
    if not len(tables["results"]):
        return ""
    both = joined(tables)
    out = []
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
        out.append(f"<details><summary>{escape(title)}</summary>{table(head, rows)}</details>")
    return "".join(out)


def _dead(tables: dict[str, pd.DataFrame]) -> str:
    """Return the share of networks with a dead side, and of repetitions whose conf-nn interval is the whole line."""
    details, results = tables["details"], tables["results"]
    relu = (
        details[details["setting"].str.startswith("relu") & (details["method"] == "pav")] if len(details) else details
    )
    if not len(relu):
        return "<p>Not run.</p>"
    rows = []
    for (experiment, setting), own in relu.groupby(["experiment", "setting"], sort=False):
        lengths = results[
            (results["experiment"] == experiment) & (results["setting"] == setting) & (results["method"] == "conf-nn")
        ]["length"]
        rows.append((experiment, setting, f"{own['dead'].mean():.1%}", f"{np.isinf(lengths).mean():.1%}"))
    words = (
        "<p>The paper orders its outputs by ReLU. Networks at ten levels in each repetition; a side is dead if it has "
        "no width on more than 1% of D1. With softplus, the ordering of all other settings, none can die.</p>"
    )
    return words + table(("experiment", "setting", "networks with a dead side", "conf-nn is the whole line"), rows)


def _with_error(values: np.ndarray[Any, Any]) -> str:
    infinite = int(np.isinf(values).sum())
    if infinite:
        return f"{infinite} of {len(values)} infinite"
    error = f" ({values.std(ddof=1) / np.sqrt(len(values)):.4f})" if len(values) > 1 else ""
    return f"{values.mean():.4f}{error}"
