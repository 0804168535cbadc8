"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from guardband.words import listed

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the result, warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, for scripts.")]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, or any name that torch knows.")]

SheetName = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="The sheet of an Excel file; else the first with cells.")
]
TABLES = "CSV (also .gz, .zip), Parquet, Arrow, Excel; several files of one table; - for CSV on standard input."

LARGEST_SEED = 2**32 - 1


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
    try:
        levels = [float(text) for text in names_in(given)]
    except ValueError as error:
        raise typer.BadParameter(f"a level is a number such as 0.9: {error}", param_hint="'--level'") from None
    return levels[0] if len(levels) == 1 else levels


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
            raise ValueError(f"The target {target!r} is what is predicted: name another column for {what}.")
        if name is not None:
            need_column(name, names, what, label)


def need_no_copy(target: str, features: Sequence[str], label: str) -> None:
    """Raise if a feature has the target's name with a number, as a column of the same name is read."""
    again = [name for name in features if re.fullmatch(rf"{re.escape(target)} \(\d+\)", name)]
    if again:
        raise ValueError(
            f"{label} has a column {again[0]!r}, as a second {target!r} is called, which may give the target away: "
            "leave it out by --drop, or rename it."
        )


def need_column(name: str, names: Sequence[str], what: str, label: str) -> None:
    """Raise if a table has no such column, with the names that come near."""
    if name in names:
        return
    by_case = {own.lower(): own for own in names}
    near = [by_case[own] for own in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its columns are {listed(names, 10)}."
    raise ValueError(f"{label} has no column {name!r} for {what}: {hint}")
