"""Thrift's compact protocol, in which Parquet says what a file holds, read without trust and without its schema."""

from __future__ import annotations

TRUE, FALSE, BYTE, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12


class Compact:
    """Reads a structure; what leads beyond the end is an ``IndexError``."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def field(self, before: int, head: int) -> int:
        """Return the number of a field, of 16 bits: Arrow reads larger ones as if they were smaller."""
        if head >> 4:
            return before + (head >> 4) & 0xFFFF
        return self.integer() & 0xFFFF

    def byte(self) -> int:
        """Return the next byte."""
        self.at += 1
        return self._data[self.at - 1]

    def number(self, bits: int = 32) -> int:
        """Return a size or a count."""
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 70:
                return number & (1 << bits) - 1  # as Arrow takes sizes and counts

    def integer(self, bits: int = 32) -> int:
        """Return a number with a sign."""
        number = self.number(bits)
        return (number >> 1) ^ -(number & 1)

    def list_of(self) -> tuple[int, int]:
        """Return how many entries a list has, and their type."""
        head = self.byte()
        return (self.number() if head >> 4 == 15 else head >> 4), head & 15

    def skip(self, kind: int) -> None:
        """Go to what follows a value of this type."""
        if kind in (TRUE, FALSE):
            return
        if kind == BYTE:
            self.at += 1
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            size = self.number()
            self.at += size
        elif kind in (LIST, SET):
            count, inner = self.list_of()
            for _ in range(count):
                self.skip(BYTE if inner in (TRUE, FALSE) else inner)
        elif kind == MAP:
            count = self.number()
            kinds = self.byte() if count else 0
            for _ in range(count):
                for inner in (kinds >> 4, kinds & 15):
                    self.skip(BYTE if inner in (TRUE, FALSE) else inner)
        elif kind == STRUCT:
            self._skip_struct()
        else:
            self.number()
        if self.at > len(self._data):
            raise IndexError

    def _skip_struct(self) -> None:
        """Skip a structure, numbers and short texts without a call for each: a footer has millions of them."""
        data, at = self._data, self.at
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
                self.at = at
                self.skip(kind)
                at = self.at
        self.at = at + 1
