"""What ``guardband plan`` says of a risk: how many calibration rows it needs, and what a number of rows gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from guardband.cli.console import Speaker, table
from guardband.cli.help import PROMISE
from guardband.cli.options import risk_in
from guardband.words import at_most, confidence_name, number

PlannedRisk = Annotated[
    float | None,
    typer.Option(
        "--risk",
        metavar="NUMBER",
        help="In place of a level: the largest mean distance of new values from their intervals. Needs --risk-cap.",
        rich_help_panel=PROMISE,
    ),
]


def plan_risk(limit: float | None, cap: float | None, delta: float, sizes: Sequence[int], speaker: Speaker) -> bool:
    """Show what a risk needs and what rows give, if one is asked for; return whether it is."""
    risk = risk_in(limit, cap)
    if risk is None:
        return False
    if not 0 < delta < 1:
        raise ValueError(f"--delta must lie strictly between 0 and 1, found {delta}. Use a number such as 0.1.")
    needs, given = risk_needs(risk.limit, risk.cap, delta), risk_given(risk.limit, risk.cap, delta, sizes)
    sure, mean = confidence_name(delta), at_most(risk.limit)
    shown = table("promise", "guarantee", "calibration rows", right=(2,), title=f"Rows needed for a mean of {mean}")
    for own in needs:
        shown.add_row(own["promise"], own["guarantee"], f"{own['rows']:,}")
    speaker.tell(shown)
    columns = ("rows", "guarantee", "mean of these rows", f"{sure} sure")
    shown = table(*columns, right=(0, 2, 3), title=f"What rows give for a mean of at most {mean}")
    for own in given:
        shown.add_row(
            f"{own['rows']:,}", own["guarantee"], _in_words(own["mean"], number), _in_words(own["bound"], at_most)
        )
    speaker.tell(shown)
    speaker.tell(
        "mean of these rows: the largest mean loss that the calibration rows may have. A smaller one means wider "
        f"intervals. {sure} sure: the mean loss of new rows is at most this for your calibration rows, except with "
        f"probability {delta:.10g}."
    )
    speaker.tell_json({"risk": risk.limit, "cap": risk.cap, "delta": delta, "needs": needs, "promises": given})
    return True


def risk_needs(limit: float, cap: float, delta: float) -> list[dict[str, Any]]:
    """Return how many rows finite intervals need, by either guarantee."""
    from guardband import planning

    return [
        {
            "promise": "finite intervals, on average",
            "guarantee": "marginal",
            "rows": planning.risk_rows(limit, cap),
        },
        {
            "promise": f"finite intervals, {confidence_name(delta)} sure",
            "guarantee": "pac",
            "rows": planning.risk_rows(limit, cap, delta),
        },
    ]


def risk_given(limit: float, cap: float, delta: float, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return what numbers of rows give: the mean loss that they may have, and the bound; None if infinite."""
    from guardband.bands.risk_bounds import largest_mean, risk_budget

    out: list[dict[str, Any]] = []
    for n in sizes:
        for guarantee, own in (("marginal", None), ("pac", delta)):
            budget = risk_budget(limit, cap, n, own)
            usable = budget >= 0
            bound = limit if own is not None else cap * largest_mean(n, max(budget, 0.0) / cap, delta)
            figures = {"mean": budget / n if usable else None, "bound": bound if usable else None}
            out.append({"rows": n, "guarantee": guarantee} | figures)
    return out


def _in_words(value: float | None, written: Callable[[float], str]) -> str:
    return "infinite intervals" if value is None else written(value)
