"""Tables on disk: CSV, Parquet, Arrow, Feather and Excel, in batches or whole, by pyarrow (the extra ``tables``)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.data.csv_file import Dialect, Stream, csv_blocks, sniff
from guardband.data.excel_file import OLD_EXCEL, read_sheet
from guardband.data.files import STANDARD
from guardband.data.kinds import Kind, column_of, kind_of_text, remark_on
from guardband.data.packages import need_packages
from guardband.data.text_cells import CellError, cells_of, is_bytes, is_latin
from guardband.data.zip_file import ZIP, is_workbook

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_CELLS = 1 << 21
MOST_ROWS, FEWEST_ROWS = 1 << 15, 1 << 10
LATIN = "guardband reads it as Latin-1. Save the file as UTF-8 if letters look wrong."
PARQUET, ARROW = b"PAR1", b"ARROW1"


@dataclass(frozen=True)
class DiskTable:
    """A table that is read in batches: ``_read`` yields each with how much of ``total`` (bytes or rows) is done.

    It is told which columns are wanted (None: all), and may yield others beside them. ``schema`` has the types of the
    columns, None for a CSV. ``is_sheet``: it is one of Excel, whose text is read as that of a CSV. ``remarks`` are
    sentences on its cells, and ``_place`` says where a row lies if there are several files.
    """

    label: str
    names: tuple[str, ...]
    total: int | None
    dialect: Dialect | None
    _read: Callable[[Sequence[str] | None], Iterator[tuple[pa.RecordBatch, int]]]
    schema: pa.Schema | None = None
    is_sheet: bool = False
    remarks: tuple[str, ...] = ()
    _place: Callable[[int], str] | None = None

    @property
    def is_text(self) -> bool:
        """Whether all cells arrive as bytes that are still to be read: of CSV."""
        return self.dialect is not None

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers may be written with a comma."""
        return self.is_sheet if self.dialect is None else self.dialect.decimal_comma

    def place(self, row: int) -> str:
        """Return where a row lies that was read, counted from 1: its number, and its file."""
        return f"row {row:,} of {self.label}" if self._place is None else self._place(row)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield all rows in order, and how much is done; none are an error. Standard input can be read once."""
        rows = 0
        for batch, done in self._read(columns):
            rows += len(batch)
            yield batch if columns is None else batch.select(list(columns)), done
        if not rows:
            raise ValueError(f"{self.label} has column names, but no rows: add rows below them.")


def open_table(path: str, sheet: str | None = None) -> DiskTable:
    """Return the table at a path, or the CSV on standard input for ``-``; the content says what format it is.

    ``sheet`` names one of a workbook; otherwise the first that is not empty is read.
    """
    need_packages("tables", "pyarrow")
    if path == STANDARD:
        _need_no_sheet(sheet, "Standard input")
        given: Any = sys.stdin.buffer
        return _open_csv(None, Stream(io.BufferedReader(given), "Standard input"), "Standard input")
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it, or several by a pattern such as '{path}/*.csv'.")
    if not file.exists():
        raise FileNotFoundError(f"There is no table at {path}: check the path.")
    if not file.is_file():
        raise ValueError(f"A table must be a file, found {path}, which is read once: pass it by standard input, as -.")
    with file.open("rb") as opened:
        start = opened.read(8)
        if start.startswith(OLD_EXCEL) or (start.startswith(ZIP) and is_workbook(opened, path)):
            return _open_sheet(file, sheet)
    _need_no_sheet(sheet, path)
    if start.startswith(PARQUET):
        return _open_parquet(file)
    if start.startswith(ARROW):
        return _open_arrow(file)
    with file.open("rb") as opened:
        return _open_csv(file, Stream(opened, path), path)


def _need_no_sheet(sheet: str | None, label: str) -> None:
    if sheet is not None:
        raise ValueError(f"{label} is not a workbook of Excel, and has no sheets: remove --sheet.")


def _open_sheet(path: Path, sheet: str | None) -> DiskTable:
    found = read_sheet(path, sheet)
    names = unique_names(found.names)
    table = found.rows.rename_columns(list(names))

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        done = 0
        for batch in table.combine_chunks().to_batches(batch_rows(len(names))):
            done += len(batch)
            yield batch, done

    return DiskTable(found.label, names, len(table), None, read, table.schema, is_sheet=True, remarks=found.remarks)


def _open_csv(file: Path | None, stream: Stream, label: str) -> DiskTable:
    dialect = sniff(stream.head, label)
    names = unique_names(dialect.names)

    again = None if file is None else lambda: Stream(file.open("rb"), label)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        with closing(stream if again is None else again()) as own:
            for batch in csv_blocks(own, dialect, names, label, again):
                yield batch, own.taken

    return DiskTable(label, names, None if file is None else file.stat().st_size, dialect, read)


def _open_parquet(path: Path) -> DiskTable:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
        schema = about.schema.to_arrow_schema()
        names = schema.names
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Parquet", error) from None

    unique = unique_names(names)
    # Parquet finds columns by names as they stand there, in which a dot leads into a column.
    can_choose = unique == tuple(names) and not any("." in name for name in names)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        done = 0
        wanted = set(unique if columns is None or not can_choose else columns)
        chosen = [name for name in unique if name in wanted]
        try:
            # Columns are read through small buffers: a row group may be larger than memory.
            with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_rows(len(names)), columns=chosen if can_choose else None):
                    done += len(batch)
                    yield batch.rename_columns(chosen), done
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, "Parquet", error) from None

    return DiskTable(str(path), unique, about.num_rows, None, read, _renamed(schema, unique))


def _open_arrow(path: Path) -> DiskTable:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            file = pa.ipc.open_file(source)
            schema, names = file.schema, file.schema.names
            total = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Arrow", error) from None
    unique = unique_names(names)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        done, size = 0, batch_rows(len(names))
        try:
            with pa.memory_map(str(path)) as source:
                file = pa.ipc.open_file(source)
                for i in range(file.num_record_batches):
                    whole = file.get_batch(i)
                    for start in range(0, len(whole), size):
                        part = whole.slice(start, size)
                        done += len(part)
                        yield part.rename_columns(list(unique)), done
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, "Arrow", error) from None

    return DiskTable(str(path), unique, total, None, read, _renamed(schema, unique))


def _renamed(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(list(zip(names, schema.types, strict=True)))


def _damaged(path: Path, kind: str, error: Exception) -> ValueError:
    reason = str(error).split("\n")[0].rstrip(".")
    return ValueError(f"{path} begins as {kind}, but cannot be read: {reason}. Write or copy the file again.")


def batch_rows(columns: int) -> int:
    """Return how many rows to read at a time: a bounded number of cells."""
    return max(FEWEST_ROWS, min(MOST_ROWS, BATCH_CELLS // max(1, columns) // FEWEST_ROWS * FEWEST_ROWS))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without blanks around them; nameless columns get a number, and repeated names a suffix.

    >>> unique_names(["a", " a", "", "b"])
    ('a', 'a (2)', 'column 3', 'b')
    """
    given = [name.strip() or f"column {i}" for i, name in enumerate(names, 1)]
    taken, unique = set(given), dict[str, None]()
    latest: dict[str, int] = {}
    for name in given:
        again, own = latest.get(name, 1), name
        while own in unique or (again > 1 and own in taken):
            again += 1
            own = f"{name} ({again})"
        latest[name], unique[own] = again, None
    return tuple(unique)


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
    import pyarrow as pa

    parts = []
    for batch, done in disk.batches(columns):
        parts.append(batch)
        on_batch(done)
    table = pa.Table.from_batches(parts)
    known: dict[str, Kind | None] = {name: (kinds or {}).get(name) for name in columns}
    if not disk.is_text and not disk.is_sheet:
        return ReadTable(typed(table, known, disk), ())
    latin = disk.is_text and any(is_latin(chunk) for column in table.columns for chunk in column.chunks)
    remarks = [f"Some text of {disk.label} is not UTF-8: {LATIN}"] if latin else []
    remarks += disk.remarks
    for i, name in enumerate(columns):
        if known[name] is None and (disk.is_text or pa.types.is_string(table[name].type)):
            cells = pa.chunked_array([cells_of(chunk) for chunk in table[name].chunks]).combine_chunks()
            table = table.set_column(i, name, cells)
            known[name] = kind_of_text(cells, disk.decimal_comma)
            remark = remark_on(cells, disk.decimal_comma) if known[name] == "category" else None
            remarks += [f"{name!r} {remark}."] if remark else []
    return ReadTable(typed(table, known, disk), tuple(remarks))


def typed(table: Any, kinds: Mapping[str, Kind | None], disk: DiskTable, first_row: int = 0) -> pa.Table:
    """Return the columns named, each as what it was when the model was fitted (None: as it comes)."""
    import pyarrow as pa

    made = [_typed(name, table.column(name), kind, disk, first_row) for name, kind in kinds.items()]
    return pa.table(made, names=list(kinds))


def _typed(name: str, column: Any, kind: Kind | None, disk: DiskTable, first_row: int) -> Any:
    import pyarrow as pa

    types, own = pa.types, column.type
    if types.is_nested(own) or isinstance(own, pa.BaseExtensionType):
        raise ValueError(
            f"The column {name!r} holds {own}, and a cell must be a number, a text, a date or a boolean: take it apart "
            "into columns, or leave it out."
        )
    if types.is_float16(own):
        return column.cast(pa.float32())
    if types.is_date64(own):
        column = column.cast(pa.date32())
    if types.is_date(own) or types.is_timestamp(own):
        if kind not in (None, "date"):
            raise ValueError(_retyped(name, kind, "dates"))
        return column
    is_text = any(is_so(own) for is_so in (types.is_string, types.is_large_string, types.is_string_view))
    if not is_text and not is_bytes(own):
        if kind == "date" and not types.is_null(own):
            raise ValueError(_retyped(name, kind, str(own)))
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(pa.string() if is_text else pa.binary())
    if kind is None:
        return column if is_text else cells_of(column)
    try:
        return column_of(column, kind, disk.decimal_comma)
    except CellError as error:
        raise ValueError(_retyped(name, kind, f"{error.text!r} in {disk.place(first_row + error.index + 1)}")) from None


def _retyped(name: str, kind: Kind | None, found: str) -> str:
    held = "categories" if kind == "category" else f"{kind}s"
    return (
        f"The column {name!r} held {held} when the model was fitted, found {found}: correct it, or fit the model again."
    )
