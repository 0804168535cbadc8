"""What an Arrow file says of its batches, read without trust and without their data: rows, place and size.

The file ends with a list of blocks. Each begins with a message, which says how many rows it has, where its buffers lie,
and, for a compressed buffer, how large it is when unpacked. These are tables of Flatbuffers: ``_Table`` reads one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

from guardband.data.damage import AGAIN, UnreadableError

MAGIC = b"ARROW1"
LONGEST_MESSAGE = 1 << 28
DICTIONARY, RECORDS = 2, 3
NOT_PACKED = -1


@dataclass(frozen=True)
class Batch:
    """How many rows a batch has, and how many bytes it takes in memory."""

    rows: int
    size: int


class _ContradictionError(Exception):
    """What a file says of itself cannot be."""


class _Table:
    """A table of Flatbuffers within its bytes; what leads outside of them is an error."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - self._read("i", place)
        self._end = self._read("H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """Return the table that the bytes begin with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _read(self, form: str, place: int) -> int:
        if place < 0:
            raise _ContradictionError("a place in it lies before its beginning")
        return int(struct.unpack_from(f"<{form}", self._data, place)[0])

    def _field(self, i: int) -> int | None:
        at = 4 + 2 * i
        place = self._read("H", self._fields + at) if at < self._end else 0
        return self._place + place if place else None

    def number(self, i: int, form: str = "q") -> int:
        """Return a number, 0 if it is left out."""
        place = self._field(i)
        return 0 if place is None else self._read(form, place)

    def table(self, i: int) -> _Table | None:
        """Return a table inside."""
        place = self._field(i)
        return None if place is None else _Table(self._data, place + self._read("I", place))

    def structs(self, i: int, form: str) -> list[tuple[int, ...]]:
        """Return a list of structures of numbers."""
        place = self._field(i)
        if place is None:
            return []
        place += self._read("I", place)
        size, count = struct.calcsize(f"<{form}"), self._read("I", place)
        part = self._data[place + 4 : place + 4 + size * count]
        if len(part) < size * count:
            raise _ContradictionError("a list in it goes beyond its end")
        return list(struct.iter_unpack(f"<{form}", part))


def batches_in(file: BufferedReader, label: str) -> list[Batch]:
    """Return what the file says of its batches; what contradicts its size is an error."""
    try:
        return list(_batches(file))
    except (struct.error, _ContradictionError) as error:
        reason = error if isinstance(error, _ContradictionError) else "a place in it lies beyond its end"
        raise UnreadableError(f"{label} begins as Arrow, but cannot be read: {reason}. {AGAIN}") from None


def _batches(file: BufferedReader) -> Iterator[Batch]:
    size = file.seek(0, 2)
    file.seek(max(0, size - 10))
    length, magic = struct.unpack("<i6s", file.read(10))
    if magic != MAGIC or not 0 < length <= size - 18:
        raise _ContradictionError("it is cut short, or has no end")
    file.seek(size - 10 - length)
    footer = _Table.root(file.read(length))
    blocks = [*footer.structs(2, "qi4xq"), *footer.structs(3, "qi4xq")]
    if sum(about + body for _, about, body in blocks) > size:  # one batch, listed often, would be read as often
        raise _ContradictionError("its batches overlap")
    kept = sum(_batch(file, block, size, DICTIONARY).size for block in footer.structs(2, "qi4xq"))
    for block in footer.structs(3, "qi4xq"):
        batch = _batch(file, block, size, RECORDS)
        yield Batch(batch.rows, batch.size + kept)


def _batch(file: BufferedReader, block: tuple[int, ...], end: int, kind: int) -> Batch:
    place, about, body = block
    if place < 8 or not 8 <= about <= LONGEST_MESSAGE or body < 0 or place + about + body > end:
        raise _ContradictionError("a batch lies beyond its end")
    file.seek(place)
    message = file.read(about)
    first, second = struct.unpack_from("<ii", message)
    message = message[8 : 8 + second] if first == -1 else message[4 : 4 + first]
    root = _Table.root(message)
    if root.number(1, "B") != kind:
        raise _ContradictionError("a block in it is no batch")
    records = root.table(2)
    if kind == DICTIONARY and records is not None:
        records = records.table(1)
    if records is None:
        raise _ContradictionError("a batch has no content")
    rows, buffers = records.number(0), records.structs(2, "qq")
    if rows < 0 or any(length < 0 or start < 0 or start + length > body for start, length in buffers):
        raise _ContradictionError("a buffer lies outside of its batch")
    if records.table(3) is None:
        return Batch(rows, body)
    return Batch(rows, sum(_unpacked(file, place + about + start, length) for start, length in buffers))


def _unpacked(file: BufferedReader, place: int, length: int) -> int:
    if length == 0:
        return 0
    file.seek(place)
    (size,) = struct.unpack("<q", file.read(8))
    if size < NOT_PACKED:
        raise _ContradictionError("a buffer has a negative size")
    return length if size == NOT_PACKED else int(size)
