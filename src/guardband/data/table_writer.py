"""Tables written batch by batch: CSV, Parquet or Arrow, on disk or to standard output."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from guardband.data.files import STANDARD
from guardband.data.text_cells import as_text

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")
COMPRESSION = 6


class Writer(Protocol):
    """Takes a table's rows in batches that have the same columns, ``names``."""

    names: list[str]

    def write(self, table: pa.Table) -> None:
        """Write more rows."""


def format_of(path: str) -> str:
    """Return the format that a name asks for, as its ending; standard output is CSV."""
    if path == STANDARD:
        return ".csv"
    found = next((ending for ending in FORMATS if path.lower().endswith(ending)), None)
    if found is None:
        raise ValueError(f"The name of a table must end in one of {', '.join(FORMATS)}, found {path}.")
    return found


@contextmanager
def open_writer(path: Path | None, ending: str, separator: str = ",") -> Iterator[Writer]:
    """Open a file for a table, or standard output for None."""
    if path is None:
        yield CsvWriter(sys.stdout.buffer, separator)
        sys.stdout.buffer.flush()
    elif ending == ".csv":
        with path.open("wb") as file:
            yield CsvWriter(file, separator)
    elif ending == ".csv.gz":
        with gzip.open(path, "wb", COMPRESSION) as packed:
            yield CsvWriter(packed, separator)
    else:
        writer = ArrowWriter(path, parquet=ending == ".parquet")
        try:
            yield writer
        finally:
            writer.close()


class CsvWriter:
    """Writes CSV, with quotes around those cells alone that need them."""

    def __init__(self, file: BinaryIO | gzip.GzipFile, separator: str) -> None:
        self._file, self._separator = file, separator
        self.names: list[str] = []

    def write(self, table: pa.Table) -> None:
        """Write more rows, after the names of the columns."""
        lines = csv_lines(table, self._separator) if len(table) else None
        if not self.names:
            self.names = table.column_names
            line = io.StringIO()
            csv.writer(line, delimiter=self._separator, lineterminator="\n").writerow(self.names)
            self._file.write(line.getvalue().encode())
        if lines is not None:
            self._file.write(lines)


def csv_lines(table: pa.Table, separator: str) -> memoryview:
    """Return the rows as lines of CSV; missing cells are empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [_quoted(_text(name, table[name]), separator) for name in table.column_names]
    lines = pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement="")
    ended = pc.binary_join_element_wise(lines, "", "\n")
    buffer = (ended.combine_chunks() if isinstance(ended, pa.ChunkedArray) else ended).buffers()[2]
    return memoryview(buffer)


def _text(name: str, column: Any) -> Any:
    import pyarrow as pa

    try:
        return as_text(column.combine_chunks())
    except pa.ArrowNotImplementedError:
        raise ValueError(
            f"The column {name!r} holds {column.type}, which CSV cannot: write Parquet or Arrow, or leave it out."
        ) from None


def _quoted(column: Any, separator: str) -> Any:
    """Return text with quotes where it holds something that CSV would misread."""
    import pyarrow.compute as pc

    data = column.buffers()[2]
    view = b"" if data is None else data.to_pybytes()
    if not any(sign in view for sign in (b'"', b"\n", b"\r", separator.encode())):
        return column
    doubled = pc.replace_substring(column, '"', '""')
    special = pc.match_substring_regex(column, f'["\\r\\n\\{separator}]')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), column)


class ArrowWriter:
    """Writes Parquet or Arrow; the first batch fixes the types of the columns."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self._path, self._parquet, self._writer = path, parquet, None
        self._schema: Any = None
        self.names: list[str] = []

    def write(self, table: pa.Table) -> None:
        """Write more rows."""
        import pyarrow as pa
        from pyarrow import parquet

        if self._writer is None:
            self._schema, self.names = table.schema.remove_metadata(), table.column_names
            open_file: Any = parquet.ParquetWriter if self._parquet else pa.ipc.new_file
            self._writer = open_file(str(self._path), self._schema)
        assert self._writer is not None
        self._writer.write_table(table.cast(self._schema))

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()
