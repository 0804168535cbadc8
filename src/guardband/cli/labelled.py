"""Rows of a table whose true value is known, as ``fit`` and ``audit`` take them from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.cli.console import Speaker
from guardband.data.disk import DiskTable
from guardband.data.entities import Entities, entities_of_columns
from guardband.data.kinds import Kind, column_of, doubt_on, kind_of_type
from guardband.data.row_numbers import rows_known_as
from guardband.data.table import read_table
from guardband.data.text_cells import CellError
from guardband.data.whole_table import read_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.audit.evidence import Evidence
    from guardband.audit.guarded import Guarded

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Labelled:
    """Rows with a known outcome: all columns that were read, what they are for, and the row numbers in the file."""

    table: pa.Table
    row_numbers: Rows
    features: tuple[str, ...]
    target: str
    report_by: str | None = None
    time: str | None = None
    weight: str | None = None
    split_by: tuple[str, ...] = ()
    entities: Entities | None = None
    disk: DiskTable | None = None
    others: tuple[str, ...] = ()
    """Further targets, if there are several. Of these some may be missing in a row."""

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets."""
        return (self.target, *self.others)

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    @property
    def X(self) -> pa.Table:
        """The columns that a model learns from."""
        return self.table.select(list(self.features))

    @property
    def y(self) -> Any:
        """The outcome, with its name; a table of several."""
        return self.table.select(list(self.targets)) if self.others else self._series(self.target)

    def side(self, name: str | None) -> Any:
        """Return a column beside the features, with its name, or None for none."""
        return None if name is None else self._series(name)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers or dates as numbers; none may be missing."""
        import pyarrow as pa

        column = self.table[name]
        kind = _kind(column)
        if kind not in ("number", "boolean", "date"):
            raise ValueError(
                f"The column {name!r} must hold numbers or dates in every row, found {_in_words(column.type)}. Correct "
                "it, or name another column."
            )
        if column.null_count:
            where = self._place(column.is_null().index(True).as_py())
            raise ValueError(f"The column {name!r} has a missing value in {where}. Fill it in, or remove the row.")
        if kind == "date":
            column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(
                f"The column {name!r} must hold finite numbers, found {values[infinite[0]]} in "
                f"{self._place(int(infinite[0]))}. Correct it, or remove the row."
            )
        return values

    def evidence(self, model: Guarded) -> Evidence:
        """Return these rows with a model's intervals."""
        from guardband.audit.evidence import Evidence
        from guardband.audit.several import SeveralEvidence

        sides = {"group": self.side(self.report_by), "time": self.side(self.time), "entities": self.entities}
        with rows_known_as(self.row_numbers):
            if self.others:
                several: Any = SeveralEvidence.of(model, self.X, self.y, row_numbers=self.row_numbers, **sides)
                return several  # type: ignore[no-any-return]
            return Evidence.of(model, self.X, self.y, row_numbers=self.row_numbers, **sides)

    def take(self, rows: Rows) -> Labelled:
        """Return some of the rows."""
        entities = None if self.entities is None else self.entities.take(rows)
        return replace(self, table=self.table.take(rows), row_numbers=self.row_numbers[rows], entities=entities)

    def _place(self, i: int) -> str:
        row = int(self.row_numbers[i])
        return f"row {row:,}" if self.disk is None else self.disk.place(row)

    def _series(self, name: str) -> Any:
        return nw.from_native(self.table, eager_only=True)[name]


def read_labelled(
    disk: DiskTable,
    features: Sequence[str],
    target: str,
    speaker: Speaker,
    *,
    report_by: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    split_by: Sequence[str] = (),
    kinds: dict[str, Kind] | None = None,
    check: Callable[[pa.Table], None] = lambda table: None,
    others: Sequence[str] = (),
) -> Labelled:
    """Return the rows of a file whose outcome is there, and say how many others there are.

    ``kinds`` says what the features were when a model was fitted; without it that is found out. ``check`` may refuse
    the table before anything is said of it.
    """
    import pyarrow as pa

    targets = (target, *others)
    roles = [name for name in (report_by, time, weight) if name]
    wanted = list(dict.fromkeys([*features, *targets, *roles, *split_by]))
    with speaker.progress(f"Reading {disk.label}", disk.total, in_bytes=disk.is_text) as advance:
        whole = read_whole(disk, wanted, advance, kinds)
    table = whole.table
    check(table)
    for remark in whole.remarks:
        speaker.note(remark)
    if time is not None:
        need_time(table[time], time)
    known = np.zeros(table.num_rows, dtype=bool)
    for name in targets:
        outcome = target_numbers(table[name], name, disk)
        table = table.set_column(table.column_names.index(name), name, outcome)
        if outcome.null_count == table.num_rows:
            raise ValueError(f"The target {name!r} is missing in every row of {disk.label}. Fill it in.")
        known |= np.asarray(outcome.is_valid())
    missing = int((~known).sum())
    if missing:
        rows, their = f"{missing:,} of {table.num_rows:,} rows", "' and '".join(targets)
        speaker.note(f"{rows} are left out because their '{their}' is missing. Fill it in to use them.")
        table = table.filter(known)
    row_numbers = np.flatnonzero(known) + 1
    with rows_known_as(row_numbers):
        entities = entities_of_columns(read_table(table.select(list(split_by))).columns) if split_by else None
    named = (target, report_by, time, weight, tuple(split_by), entities)
    return Labelled(pa.table(table), row_numbers, tuple(features), *named, disk, tuple(others))


def kinds_of(table: pa.Table) -> dict[str, Kind]:
    """Return what the columns of a table are."""
    types = nw.from_native(table, eager_only=True).schema
    return {name: kind_of_type(dtype) or "category" for name, dtype in types.items()}


def need_time(column: Any, time: str) -> None:
    """Raise unless a column holds numbers or dates."""
    if _kind(column) not in ("number", "date"):
        found = _in_words(column.type)
        raise ValueError(
            f"The column {time!r} of --time must hold numbers or dates such as 2024-12-31, found {found}. Correct "
            "it, or name another column."
        )


def target_numbers(column: Any, target: str, disk: DiskTable) -> Any:
    """Return a column of true values as numbers, null where they are missing; what is no finite number is refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        cells = column.combine_chunks()
        doubt = doubt_on(cells) if disk.decimal_comma else None
        if doubt:
            raise ValueError(f"The target {target!r} must hold numbers, but in {disk.label} {doubt}.")
        try:
            column = pa.chunked_array([column_of(cells, "number", disk.decimal_comma)])
        except CellError as error:
            raise ValueError(
                f"The target {target!r} must hold numbers, found {error.text!r} in {disk.place(error.index + 1)}. "
                "Correct it, or remove the row."
            ) from None
    if _kind(column) not in ("number", "boolean"):
        raise ValueError(f"The target {target!r} must hold numbers, found {column.type}. Choose another column.")
    numbers = column.cast(pa.float64(), safe=False)
    first = pc.index(pc.is_inf(numbers), True).as_py()
    if first >= 0:
        found = f"{numbers[first].as_py()} in {disk.place(first + 1)}"
        raise ValueError(f"The target {target!r} must hold finite numbers, found {found}. Correct it, or remove it.")
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def _kind(column: Any) -> Kind | None:
    """Return what a column is, None for times of day and durations: they are neither an outcome nor an order."""
    dtype = nw.from_native(column, series_only=True).dtype
    kind = kind_of_type(dtype)
    return None if kind == "number" and dtype.is_temporal() else kind


def _in_words(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "categories"
    return "text" if pa.types.is_string(kind) else str(kind)
