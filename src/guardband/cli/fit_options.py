"""The options of ``guardband fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.help import DATA, OUTPUT, PROMISE, TRAINING
from guardband.cli.options import LARGEST_SEED, TABLES
from guardband.methods.registry import method_names

METHODS = (*method_names(), "auto")


def methods_like(incomplete: str) -> list[str]:
    """Return the methods whose names begin so, for completion."""
    return [name for name in METHODS if name.startswith(incomplete)]


TablePaths = Annotated[list[str], typer.Argument(metavar="TABLE...", help=TABLES, rich_help_panel=DATA)]
Target = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="COL",
        help="Column to predict. Repeat the option for several targets: the promise is then about all of them at once.",
        rich_help_panel=DATA,
    ),
]
EachTarget = Annotated[
    bool,
    typer.Option(
        "--each-target",
        help="With several targets: a promise for each of them, in place of one for all at once.",
        rich_help_panel=PROMISE,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLS",
        help="Columns to leave out. Separate them by commas, or repeat the option.",
        rich_help_panel=DATA,
    ),
]
ReportBy = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Report coverage separately for each value of this column. It promises nothing for them: --group does. "
        "The model also learns from the column unless you drop it.",
        rich_help_panel=DATA,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of dates or of numbers that grow with time. The report shows coverage over time. The model "
        "also learns from it unless you drop it.",
        rich_help_panel=DATA,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of weights for training. The promise counts all rows alike. The model does not learn from it.",
        rich_help_panel=DATA,
    ),
]
Level = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LEVELS",
        help="Confidence level of the intervals, or several: 0.8,0.9.",
        show_default="0.9",
        rich_help_panel=PROMISE,
    ),
]
Guarantee = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="marginal promises the level on average over calibration sets. pac promises it for this model, except "
        "with probability delta. pac needs more rows and makes intervals wider.",
        rich_help_panel=PROMISE,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="With pac: the probability that the promise fails.",
        show_default="0.1",
        rich_help_panel=PROMISE,
    ),
]
Side = Annotated[
    str,
    typer.Option(
        metavar="both|lower|upper",
        help="Which bound the promise is about. With upper, lower bounds are infinite.",
        rich_help_panel=PROMISE,
    ),
]
Tails = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH",
        help="In place of a level: the share of rows that may lie below their intervals, and above, such as 0.02,0.08.",
        rich_help_panel=PROMISE,
    ),
]
RiskLimit = Annotated[
    float | None,
    typer.Option(
        "--risk",
        metavar="NUMBER",
        help="In place of a level: the largest mean distance of new values from their intervals. It has the unit of "
        "the target, and a value inside counts 0. Needs --risk-cap.",
        rich_help_panel=PROMISE,
    ),
]
Distribution = Annotated[
    bool,
    typer.Option(
        "--distribution",
        help="Learn many quantiles. guardband predict --quantiles and --above are then sharper.",
        rich_help_panel=PROMISE,
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        metavar="split|cv+|cv-minmax",
        help="How rows calibrate. split holds some out. cv+ trains and calibrates on all rows, by cross-validation. "
        "Use it for tables of a few hundred rows: it predicts better, but less is promised. cv-minmax promises more.",
        rich_help_panel=PROMISE,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=2,
        help="With cv+ and cv-minmax: the number of folds.",
        show_default="8",
        rich_help_panel=PROMISE,
    ),
]
ForTarget = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="Rows like those you will predict, if they come from another population. The promise is then about such "
        "rows. True values are not needed. guardband estimates weights, and the promise is no longer exact.",
        rich_help_panel=PROMISE,
    ),
]
SplitBy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLS",
        help="Columns that say which rows belong together, such as a patient number. All rows of a patient then "
        "serve the same purpose, and the promise is about new patients.",
        rich_help_panel=PROMISE,
    ),
]
IndependentRows = Annotated[
    bool,
    typer.Option(
        "--independent-rows",
        help="No rows belong together. guardband then does not look for repeated rows.",
        rich_help_panel=PROMISE,
    ),
]
SplitByTime = Annotated[
    bool,
    typer.Option(
        "--split-by-time",
        help="Train on the earliest rows, and calibrate and test on the latest, by --time.",
        rich_help_panel=PROMISE,
    ),
]
Check = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=0.9,
        help="Share of rows to set aside as test rows. They check the promise. Use 0 for none.",
        show_default="0.1, and 0 with --calibration cv+",
        rich_help_panel=PROMISE,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"How to build intervals: {', '.join(METHODS[:-1])} or {METHODS[-1]}.",
        autocompletion=methods_like,
        rich_help_panel=TRAINING,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME|SECONDS",
        help="How long to train: fast, default, best or a number of seconds. Longer training gives narrower intervals.",
        rich_help_panel=TRAINING,
    ),
]
Distill = Annotated[
    bool,
    typer.Option(
        "--distill",
        help="Put one small network in place of all copies in the end. Fitting takes longer, and predictions are "
        "several times as fast.",
        rich_help_panel=TRAINING,
    ),
]
Log = Annotated[
    bool,
    typer.Option(
        "--log",
        help="Learn the logarithm of the target. Use it for positive targets that span several orders of "
        "magnitude, such as prices.",
        rich_help_panel=TRAINING,
    ),
]
Transform = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Learn the target on another scale: log, log1p (zeros allowed), asinh (also negative values) or sqrt.",
        show_default="the target as it is",
        rich_help_panel=TRAINING,
    ),
]
YMin = Annotated[
    float | None,
    typer.Option(
        "--y-min",
        metavar="NUMBER",
        help="Smallest value that the target can have. No interval goes below it.",
        rich_help_panel=TRAINING,
    ),
]
YMax = Annotated[
    float | None,
    typer.Option(
        "--y-max",
        metavar="NUMBER",
        help="Largest value that the target can have. No interval goes above it.",
        rich_help_panel=TRAINING,
    ),
]
Integer = Annotated[
    bool | None,
    typer.Option(
        "--integer/--no-integer",
        help="Whether the bounds of intervals are whole numbers.",
        show_default="only if all targets are",
        rich_help_panel=TRAINING,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=0,
        max=LARGEST_SEED,
        help="Seed for splitting and training. The same seed gives the same model.",
        rich_help_panel=TRAINING,
    ),
]
ModelOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="MODEL",
        help="Model file to write.",
        show_default="the table's name with .guardband, in this folder",
        rich_help_panel=OUTPUT,
    ),
]
ReportPage = Annotated[
    Path | None,
    typer.Option(metavar="PAGE", help="Report page to write.", show_default="beside the model", rich_help_panel=OUTPUT),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write a report page.", rich_help_panel=OUTPUT)]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Also show how each column was read, the whole certificate and how the model was trained.",
        rich_help_panel=OUTPUT,
    ),
]
