"""How deep a Parquet file's columns are nested, read without trust: Arrow follows them down until its stack ends.

The file ends with a structure of Thrift's compact protocol. Its second field lists columns and groups in order, each
with the number of its children.
"""

from __future__ import annotations

import struct
from io import BufferedReader

from guardband.data.damage import AGAIN, UnreadableError
from guardband.data.thrift import INT, LIST, Compact

DEEPEST = 100
SCHEMA, CHILDREN = 2, 5


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
        is_deep = _Footer(file.read(length)).is_deep()
    except (IndexError, struct.error, RecursionError):
        is_deep = False
    if is_deep:
        raise UnreadableError(
            f"{label} begins as Parquet, but cannot be read: its columns are nested more than {DEEPEST} deep. {AGAIN}"
        )


class _Footer(Compact):
    """The structure at the end of a file."""

    def is_deep(self) -> bool:
        """Return whether one of the lists of columns in the structure is nested too deep."""
        field = 0
        while head := self.byte():
            field = self.field(field, head)
            if field == SCHEMA and head & 15 == LIST:
                if self._is_deep_schema():
                    return True
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
