"""Tables written batch by batch: CSV, Parquet or Arrow, on disk or to standard output."""

from __future__ import annotations

import csv
import gzip
import io
import re
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
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the last four are full-width, for which spreadsheets take the others
FORMULAS = (
    (rf"([,;|\t\r\n][ \"]*)([{_SIGNS}])", r"\1'\2"),
    (rf"^([ \"]*[{_SIGNS}]|[\t\r\n])", r"'\1"),
)
"""Where a spreadsheet begins a formula, after what it may take for the end of a cell and at the start of one."""
A_NUMBER = r"^[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?$|^[+-]?(inf|Inf|nan|NaN)$"


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
def open_writer(
    path: Path | None, ending: str, separator: str = ",", no_formulas: bool = False, decimal_comma: bool = False
) -> Iterator[Writer]:
    """Open a file for a table, or standard output for None; what follows the ending is for CSV alone."""
    style = (separator, no_formulas, decimal_comma)
    if path is None:
        yield CsvWriter(sys.stdout.buffer, *style)
        sys.stdout.buffer.flush()
    elif ending == ".csv":
        with path.open("wb") as file:
            yield CsvWriter(file, *style)
    elif ending == ".csv.gz":
        # No name and no time of day inside: the same rows give the same bytes.
        with path.open("wb") as file, gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed:
            yield CsvWriter(packed, *style)
    else:
        writer = ArrowWriter(path, parquet=ending == ".parquet")
        try:
            yield writer
        finally:
            writer.close()


class CsvWriter:
    """Writes CSV, with quotes around those cells alone that need them; if asked, no cell is a formula.

    ``decimal_comma`` writes numbers with a comma in place of the point.
    """

    def __init__(
        self, file: BinaryIO | gzip.GzipFile, separator: str, no_formulas: bool = False, decimal_comma: bool = False
    ) -> None:
        self._file, self._separator, self._no_formulas = file, separator, no_formulas
        self._decimal_comma = decimal_comma
        self.names: list[str] = []

    def write(self, table: pa.Table) -> None:
        """Write more rows, after the names of the columns."""
        lines = csv_lines(table, self._separator, self._no_formulas, self._decimal_comma) if len(table) else None
        if not self.names:
            self.names = table.column_names
            names = [_harmless_name(name) for name in self.names] if self._no_formulas else self.names
            line = io.StringIO()
            csv.writer(line, delimiter=self._separator, lineterminator="\n").writerow(names)
            self._file.write(line.getvalue().encode())
        if lines is not None:
            self._file.write(lines)


def csv_lines(table: pa.Table, separator: str, no_formulas: bool = False, decimal_comma: bool = False) -> memoryview:
    """Return the rows as lines of CSV; missing cells are empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = {name: _text(name, table[name]) for name in table.column_names}
    if no_formulas:
        texts = {name: _harmless(text, table[name].type) for name, text in texts.items()}
    if decimal_comma:
        texts = {name: _with_comma(text, table[name].type) for name, text in texts.items()}
    columns = [_quoted(text, separator) for text in texts.values()]
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
            f"The column {name!r} holds {column.type}, which CSV cannot store. Write Parquet or Arrow, "
            "or remove the column."
        ) from None


def _with_comma(text: Any, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.replace_substring(text, ".", ",") if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else text


def _harmless(text: Any, kind: Any) -> Any:
    """Return text with an apostrophe before what a spreadsheet would run; numbers, dates and truth are none of it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_temporal(kind):
        return text
    marked = text
    for begin, harmless in FORMULAS:
        marked = pc.replace_substring_regex(marked, begin, harmless)
    return pc.if_else(pc.match_substring_regex(text, A_NUMBER), text, marked)


def _harmless_name(name: str) -> str:
    for begin, harmless in FORMULAS if not re.search(A_NUMBER, name) else ():
        name = re.sub(begin, harmless, name)
    return name


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
