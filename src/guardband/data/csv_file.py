"""CSV as it comes: compressed or not, with any common separator, in blocks of text that are still to be read."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, cast

from guardband.data.damage import UnreadableError, reason_of
from guardband.data.text_cells import DECIMAL_COMMA, FINITE, decoded
from guardband.data.zip_file import DAMAGED, ZIP, damaged, only_member

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATORS = (",", ";", "\t", "|")
HEAD = 1 << 20
BLOCK = 4 << 20
SNIFFED = 20
COUNTED = 1000
"""The decimal signs of so many rows say which one the file has."""
LETTING_GO = 1.0
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")


class Stream(io.RawIOBase):
    """A file read once from its beginning, unpacked if it is gzip, or zip with one file in it."""

    def __init__(self, file: io.BufferedReader, label: str) -> None:
        self._file, self._label, self._given = file, label, 0
        start = file.peek(len(GZIP))
        self._is_zip = start.startswith(ZIP)
        self._text: IO[bytes] = file
        if self._is_zip:
            self._text = only_member(file, label)
        elif start.startswith(GZIP):
            self._text = cast(IO[bytes], gzip.GzipFile(fileobj=file))
        self.head = self._ready = self._read(HEAD)

    @property
    def taken(self) -> int:
        """How many bytes of the file were read; of a pipe, how many bytes of text."""
        return self._file.tell() if self._file.seekable() else self._given

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, and return how much of it is filled: nothing at the end."""
        text = self._ready or self._read(len(buffer))
        size = min(len(buffer), len(text))
        buffer[:size], self._ready = text[:size], text[size:]
        self._given += size
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _read(self, size: int) -> bytes:
        if self._is_zip:
            try:
                return self._text.read(size)
            except DAMAGED as error:
                raise damaged(self._label, error) from None
        try:
            return self._text.read(size)
        except EOFError:
            raise UnreadableError(
                f"{self._label} is cut short: its gzip has no end. Copy or download it again."
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise UnreadableError(
                f"{self._label} is a damaged gzip file: {error}. Copy or download it again."
            ) from None


@dataclass(frozen=True)
class Dialect:
    """How a file writes its rows, the names of its columns as they stand there, and whether its head is no UTF-8.

    ``empty_lines`` counts those before the names. ``writes_commas``: most of its numbers have a decimal comma.
    """

    separator: str
    encoding: str
    names: tuple[str, ...]
    is_latin: bool
    empty_lines: int
    writes_commas: bool = False

    @property
    def decimal_comma(self) -> bool:
        """Whether a number may be written with a comma: only if commas do not separate columns."""
        return self.separator != ","


def sniff(head: bytes, label: str) -> Dialect:
    """Return the dialect of a file that begins so."""
    if head.startswith(UTF32):
        raise ValueError(f"{label} is written as UTF-32: save it as UTF-8.")
    encoding = "utf-16" if head.startswith(UTF16) else "utf-8"
    if encoding == "utf-8" and b"\0" in head:
        raise UnreadableError(
            f"{label} is not a table: save it as CSV (also .gz or .zip), Parquet, Arrow, Feather or Excel."
        )
    # Latin-1 reads any bytes: what they mean is for each cell apart to tell, as for the cells below.
    text = head.decode(encoding, "ignore") if encoding == "utf-16" else head.removeprefix(BOM).decode("latin-1")
    if not text.strip():
        raise UnreadableError(f"{label} is empty: a table needs a line of column names, and rows.")
    if len(head) >= HEAD:
        text = text[: max(map(text.rfind, "\r\n")) + 1]  # the last line is not whole
    rows = text.lstrip("\r\n")
    empty_lines = len(text.removesuffix(rows).splitlines())
    found = {separator: _records(rows, separator) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: _fitness(found[separator]))
    if not found[best]:
        raise ValueError(
            f"{label} has a first line that is too long for column names. Write column names into the first line."
        )
    names = found[best][0]
    if encoding == "utf-8":
        names = [decoded(name.encode("latin-1")) for name in names]
    is_latin = encoding == "utf-8" and not _is_utf8(head)
    return Dialect(best, encoding, tuple(names), is_latin, empty_lines, _writes_commas(rows, best))


def _writes_commas(text: str, separator: str) -> bool:
    """Return whether more of the first numbers have a decimal comma than a point."""
    if separator == ",":
        return False
    cells = [cell.strip() for record in _records(text, separator, COUNTED) for cell in record]
    commas = sum(bool(re.match(DECIMAL_COMMA, cell)) for cell in cells if "," in cell)
    return commas > sum(bool(re.match(FINITE, cell)) for cell in cells if "." in cell)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def csv_blocks(
    stream: Stream, dialect: Dialect, names: Sequence[str], label: str, again: Callable[[], Stream] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in blocks, every column as bytes; ``again`` opens the file once more, if that can be.

    Several threads do not count lines, which errors name: they read what can be read again by one.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    file = io.BufferedReader(stream, HEAD)
    alone = sys.getrefcount(file)
    reader = None
    try:
        reader = arrow_csv.open_csv(
            # A buffer of Arrow's own: its threads keep blocks of text, and none of them shall be an object of Python.
            pa.BufferedInputStream(pa.PythonFile(file, "r"), HEAD),
            arrow_csv.ReadOptions(
                use_threads=again is not None,
                block_size=BLOCK,
                column_names=list(names),
                skip_rows_after_names=dialect.empty_lines + 1,
                encoding=dialect.encoding,
            ),
            arrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types={name: pa.binary() for name in names}),
        )
        yield from reader
    except pa.ArrowInvalid as error:
        if again is not None:
            with closing(again()) as own:
                for _ in csv_blocks(own, dialect, names, label, None):
                    pass
        raise UnreadableError(f"{label}: {_in_words(str(error))}") from None
    finally:
        # A thread of Arrow that lets go of the file while Python ends would abort the process.
        del reader
        until = time.monotonic() + LETTING_GO
        while sys.getrefcount(file) > alone and time.monotonic() < until:
            time.sleep(0.001)


def _in_words(message: str) -> str:
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if ragged:
        row, expected, got = (int(number) for number in ragged.groups())
        return f"line {row:,} has {got} cell{'' if got == 1 else 's'}, but the header has {expected}. Correct the line."
    if "straddl" in message:
        return (
            f"a line or a quoted cell is longer than {BLOCK >> 20} MB. A quotation mark may lack its partner: correct "
            "the file."
        )
    return f"{reason_of(message)}. Correct the file, or write it again as CSV."


def _records(text: str, separator: str, most: int = SNIFFED) -> list[list[str]]:
    """Return the first rows, up to one with a field that is longer than the csv module takes."""
    records = []
    with suppress(csv.Error):
        for record in islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), most):
            records.append(record)
    return [record for record in records if record]


def _fitness(records: list[list[str]]) -> tuple[float, int]:
    """Return how well a separator fits: how many records are as wide as the first, then how wide that is."""
    width = len(records[0]) if records else 1
    if width == 1:
        return 0.0, 1
    return sum(len(record) == width for record in records) / len(records), width
