"""What a Parquet file says at its end, read without trust: how deep columns are nested, and where their data lie.

Arrow follows nested columns down until its stack ends, and its errors on the rest end a process that asks in Python.
The end is a structure of Thrift's compact protocol. Its second field lists columns and groups in order, each with the
number of its children, and its fourth field the groups of rows.
"""

from __future__ import annotations

import struct
from io import BufferedReader
from typing import NamedTuple

from guardband.data.damage import AGAIN, UnreadableError
from guardband.data.thrift import INT, LIST, LONG, STRUCT, Compact

DEEPEST = 100
SCHEMA, CHILDREN = 2, 5
GROUPS, COLUMNS, ROWS, ABOUT = 4, 1, 3, 3
CODEC, VALUES, PACKED, DATA, DICTIONARY = 4, 5, 7, 9, 11
KINDS = {CODEC: INT, VALUES: LONG, PACKED: LONG, DATA: LONG, DICTIONARY: LONG}


class Chunk(NamedTuple):
    """Where the pages of a column in a row group lie, how many values they have, and by which codec they are packed."""

    begin: int
    end: int
    values: int
    codec: int


class Group(NamedTuple):
    """Rows, and one chunk for each column."""

    rows: int
    chunks: tuple[Chunk, ...]


def row_groups(file: BufferedReader, label: str) -> tuple[Group, ...]:
    """Return the row groups, as far as the end of the file can be read: other faults of it are left to Arrow.

    Columns that are nested too deep are refused.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if len(end) < 8 or length > size - 8:
        return ()
    file.seek(size - 8 - length)
    footer = _Footer(file.read(length))
    try:
        is_deep = footer.is_deep()
    except (IndexError, struct.error, RecursionError):
        return ()
    if is_deep:
        raise UnreadableError(
            f"{label} begins as Parquet, but cannot be read: its columns are nested more than {DEEPEST} deep. {AGAIN}"
        )
    return footer.groups


class _Footer(Compact):
    """The structure at the end of a file."""

    groups: tuple[Group, ...] = ()

    def is_deep(self) -> bool:
        """Return whether one of the lists of columns is nested too deep; if not, ``groups`` is what the rest says."""
        field = 0
        while head := self.byte():
            field = self.field(field, head)
            if field == SCHEMA and head & 15 == LIST:
                if self._is_deep_schema():
                    return True
            elif field == GROUPS and head & 15 == LIST:
                self.groups = tuple(self._group() for _ in range(self.list_of()[0]))
            else:
                self.skip(head & 15)
        return False

    def _is_deep_schema(self) -> bool:
        count, _ = self.list_of()
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
        while head := self.byte():
            field = self.field(field, head)
            if field == CHILDREN and head & 15 == INT:
                children = self.integer()
            else:
                self.skip(head & 15)
        return children

    def _group(self) -> Group:
        field = rows = 0
        chunks: tuple[Chunk, ...] = ()
        while head := self.byte():
            field, kind = self.field(field, head), head & 15
            if field == COLUMNS and kind == LIST:
                chunks = tuple(self._chunk() for _ in range(self.list_of()[0]))
            elif field == ROWS and kind == LONG:
                rows = self.integer(64)
            else:
                self.skip(kind)
        return Group(rows, chunks)

    def _chunk(self) -> Chunk:
        field, found = 0, Chunk(0, 0, 0, 0)
        while head := self.byte():
            field, kind = self.field(field, head), head & 15
            if field == ABOUT and kind == STRUCT:
                found = self._about_chunk()
            else:
                self.skip(kind)
        return found

    def _about_chunk(self) -> Chunk:
        field, said = 0, dict.fromkeys(KINDS, 0)
        while head := self.byte():
            field, kind = self.field(field, head), head & 15
            if field in KINDS and kind == KINDS[field]:
                said[field] = self.integer(32 if kind == INT else 64)
            else:
                self.skip(kind)
        begin = said[DICTIONARY] if 0 < said[DICTIONARY] < said[DATA] else said[DATA]
        return Chunk(begin, begin + said[PACKED], said[VALUES], said[CODEC])
