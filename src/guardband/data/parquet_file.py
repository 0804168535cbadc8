"""How deep a Parquet file's columns are nested, read without trust: Arrow follows them down until its stack ends.

The file ends with a structure of Thrift's compact protocol. Its second field lists columns and groups in order, each
with the number of its children.
"""

from __future__ import annotations

import struct
from io import BufferedReader

from guardband.data.damage import AGAIN, UnreadableError

DEEPEST = 100
SCHEMA, CHILDREN = 2, 5
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


def need_shallow(file: BufferedReader, label: str) -> None:
    """Raise if columns are nested too deep to be read; other faults of the file are left to Arrow."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if len(end) < 8 or length > size - 8:
        return
    file.seek(size - 8 - length)
    try:
        is_deep = _Reader(file.read(length)).is_deep()
    except (IndexError, struct.error, RecursionError):
        is_deep = False
    if is_deep:
        raise UnreadableError(
            f"{label} begins as Parquet, but cannot be read: its columns are nested more than {DEEPEST} deep. {AGAIN}"
        )


class _Reader:
    """Reads Thrift's compact protocol; what leads beyond the end is an ``IndexError``."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def is_deep(self) -> bool:
        """Return whether one of the lists of columns in the structure is nested too deep."""
        field = 0
        while head := self._byte():
            field = self._field(field, head)
            if field == SCHEMA and head & 15 == LIST:
                if self._is_deep_schema():
                    return True
            else:
                self._skip(head & 15)
        return False

    def _is_deep_schema(self) -> bool:
        count, _ = self._list()
        waiting: list[int] = []  # for how many more children each group around the present one waits
        for _ in range(count):
            if waiting:
                waiting[-1] -= 1
            children = self._children()
            if children > 0:
                waiting.append(children)
            else:
                while waiting and waiting[-1] == 0:
                    waiting.pop()
            if len(waiting) > DEEPEST:
                return True
        return False

    def _children(self) -> int:
        field = children = 0
        while head := self._byte():
            field = self._field(field, head)
            if field == CHILDREN and head & 15 == 5:
                number = self._number()
                children = (number >> 1) ^ -(number & 1)
            else:
                self._skip(head & 15)
        return children

    def _field(self, before: int, head: int) -> int:
        """Return the number of a field, of 16 bits: Arrow reads larger ones as if they were smaller."""
        if head >> 4:
            return before + (head >> 4) & 0xFFFF
        number = self._number()
        return ((number >> 1) ^ -(number & 1)) & 0xFFFF

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 70:
                return number & 0xFFFFFFFF  # as Arrow takes sizes and counts

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return (self._number() if head >> 4 == 15 else head >> 4), head & 15

    def _skip_struct(self) -> None:
        """Skip a structure, numbers and short texts without a call for each: a footer has millions of them."""
        data, at = self._data, self._at
        while head := data[at]:
            at += 1
            kind = head & 15
            if head < 16:  # the field's number follows
                while data[at] > 127:
                    at += 1
                at += 1
            if BYTE < kind < DOUBLE:
                while data[at] > 127:
                    at += 1
                at += 1
            elif kind == BINARY and data[at] < 128:
                at += data[at] + 1
            elif kind not in (TRUE, FALSE):
                self._at = at
                self._skip(kind)
                at = self._at
        self._at = at + 1

    def _skip(self, kind: int) -> None:
        if kind in (TRUE, FALSE):
            return
        if kind == BYTE:
            self._at += 1
        elif kind == DOUBLE:
            self._at += 8
        elif kind == BINARY:
            size = self._number()
            self._at += size
        elif kind in (LIST, SET):
            count, inner = self._list()
            for _ in range(count):
                self._skip(BYTE if inner in (TRUE, FALSE) else inner)
        elif kind == MAP:
            count = self._number()
            kinds = self._byte() if count else 0
            for _ in range(count):
                for inner in (kinds >> 4, kinds & 15):
                    self._skip(BYTE if inner in (TRUE, FALSE) else inner)
        elif kind == STRUCT:
            self._skip_struct()
        else:
            self._number()
        if self._at > len(self._data):
            raise IndexError
