"""What the columns of a table were read as, in a table of their own, and which of them are of little use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.cli.console import cell, table
from guardband.cli.labelled import Labelled
from guardband.data.codes import FEWEST_ROWS, MOST_CATEGORIES, MOST_PLACES
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

MOST_SHOWN = 40
LONGEST = 28


@dataclass(frozen=True)
class ColumnView:
    """One column as it was read."""

    name: str
    read_as: str
    role: str
    missing: float
    example: str
    distinct: int
    useless: str | None


def views_of(rows: Labelled) -> list[ColumnView]:
    """Return all columns as they were read."""
    return [_view(name, rows.table[name], _role(name, rows), rows.n) for name in rows.table.column_names]


def as_table(views: list[ColumnView]) -> Table:
    """Return the columns as a table to print."""
    shown = table("column", "read as", "missing", "example", right=(2,))
    for view in views[:MOST_SHOWN]:
        read_as = view.read_as if not view.role else f"{view.read_as} ({view.role})"
        if view.read_as in ("category", "text"):
            read_as = _counted(view) if not view.role else f"{_counted(view)} ({view.role})"
        shown.add_row(_short(view.name), read_as, f"{view.missing:.1%}" if view.missing else "", _short(view.example))
    if len(views) > MOST_SHOWN:
        shown.add_row(f"… and {len(views) - MOST_SHOWN:,} more")
    return shown


def _counted(view: ColumnView) -> str:
    if view.distinct == 0:
        return "nothing"
    return f"{view.read_as}, {view.distinct:,} {'kind' if view.distinct == 1 else 'kinds'}"


def useless_in_words(views: list[ColumnView]) -> str | None:
    """Return one line on the columns from which little can be learnt, or None."""
    parts = []
    for reason in dict.fromkeys(view.useless for view in views if view.useless):
        parts.append(f"{listed([view.name for view in views if view.useless == reason])} ({reason})")
    return f"Of little use: {'; '.join(parts)}. Leave columns out by --drop." if parts else None


def crowded_in_words(views: list[ColumnView]) -> str | None:
    """Return one line on columns with so many categories that not all are told apart, or None."""
    crowded = [view.name for view in views if view.read_as == "text" and not view.role and not view.useless]
    if not crowded:
        return None
    verb = "has" if len(crowded) == 1 else "have"
    return (
        f"{listed(crowded)} {verb} many kinds of text: those with fewer than {FEWEST_ROWS} rows to train on, and those "
        f"beyond the {MOST_PLACES:,} most frequent, count as one."
    )


def _view(name: str, column: pa.ChunkedArray, role: str, n: int) -> ColumnView:
    import pyarrow as pa
    import pyarrow.compute as pc

    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    distinct = pc.count_distinct(column).as_py()
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    if types.is_boolean(kind):
        read_as = "boolean"
    elif types.is_date(kind) or types.is_timestamp(kind):
        read_as = "date"
    elif is_text or types.is_dictionary(kind) or types.is_null(kind):
        read_as = "category" if distinct <= MOST_CATEGORIES else "text"
    else:
        read_as = "number"
    present = column.drop_null()
    example = cell(present[0].as_py()) if len(present) else ""
    useless = None if role else _useless(present, read_as, distinct, n)
    return ColumnView(name, read_as, role, column.null_count / n, example, distinct, useless)


def _useless(present: Any, read_as: str, distinct: int, n: int) -> str | None:
    if len(present) == 0:
        return "empty"
    if distinct == 1 and len(present) == n:
        return "always the same"
    if n >= MOST_CATEGORIES and distinct == n:
        if read_as == "text":
            return "another text in each row"
        if read_as == "number" and _counts(present.to_numpy()):
            return "counts the rows"
    return None


def _counts(values: NDArray[Any]) -> bool:
    """Return whether numbers rise with the rows, few of them left out."""
    steps = np.diff(values)
    return bool((steps >= 1).all() and values[-1] - values[0] < 2 * len(values))


def _role(name: str, rows: Labelled) -> str:
    named = {rows.target: "target", rows.weight: "weight", rows.group: "group", rows.time: "time"}
    role = named.get(name, "")
    return role if role in ("target", "weight") or name not in rows.features else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
