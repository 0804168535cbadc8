"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardband.cli.help import DATA, OUTPUT, PROMISE, TRAINING
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.bands.risk import Risk

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print only the result, warnings and errors; no progress.", rich_help_panel=OUTPUT
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object, for scripts.", rich_help_panel=OUTPUT)
]
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where to compute: auto, cpu, cuda or another name that PyTorch knows. auto uses a GPU if there is one.",
        rich_help_panel=TRAINING,
    ),
]
SheetName = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        help="Sheet of an Excel file to read.",
        show_default="the first sheet with cells",
        rich_help_panel=DATA,
    ),
]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that guardband fit wrote.", rich_help_panel=DATA)
]
Trusted = Annotated[
    Path | None,
    typer.Option(
        "--trusted",
        metavar="KEY",
        help="Public key of whoever must have signed the model. Any other model is refused. The signature is the file "
        "MODEL.sig.",
        show_default="no signature is checked",
        rich_help_panel=DATA,
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS", help="Title of the page.", show_default="the level and the target", rich_help_panel=OUTPUT
    ),
]
Author = Annotated[str | None, typer.Option(metavar="NAME", help="Who made the page.", rich_help_panel=OUTPUT)]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        help="Unit of the target on the page, such as EUR, or of several targets: EUR,days.",
        rich_help_panel=OUTPUT,
    ),
]
RiskCap = Annotated[
    float | None,
    typer.Option(
        "--risk-cap",
        metavar="NUMBER",
        help="With --risk: the most that the distance of a single value counts.",
        rich_help_panel=PROMISE,
    ),
]
TABLES = (
    "CSV (also .gz or .zip), Parquet, Arrow or Excel. Several files make one table. Use - for CSV on standard input."
)

LARGEST_SEED = 2**32 - 1
CLOSE = 0.75
"""From this share of equal letters on, a name may be meant for another."""


def names_in(given: Iterable[str]) -> list[str]:
    """Return names that were given one by one or with commas between them.

    >>> names_in(["a,b", "c"])
    ['a', 'b', 'c']
    """
    return [name.strip() for part in given for name in part.split(",") if name.strip()]


def columns_in(given: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return columns of a table that were named so; a name with a comma in it may be given alone."""
    whole = set(names)
    return [name for part in given for name in ([part] if part in whole else names_in([part]))]


def levels_in(given: Iterable[str]) -> float | list[float]:
    """Return one level, or several, from text."""
    levels = []
    for text in names_in(given):
        try:
            levels.append(float(text))
        except ValueError:
            raise ValueError(
                f"A confidence level is a number such as 0.9, found {text!r}. Write --level 0.9."
            ) from None
    return levels[0] if len(levels) == 1 else levels


def tails_in(given: str | None) -> tuple[float, float] | None:
    """Return two tails from text such as ``0.02,0.08``, None if there is none.

    >>> tails_in("0.02,0.08")
    (0.02, 0.08)
    """
    if given is None:
        return None
    try:
        low, high = map(float, names_in([given]))
    except ValueError:
        raise ValueError(
            f"Tails are two numbers with a comma between them, found {given!r}. Write --tails 0.02,0.08."
        ) from None
    return low, high


def risk_in(limit: float | None, cap: float | None, level: object = None, tails: object = None) -> Risk | None:
    """Return the risk that ``--risk`` and ``--risk-cap`` ask for, None if they ask for none."""
    if limit is None and cap is None:
        return None
    if limit is None or cap is None:
        lacking, given = ("--risk", "--risk-cap") if limit is None else ("--risk-cap", "--risk")
        raise ValueError(f"{given} needs {lacking}. Write --risk 5 --risk-cap 100, in the unit of the target.")
    for name, other in (("--level", level), ("--tails", tails)):
        if other:
            raise ValueError(f"--risk and {name} exclude each other. Remove one of them.")
    for option, value in (("--risk", limit), ("--risk-cap", cap)):
        if not 0 < value < math.inf:
            raise ValueError(f"{option} must be a positive number, found {value:g}. Give it in the unit of the target.")
    from guardband.bands.risk import Risk

    return Risk(limit, cap)


def preset_in(text: str) -> str | float:
    """Return a preset by name, or a number of seconds."""
    try:
        return float(text)
    except ValueError:
        return text


def need_roles(target: str, others: Iterable[tuple[str | None, str]], names: Sequence[str], label: str) -> None:
    """Raise unless a table has the target and the other columns that options name, and none of these is the target."""
    need_column(target, names, "--target", label)
    for name, what in others:
        if name == target:
            raise ValueError(f"{target!r} is the target. Name another column for {what}.")
        if name is not None:
            need_column(name, names, what, label)


def need_no_copy(target: str, features: Sequence[str], label: str) -> None:
    """Raise if a feature has the target's name with a number, as a column of the same name is read."""
    again = [name for name in features if re.fullmatch(rf"{re.escape(target)} \(\d+\)", name)]
    if again:
        raise ValueError(
            f"{label} has two columns {target!r}. The second one, {again[0]!r}, may contain the target. "
            f"Drop it with --drop {shlex.quote(again[0])}, or rename it."
        )


def close_names(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that are spelled nearly like this one, the closest first.

    >>> close_names("Weight (kg)", ["weight kg", "height"]), close_names("Price", ["Service", "Carrier"])
    (['weight kg'], [])
    """
    by_case = {own.lower(): own for own in names}
    return [by_case[own] for own in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=CLOSE)]


def need_column(name: str, names: Sequence[str], what: str, label: str) -> None:
    """Raise if a table has no such column, with the names that come near."""
    if name in names:
        return
    parts = names_in([name])
    if what == "--target" and len(parts) > 1 and set(parts) <= set(names):
        hint = f"For several targets, repeat the option: {' '.join(f'--target {shlex.quote(own)}' for own in parts)}."
        raise ValueError(f"{label} has no column {name!r} for {what}. {hint}")
    near = close_names(name, names)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Its columns are {listed(names, 10)}."
    if label.startswith("sheet "):  # that a file has several sheets is all that is known here
        hint += " Name another sheet with --sheet."
    elif len(names) == 1 and not near:
        hint += " The names of the columns must be in the first line: remove any lines above them."
    raise ValueError(f"{label} has no column {name!r} for {what}. {hint}")
