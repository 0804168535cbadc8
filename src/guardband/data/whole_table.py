"""Tables on disk that are read whole, and what their columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guardband.data.damage import unpacked_bytes
from guardband.data.kinds import Kind, kind_of_text, remark_on
from guardband.data.memory import need_memory_for_bytes, need_memory_for_cells
from guardband.data.text_cells import cells_of, is_latin

if TYPE_CHECKING:
    import pyarrow as pa

from guardband.data.disk import DiskTable
from guardband.data.typed_columns import typed

LATIN = "guardband reads it as Latin-1. Save the file as UTF-8 if letters look wrong."


@dataclass(frozen=True)
class ReadTable:
    """A whole table with typed columns, and remarks on them, one sentence each."""

    table: pa.Table
    remarks: tuple[str, ...]


def read_whole(
    disk: DiskTable,
    columns: Sequence[str],
    on_batch: Callable[[int], object] = lambda done: None,
    kinds: Mapping[str, Kind] | None = None,
) -> ReadTable:
    """Return some columns of a table whole, as what ``kinds`` says; of a CSV, all cells of any other column decide."""
    table = whole_of(disk, columns, on_batch)
    with disk.reading():
        return _read_as(table, columns, disk, kinds or {})


def whole_of(
    disk: DiskTable, columns: Sequence[str], on_batch: Callable[[int], object] = lambda done: None
) -> pa.Table:
    """Return some columns of a table whole, as they come; what memory cannot hold is refused on the way."""
    import pyarrow as pa

    if not disk.is_text and disk.total is not None:
        need_memory_for_cells(disk.total, len(columns), disk.label)
    parts, size = [], 0
    for batch, done in disk.batches(columns):
        parts.append(batch)
        size += unpacked_bytes(batch)
        need_memory_for_bytes(size, disk.label, disk.packed)
        on_batch(done)
    with disk.reading():
        return pa.Table.from_batches(parts)


def _read_as(table: Any, columns: Sequence[str], disk: DiskTable, kinds: Mapping[str, Kind]) -> ReadTable:
    import pyarrow as pa

    known: dict[str, Kind | None] = {name: kinds.get(name) for name in columns}
    if not disk.is_text and not disk.is_sheet:
        return ReadTable(typed(table, known, disk), ())
    latin = disk.is_text and any(is_latin(chunk) for column in table.columns for chunk in column.chunks)
    remarks = [f"Some text of {disk.label} is not UTF-8: {LATIN}"] if latin else []
    remarks += disk.remarks
    made = []  # at the end they become one table: to put one in its place takes as long as there are columns
    for name, column in zip(columns, table.columns, strict=True):
        cells = column
        if known[name] is None and (disk.is_text or pa.types.is_string(column.type)):
            cells = pa.chunked_array([cells_of(chunk) for chunk in column.chunks]).combine_chunks()
            known[name] = kind_of_text(cells, disk.decimal_comma)
            remark = remark_on(cells, disk.decimal_comma) if known[name] == "category" else None
            remarks += [f"{name!r} {remark}."] if remark else []
        made.append(cells)
    table = pa.table(made, names=list(columns))
    return ReadTable(typed(table, known, disk), tuple(remarks))
