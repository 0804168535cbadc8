"""One sheet of a workbook, of Excel or OpenOffice, as a table: by fastexcel, in a process of its own."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa

FAULT, NOT_AVAILABLE = "Error(", "Error(NA)"
LOGGED_BY = "fastexcel.types.dtype"


@dataclass(frozen=True)
class Sheet:
    """A sheet's rows below the names of its columns, and remarks on its cells, one sentence each.

    The names are those of the sheet, "" for a column without one.
    """

    label: str
    names: tuple[str, ...]
    rows: pa.Table
    remarks: tuple[str, ...]


REFUSED = 4
FOR_PYTHON = 1 << 30
ABOUT = b"guardband"


def main(path: str, sheet: str | None, memory: int | None) -> None:
    """Write a sheet to standard output as a stream of Arrow, or the sentence that says why there is none."""
    import pyarrow as pa

    _limit(memory)
    try:
        found = load_sheet(Path(path), sheet)
    except ValueError as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        sys.stdout.buffer.flush()
        sys.exit(REFUSED)
    about = {"label": found.label, "names": found.names, "remarks": found.remarks}
    rows = found.rows.replace_schema_metadata({ABOUT: json.dumps(about)})
    with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as stream:
        stream.write_table(rows)
    sys.stdout.buffer.flush()


def _limit(memory: int | None) -> None:
    """Take no more memory than this: a workbook of a kilobyte may ask for a table of a terabyte."""
    if memory is None:
        return
    with suppress(ImportError, ValueError, OSError):  # not every system can set a limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory + FOR_PYTHON, memory + FOR_PYTHON))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def load_sheet(path: Path, sheet: str | None) -> Sheet:
    """Return a sheet by its name, or the first one that is not empty."""
    import fastexcel

    try:
        with _no_log():
            book = fastexcel.read_excel(path)
            names = book.sheet_names
            if sheet is not None and sheet not in names:
                raise ValueError(f"{path} has no sheet {sheet!r}: its sheets are {listed(names, 10)}.")
            for name in names if sheet is None else [sheet]:
                loaded = book.load_sheet(
                    name, schema_sample_rows=None, whitespace_as_null=True, skip_whitespace_tail_rows=True
                )
                if loaded.width:
                    return _read(loaded, f"sheet {name!r} of {path}" if len(names) > 1 else str(path))
    except fastexcel.FastExcelError as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(
            f"{path} cannot be read as a workbook of Excel: {reason}. Save it again as .xlsx, without a password."
        ) from None
    where = f"The sheet {sheet!r} of {path}" if sheet is not None else f"Every sheet of {path}"
    raise ValueError(f"{where} is empty: a table needs a row of column names, and rows.")


def _read(loaded: Any, label: str) -> Sheet:
    import pyarrow as pa

    batch, faults = loaded.to_arrow_with_errors()
    table = pa.Table.from_batches([batch])
    empty = [column.null_count == len(column) for column in table.columns]
    known = [about.column_name_from == "looked_up" for about in loaded.available_columns()]
    nameless = [i for i, named in enumerate(known) if not named and not empty[i]]
    if any(i > 0 for i in nameless):  # the first is often a row number that another program wrote
        raise ValueError(
            f"Some columns of {label} have no name, such as column {nameless[-1] + 1}: write a name into each cell of "
            "the first row, and split merged cells."
        )
    kept = [i for i in range(table.num_columns) if known[i] or not empty[i]]
    columns = [_moments(pa.nulls(len(table)) if empty[i] else table.column(i)) for i in kept]
    names = [table.column_names[i] if known[i] else "" for i in kept]
    rows = pa.Table.from_arrays(columns, names=[str(i) for i in range(len(kept))])
    return Sheet(label, tuple(names), rows.filter(_is_filled(rows)), tuple(_remarks(faults, names, kept, label)))


def _moments(column: Any) -> Any:
    """Return moments of days without hours as dates: Excel has one type for both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return column
    days = pc.floor_temporal(column, unit="day")
    return column.cast(pa.date32()) if pc.all(pc.equal(days, column)).as_py() else column


def _is_filled(rows: pa.Table) -> Any:
    """Return for each row whether it has a cell: empty ones are skipped, as in a CSV."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = pa.array([False] * len(rows), pa.bool_())
    for column in rows.columns:
        filled = pc.or_(filled, column.is_valid())
    return filled


def _remarks(faults: Any, names: list[str], kept: list[int], label: str) -> Iterator[str]:
    every = faults.errors if faults else []
    found = [fault for fault in every if FAULT in fault.detail and NOT_AVAILABLE not in fault.detail]
    if found:
        row, column = found[0].offset_position
        name = names[kept.index(column)] if column in kept else f"column {column + 1}"
        cells = "1 cell" if len(found) == 1 else f"{len(found):,} cells"
        yield (
            f"{cells} of {label} hold an error of a formula, first in {name!r} at row {row + 1:,}, and are read as "
            "missing: correct them if that is wrong."
        )


@contextmanager
def _no_log() -> Iterator[None]:
    """Keep fastexcel from writing that a column is empty."""
    logger = logging.getLogger(LOGGED_BY)
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
