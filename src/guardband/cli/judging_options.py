"""Options of commands that look at rows with known true values."""

from __future__ import annotations

from typing import Annotated

import typer

from guardband.cli.help import DATA

TrueValues = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL",
        help="Column of the true values.",
        show_default="the column that the model predicts",
        rich_help_panel=DATA,
    ),
]
ShownBy = Annotated[
    str | None,
    typer.Option(
        "--report-by", metavar="COL", help="Show coverage for each value of this column.", rich_help_panel=DATA
    ),
]
ShownOverTime = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Column of dates or of numbers that grow with time. Shows coverage over time.",
        rich_help_panel=DATA,
    ),
]
BelongingTogether = Annotated[
    list[str] | None,
    typer.Option(
        "--split-by",
        metavar="COLS",
        help="Columns that say which rows belong together. You need it only if the model got a function as "
        "split_by in Python.",
        rich_help_panel=DATA,
    ),
]
