"""The options of weights, for rows to predict that come from another population than the calibration rows."""

from __future__ import annotations

from typing import Annotated

import typer

from guardband.cli.help import PROMISE

Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that says how much likelier each row is among the rows to predict than among these rows. Use it "
        "if the rows to predict come from another population.",
        rich_help_panel=PROMISE,
    ),
]
MaxWeight = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="With --weights and pac: no row has a larger weight. New rows then need no weights.",
        rich_help_panel=PROMISE,
    ),
]


def check_weight_options(weights: str | None, max_weight: float | None, guarantee: str) -> None:
    """Raise if options of weights do not go together."""
    if max_weight is not None and weights is None:
        raise ValueError("--max-weight is about weights. Name their column with --weights, or remove the option.")
    if weights is not None and guarantee == "pac" and max_weight is None:
        raise ValueError("--guarantee pac needs a bound on all weights. Add --max-weight NUMBER.")
    if max_weight is not None and guarantee != "pac":
        raise ValueError("--max-weight is for --guarantee pac. Add that, or remove --max-weight.")
