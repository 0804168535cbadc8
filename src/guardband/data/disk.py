"""Tables on disk: CSV, Parquet, Arrow, Feather and Excel, in batches, by pyarrow (the extra ``tables``)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.data.arrow_file import batches_in
from guardband.data.csv_file import BLOCK, Dialect, Stream, csv_blocks, sniff
from guardband.data.damage import AGAIN, UnreadableError, need_sound, plain_batch, plain_schema, reading, unpacked_bytes
from guardband.data.excel_file import OLD_EXCEL, read_sheet
from guardband.data.files import STANDARD
from guardband.data.memory import need_memory_for_bytes
from guardband.data.packages import need_packages
from guardband.data.parquet_file import row_groups
from guardband.data.parquet_rows import parquet_rows
from guardband.data.storage import Address, arrow_source, buffer_bytes, is_address
from guardband.data.zip_file import ZIP, is_workbook

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_CELLS = 1 << 21
MOST_ROWS, FEWEST_ROWS = 1 << 15, 1 << 10
MOST_COLUMNS = 100_000
PARQUET, ARROW = b"PAR1", b"ARROW1"


class NoRowsError(ValueError):
    """A table that has columns alone."""


@dataclass(frozen=True)
class DiskTable:
    """A table that is read in batches: ``_read`` yields each with how much of ``total`` (bytes or rows) is done.

    It is told which columns are wanted (None: all), and may yield others beside them. ``schema`` has the types of the
    columns, None for a CSV. ``is_sheet``: it is one of Excel, whose text is read as that of a CSV. ``remarks`` are
    sentences on its cells, and ``_place`` says where a row lies if there are several files. ``kind`` is the format that
    the file begins as if its buffers become columns as they are: Parquet or Arrow. ``packed`` is how many bytes it has.
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
    kind: str | None = None
    packed: int | None = None

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
        for batch, done in self.sound_batches(columns):
            rows += len(batch)
            yield batch if columns is None else batch.select(list(columns)), done
        if not rows:
            raise NoRowsError(f"{self.label} has column names, but no rows: add rows below them.")

    def sound_batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield all rows, perhaps none: the one way to them, where what a file's own buffers hold is tested first."""
        with self.reading():
            if self.kind is None:
                yield from self._read(columns)
            else:
                yield from self._tested(columns)

    def _tested(self, columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        rows, size = 0, batch_rows(len(self.names))
        for batch, _ in self._read(columns):
            need_sound(batch)
            for start in range(0, len(batch), size):
                part = batch.slice(start, size)
                rows += len(part)
                need_memory_for_bytes(unpacked_bytes(part), self.label, self.packed)
                yield plain_batch(part), rows
        if rows != self.total:
            raise UnreadableError(f"{self.label} says that it has {self.total:,} rows, but holds {rows:,}. {AGAIN}")

    def reading(self) -> AbstractContextManager[None]:
        """Say in one sentence what goes wrong inside, where the table is read or converted."""
        return reading(self.label, self.kind)


def open_table(path: str, sheet: str | None = None) -> DiskTable:
    """Return the table at a path, or the CSV on standard input for ``-``; the content says what format it is.

    ``sheet`` names one of a workbook; otherwise the first that is not empty is read.
    """
    need_packages("tables", "pyarrow")
    found = _opened(path, sheet)
    if len(found.names) > MOST_COLUMNS:
        raise ValueError(
            f"{found.label} has {len(found.names):,} columns, but guardband reads at most {MOST_COLUMNS:,}. Drop some."
        )
    return found


def _opened(path: str, sheet: str | None) -> DiskTable:
    if path == STANDARD:
        _need_no_sheet(sheet, "Standard input")
        given: Any = sys.stdin.buffer
        return _open_csv(None, Stream(io.BufferedReader(given), "Standard input"), "Standard input")
    file = Address.of(path) if is_address(path) else Path(path)
    if isinstance(file, Path):
        _need_file(file)
    with file.open("rb") as opened:
        start = opened.read(8)
        is_sheet = start.startswith(OLD_EXCEL) or (start.startswith(ZIP) and is_workbook(opened, path))
    if isinstance(file, Path) and is_sheet:
        return _open_sheet(file, sheet)
    _need_no_sheet(sheet, path)
    if start.startswith(PARQUET):
        return _open_parquet(file)
    if isinstance(file, Path) and start.startswith(ARROW):
        return _open_arrow(file)
    if is_sheet or start.startswith(ARROW):
        raise ValueError(f"{path} is neither Parquet nor CSV. Save it as one of them, or copy it to this machine.")
    with file.open("rb") as opened:
        return _open_csv(file, Stream(opened, path), path)


def _need_file(file: Path) -> None:
    if file.is_dir():
        raise ValueError(f"{file} is a folder: name a file in it, or several by a pattern such as '{file}/*.csv'.")
    if not file.exists():
        raise FileNotFoundError(f"There is no table at {file}: check the path.")
    if not file.is_file():
        raise ValueError(f"{file} can be read only once, and a table is read twice. Pass it by standard input, as -.")


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


def _open_csv(file: Path | Address | None, stream: Stream, label: str) -> DiskTable:
    dialect = sniff(stream.head, label)
    names = unique_names(dialect.names)

    again = None if file is None else partial(_stream, file, label)
    first: Callable[[], Stream] = again or (lambda: stream)  # otherwise let go of: it holds the head of the file

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        with closing(first()) as own:
            for batch in csv_blocks(own, dialect, names, label, again):
                yield batch, own.taken

    packed = None if file is None else file.stat().st_size
    return DiskTable(label, names, packed, dialect, read, packed=packed)


def _stream(file: Path | Address, label: str) -> Stream:
    return Stream(file.open("rb") if isinstance(file, Path) else file.open("rb", BLOCK), label)


def _open_parquet(path: Path | Address) -> DiskTable:
    from pyarrow import parquet

    with reading(str(path), "Parquet"):
        with path.open("rb") as opened:
            row_groups(opened, str(path))  # which refuses columns that are nested too deep
        with arrow_source(path) as source:
            about = parquet.read_metadata(source)
        schema = about.schema.to_arrow_schema()
        names = schema.names
    unique = unique_names(names)
    # Parquet finds columns by names as they stand there, in which a dot leads into a column.
    can_choose = unique == tuple(names) and not any("." in name for name in names)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        done = 0
        wanted = set(unique if columns is None or not can_choose else columns)
        chosen = [name for name in unique if name in wanted]
        # Columns are read through small buffers: a row group may be larger than memory.
        buffer = buffer_bytes(path, len(names))
        with arrow_source(path) as source, parquet.ParquetFile(source, buffer_size=buffer, pre_buffer=False) as file:
            _need_unchanged(file.schema_arrow, schema, path)
            for batch in parquet_rows(path, file, batch_rows(len(names)), chosen if can_choose else None):
                done += len(batch)
                yield batch.rename_columns(chosen), done

    return _columnar(path, "Parquet", unique, about.num_rows, schema, read)


def _open_arrow(path: Path) -> DiskTable:
    import pyarrow as pa

    with reading(str(path), "Arrow"):
        with path.open("rb") as opened:
            found, packed = batches_in(opened, str(path)), opened.seek(0, 2)
        # Not by a memory map: a file that is cut while it is read would end the process.
        with pa.OSFile(str(path)) as source:
            schema = pa.ipc.open_file(source).schema
        names = schema.names
    unique = unique_names(names)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        done = 0
        wanted = set(unique if columns is None else columns)
        chosen = [i for i, name in enumerate(unique) if name in wanted]
        with pa.OSFile(str(path)) as source:
            file = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))
            _need_unchanged(file.schema, pa.schema([schema.field(i) for i in chosen]), path)
            for i in range(file.num_record_batches):
                need_memory_for_bytes(found[i].size if i < len(found) else 0, str(path), packed)
                batch = file.get_batch(i)
                done += len(batch)
                yield batch.rename_columns([unique[j] for j in chosen]), done

    return _columnar(path, "Arrow", unique, sum(batch.rows for batch in found), schema, read)


def _columnar(
    path: Path | Address,
    kind: str,
    names: tuple[str, ...],
    rows: int,
    schema: pa.Schema,
    read: Callable[[Sequence[str] | None], Iterator[tuple[pa.RecordBatch, int]]],
) -> DiskTable:
    import pyarrow as pa

    if not names:
        raise ValueError(f"{path} has no columns. Write a table that has some.")
    renamed = pa.schema(list(zip(names, schema.types, strict=True)))
    return DiskTable(str(path), names, rows, None, read, plain_schema(renamed), kind=kind, packed=path.stat().st_size)


def _need_unchanged(found: pa.Schema, known: pa.Schema, path: Path | Address) -> None:
    if not found.equals(known):
        raise UnreadableError(f"{path} was changed while guardband read it. Try again when it is complete.")


def batch_rows(columns: int) -> int:
    """Return how many rows to read at a time: a bounded number of cells."""
    return max(FEWEST_ROWS, min(MOST_ROWS, BATCH_CELLS // max(1, columns) // FEWEST_ROWS * FEWEST_ROWS))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without blanks around them; nameless columns get a number, and repeated names a suffix.

    The letter of code 0, at which Arrow takes a name to end, is a blank.

    >>> unique_names(["a", " a", "", "b"])
    ('a', 'a (2)', 'column 3', 'b')
    """
    whole = [name.replace("\0", " ") if "\0" in name else name for name in names]
    given = [name.strip() or f"column {i}" for i, name in enumerate(whole, 1)]
    taken, unique = set(given), dict[str, None]()
    latest: dict[str, int] = {}
    for name in given:
        again, own = latest.get(name, 1), name
        while own in unique or (again > 1 and own in taken):
            again += 1
            own = f"{name} ({again})"
        latest[name], unique[own] = again, None
    return tuple(unique)
