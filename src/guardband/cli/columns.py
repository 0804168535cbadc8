"""What the columns of a table are, in a table of their own, and which of them are of little use."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.cli.console import cell, table
from guardband.cli.labelled import Labelled, kinds_of
from guardband.data.codes import MOST_INDEXED, MOST_ONE_HOT
from guardband.data.kinds import Kind
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

MOST_SHOWN = 40
LONGEST = 28
MOST_DROPPED = 5


@dataclass(frozen=True)
class ColumnView:
    """One column as it was read."""

    name: str
    kind: Kind
    role: str
    missing: float
    example: str
    distinct: int
    useless: str | None

    @property
    def is_crowded(self) -> bool:
        """Whether there are so many categories that not all are told apart."""
        return self.kind == "category" and self.distinct > MOST_INDEXED

    @property
    def read_as(self) -> str:
        """The column in words."""
        words: str = self.kind
        if self.kind == "category":
            counted = f"category, {self.distinct:,} {'kind' if self.distinct == 1 else 'kinds'}"
            words = counted if self.distinct else "nothing"
        return f"{words} ({self.role})" if self.role else words


def views_of(rows: Labelled) -> list[ColumnView]:
    """Return all columns as they were read."""
    kinds = _kinds_of(rows, rows.table.column_names)
    return [_view(name, kind, rows.table[name], _role(name, kind, rows), rows.n) for name, kind in kinds.items()]


def as_table(views: list[ColumnView]) -> Table:
    """Return the columns as a table to print."""
    shown = table("column", "read as", "missing", "example", right=(2,))
    for view in views[:MOST_SHOWN]:
        missing = f"{view.missing:.1%}" if view.missing else ""
        shown.add_row(_short(view.name), view.read_as, missing, _short(view.example))
    if len(views) > MOST_SHOWN:
        shown.add_row(f"… and {len(views) - MOST_SHOWN:,} more")
    return shown


def worth_showing(rows: Labelled, most: int) -> list[str]:
    """Return the first columns that a model can learn something from; any if there are none."""
    shown: list[str] = []
    for name, kind in _kinds_of(rows, rows.features).items():
        if _view(name, kind, rows.table[name], "", rows.n).useless is None:
            shown.append(name)
        if len(shown) == most:
            break
    return shown or list(rows.features[:most])


def useless_in_words(views: list[ColumnView]) -> str | None:
    """Return one line on the columns from which little can be learnt, or None."""
    parts = []
    for reason in dict.fromkeys(view.useless for view in views if view.useless):
        parts.append(f"{listed([view.name for view in views if view.useless == reason])} ({reason})")
    if not parts:
        return None
    names = [view.name for view in views if view.useless]
    drop = shlex.quote(",".join(names)) if len(names) <= MOST_DROPPED else "COLS"
    them = "it" if len(names) == 1 else "them"
    return f"The model can learn little from {'; '.join(parts)}. Leave {them} out with --drop {drop}."


def crowded_in_words(views: list[ColumnView]) -> str | None:
    """Return one line on columns with so many categories that not all are told apart, or None."""
    crowded = [view.name for view in views if view.is_crowded and not view.role and not view.useless]
    if not crowded:
        return None
    verb = "has" if len(crowded) == 1 else "have"
    return (
        f"{listed(crowded)} {verb} more than {MOST_INDEXED:,} categories. guardband tells the most frequent ones apart "
        "and treats all others as one. Leave columns out with --drop."
    )


def _kinds_of(rows: Labelled, names: Sequence[str]) -> dict[str, Kind]:
    return kinds_of(rows.table.select(list(names)))


def _view(name: str, kind: Kind, column: pa.ChunkedArray, role: str, n: int) -> ColumnView:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    distinct = 0 if pa.types.is_null(column.type) else pc.count_distinct(column).as_py()
    present = column.drop_null()
    example = cell(present[0].as_py()) if len(present) else ""
    useless = None if role else _useless(present, kind, distinct, n)
    return ColumnView(name, kind, role, column.null_count / n, example, distinct, useless)


def _useless(present: Any, kind: Kind, distinct: int, n: int) -> str | None:
    if len(present) == 0:
        return "empty"
    if distinct == 1 and len(present) == n:
        return "always the same value"
    if n >= MOST_ONE_HOT and distinct == n:
        if kind == "category" and distinct > MOST_ONE_HOT:
            return "a different text in each row"
        if kind == "number" and _counts(present.to_numpy()):
            return "only counts the rows"
    return None


def _counts(values: NDArray[Any]) -> bool:
    """Return whether numbers rise with the rows, few of them left out."""
    steps = np.diff(values)
    return bool((steps >= 1).all() and values[-1] - values[0] < 2 * len(values))


def _role(name: str, kind: Kind, rows: Labelled) -> str:
    if name in rows.split_by and (kind == "category" or name not in rows.features):
        return "split by"
    named: dict[str | None, str] = {rows.weight: "weight", rows.report_by: "report by", rows.time: "time"}
    named |= dict.fromkeys(rows.targets, "target")
    role = named.get(name, "")
    return role if role in ("target", "weight") or name not in rows.features else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
