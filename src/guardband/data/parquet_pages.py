"""How many rows of a Parquet file fit into memory at once, read from its pages' headers before anything is unpacked.

A page of a few bytes may unpack to gigabytes, or let thousands of rows repeat one long text. Arrow unpacks whole pages,
and writes out the texts of all rows that it is asked for at once. So the sizes of the pages, and the longest text that
a page can repeat, say what some rows may take. Numbers take eight bytes each, and are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.data.damage import AGAIN, UnreadableError
from guardband.data.memory import need_memory_for_bytes
from guardband.data.parquet_file import Chunk, Group, row_groups
from guardband.data.thrift import INT, STRUCT, Compact

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetSchema

ROOM = 1 << 27
"""Bytes that the rows which are unpacked at once may take, unless single pages need more."""
MORE = 4
"""Where single pages need more than ``ROOM``, so many times what they need."""
FEWER = tuple(1 << i for i in range(10, -1, -1))
"""Numbers of rows to try if those of a batch take too much; batches are multiples of them."""
HEADERS = tuple(1 << i for i in range(8, 25, 4))
"""Bytes in which the header of a page is looked for. Arrow takes no longer ones."""
LEFT_OUT = 100
"""Bytes of a header that old programs did not count, and that Arrow adds."""
TEXT, TEXT_OF_ONE_LENGTH = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
DATA, DICTIONARY, DATA_AGAIN = 0, 2, 3
REPEATED, BUILT_ON_OTHERS = (2, 8), 7
"""Encodings of texts: by numbers of a dictionary's entries, and by what a text has in common with the one before."""


class Pages(NamedTuple):
    """Pages of several columns: their first rows, numbers of rows, bytes, and bytes that each row may add."""

    first: NDArray[np.float64]
    rows: NDArray[np.float64]
    bytes: NDArray[np.float64]
    each: NDArray[np.float64]

    def most(self, rows: int) -> float:
        """Return the most bytes that one of the successive batches of so many rows may take."""
        takes = self.bytes + np.minimum(self.rows, rows) * self.each
        begin, end = self.first // rows, (self.first + np.maximum(self.rows, 1) - 1) // rows + 1
        at, change = np.concatenate([begin, end]), np.concatenate([takes, -takes])
        return float(np.cumsum(change[np.lexsort((change, at))]).max(initial=0.0))


def rows_at_once(
    file: BufferedReader,
    schema: ParquetSchema,
    columns: Sequence[str] | None,
    chosen: Sequence[int],
    most: int,
    label: str,
) -> int:
    """Return how many rows can be unpacked at once within bounded memory, at most ``most``, of which it is a divisor.

    A file of which a single row takes too much is refused. Other faults are left to Arrow.

    Parameters
    ----------
    file : BufferedReader
        The file, to be read from anywhere.
    schema : ParquetSchema
        Its columns.
    columns : sequence of str, or None
        The columns that will be read (None: all).
    chosen : sequence of int
        The row groups that will be read.
    most : int
        How many rows to unpack at once if nothing speaks against it.
    label : str
        What the file is called in errors.
    """
    size = file.seek(0, 2)
    groups = row_groups(file, label)
    if max(chosen, default=-1) >= len(groups):
        raise UnreadableError(f"{label} begins as Parquet, but cannot be read: its end is damaged. {AGAIN}")
    found = list(_pages(file, schema, columns, [groups[i] for i in chosen], size, label))
    pages = Pages(*np.array(found, dtype=float).reshape(-1, 4).T)
    if pages.most(most) <= ROOM:
        return most
    least = pages.most(1)
    need_memory_for_bytes(int(least), label, size)
    return next(rows for rows in (most, *FEWER) if rows == 1 or pages.most(rows) <= max(ROOM, MORE * least))


def _pages(
    file: BufferedReader, schema: Any, columns: Sequence[str] | None, groups: Sequence[Group], size: int, label: str
) -> Iterator[tuple[int, int, int, int]]:
    first = looked_at = 0
    kinds = [schema.column(i) for i in range(len(schema))]
    wanted = [columns is None or kind.path.partition(".")[0] in columns for kind in kinds]
    for group in groups:
        for kind, is_wanted, chunk in zip(kinds, wanted, group.chunks, strict=False):
            if not is_wanted or chunk.begin < 0:
                continue
            looked_at += max(0, chunk.end - chunk.begin)
            if looked_at > size:  # one page, listed often, would be read as often
                raise UnreadableError(f"{label} begins as Parquet, but cannot be read: its columns overlap. {AGAIN}")
            with suppress(IndexError, struct.error, RecursionError):
                yield from _of_chunk(file, kind, chunk, min(chunk.end + LEFT_OUT, size), first, group.rows)
        first += group.rows


def _of_chunk(
    file: BufferedReader, kind: Any, chunk: Chunk, end: int, first: int, rows: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the pages of a column in a row group; of a list, which rows they are in is not known: they are in all."""
    is_text, own = kind.physical_type == TEXT, kind.length if kind.physical_type == TEXT_OF_ONE_LENGTH else 0
    at, longest, behind, seen = chunk.begin, 0, 0, 0
    while at < end and seen < chunk.values:
        page = _header(file, at, end)
        if page.size < 0 or page.packed < 0 or page.values < 0:  # which Arrow refuses
            return
        at += page.header
        if page.kind == DICTIONARY:
            yield first, rows, 2 * page.size, 0
            if is_text:
                file.seek(at)
                longest = _longest(file.read(min(page.packed, end - at)), page.size, chunk.codec)
        elif page.kind in (DATA, DATA_AGAIN):
            each, size = own, page.size
            if is_text and page.encoding in REPEATED:
                each = longest
            elif is_text and page.encoding == BUILT_ON_OTHERS:
                behind += page.size
                each = behind
            elif is_text:
                size *= 2
            if kind.max_repetition_level:
                yield first, rows, size + page.values * each, 0
            else:
                yield first + seen, page.values, size, each
            seen += page.values
        at += page.packed


class _Page(NamedTuple):
    kind: int
    size: int
    packed: int
    values: int
    encoding: int
    header: int


def _header(file: BufferedReader, at: int, end: int) -> _Page:
    for most in HEADERS:
        file.seek(at)
        data = file.read(min(most, end - at))
        try:
            return _Header(data).page()
        except IndexError:
            if len(data) < most or most == HEADERS[-1]:
                raise
    raise AssertionError


class _Header(Compact):
    """The structure before a page; further ones in it say how many values a page has, and in which encoding."""

    VALUES, ENCODING = 1, {5: 2, 7: 2, 8: 4}

    def page(self) -> _Page:
        """Return what the structure says."""
        numbers = self._numbers()
        kind, size, packed, values, encoding = (numbers.get(i, 0) for i in range(5))
        return _Page(kind, size, packed, values, encoding, self.at)

    def _numbers(self, inside: int = 0) -> dict[int, int]:
        """Return kind, sizes, values and encoding, by places in ``_Page``."""
        found: dict[int, int] = {}
        field = 0
        places = {self.VALUES: 3, self.ENCODING[inside]: 4} if inside else {1: 0, 2: 1, 3: 2}
        while head := self.byte():
            field, kind = self.field(field, head), head & 15
            if kind == INT and field in places:
                found[places[field]] = self.integer()
            elif kind == STRUCT and not inside and field in self.ENCODING:
                found |= self._numbers(field)
            else:
                self.skip(kind)
        return found


def _longest(packed: bytes, size: int, codec: int) -> int:
    """Return the length of the longest text in a dictionary; what cannot be unpacked may be one text."""
    import pyarrow as pa

    data = packed
    if codec:
        if codec not in CODECS or size > ROOM:
            return size
        try:
            data = pa.decompress(packed, size, CODECS[codec], asbytes=True)
        except (pa.ArrowException, OSError, ValueError, MemoryError):
            return size
    at = longest = 0
    length_at = struct.Struct("<I").unpack_from
    while at + 4 <= len(data):
        (length,) = length_at(data, at)
        longest = max(longest, length)
        at += length + 4
    return min(longest, len(data))
