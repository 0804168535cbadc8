"""The encoder: a table becomes a matrix of numbers, by what was learnt on the training rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.codes import (
    MOST_ONE_HOT,
    Code,
    DateCode,
    IndexCode,
    LongTailCode,
    NoCode,
    NumberCode,
    OneHotCode,
    RobustCode,
    code_from_dict,
    code_to_dict,
)
from guardband.data.kinds import Kind
from guardband.data.questions import AskCategories
from guardband.data.table import ROWS_AT_A_TIME, Table, numbers_from
from guardband.words import rows_named

Matrix = NDArray[np.float32]
Rows = NDArray[np.float64]
"""One number for each cell of a table: the number, the days since 1970, or the index of a category."""
Reader = Callable[[slice], Matrix]
"""Returns some encoded rows of a table."""


@dataclass(frozen=True)
class TableEncoder:
    """Turns tables with the columns of the training rows into matrices ``(n, d)``: robust numbers first, indices last.

    ``encode`` does so at once; ``rows`` and ``encode_rows`` in two steps, the second also for torch.
    """

    codes: tuple[Code, ...]

    @classmethod
    def learn(cls, table: Table, robust: bool = False, keys: Sequence[str] = ()) -> TableEncoder:
        """Return the encoder learnt on the training rows; of the ``keys``, columns of text are left out."""
        return cls(tuple(answered(asks_code(c.kind, robust, c.name in keys), c) for c in table.columns))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What each column of the table is."""
        return tuple(code.kind for code in self.codes)

    def unlearnt(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return which of the table's columns, by their names, are not learnt from."""
        return tuple(name for name, code in zip(names, self.codes, strict=True) if isinstance(code, NoCode))

    @property
    def numbers(self) -> int:
        """How many columns of the matrix are robust numbers."""
        return sum(code.numbers for code in self.codes)

    @property
    def width(self) -> int:
        """How many columns the matrix has."""
        return sum(code.width for code in self.codes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many indices each of the last columns of the matrix has."""
        return tuple(code.size for code in self.codes if isinstance(code, IndexCode))

    def encode(self, table: Table) -> Matrix:
        """Return the matrix of a table with the same columns."""
        return _stacked(self.reader(table), table.n_rows, self.width)

    def reader(self, table: Table) -> Reader:
        """Return what encodes some of its rows, on any thread."""
        table = table.read_as(self.kinds)

        def encoded(rows: slice) -> Matrix:
            pairs = zip(self.codes, table.part(rows).columns, strict=True)
            matrix: Matrix = self._joined((code.read(column) for code, column in pairs), np)
            return matrix

        return encoded

    def rows(self, table: Table) -> Rows:
        """Return one number for each cell, ``(n, columns)``."""
        return np.stack([code.read(column) for code, column in zip(self.codes, table.columns, strict=True)], axis=1)

    def encode_rows(self, rows: Any, xp: Any) -> Any:
        """Return the matrix of what ``rows`` returned, as arrays of numpy or torch."""
        return self._joined((rows[:, i] for i in range(len(self.codes))), xp)

    def _joined(self, columns: Iterable[Any], xp: Any) -> Any:
        every = zip(self.codes, columns, strict=True)
        pairs = [(code, code.encode(values, xp)) for code, values in every if not isinstance(code, NoCode)]
        numbers = [part[:, : code.numbers] for code, part in pairs]
        rest = [part[:, code.numbers :] for code, part in pairs if not isinstance(code, IndexCode)]
        return xp.concatenate(numbers + rest + [part for code, part in pairs if isinstance(code, IndexCode)], 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder for JSON."""
        return {"encoder": "table", "codes": [code_to_dict(code) for code in self.codes]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that ``to_dict`` described."""
        return cls(tuple(code_from_dict(code) for code in entries["codes"]))


def asks_code(kind: Kind, robust: bool, is_key: bool = False) -> Asking[Code]:
    """Learn how a column of a kind becomes numbers."""
    if kind == "category":
        if is_key:
            return NoCode()
        counts = yield AskCategories()
        many = robust and len(counts.keys() - {None}) > MOST_ONE_HOT
        return IndexCode.of(counts) if many else OneHotCode.of(counts)
    number: type[NumberCode] = RobustCode if robust else NumberCode
    if kind == "date":
        return (yield from DateCode.asks(number))
    return (yield from LongTailCode.asks(kind) if robust else number.asks(kind))


@dataclass(frozen=True)
class PlainNumbers:
    """Passes numbers on as they are, for a network of the user's own: text and NaN are refused."""

    def unlearnt(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return which of the table's columns are not learnt from: none."""
        return ()

    def encode(self, table: Table) -> Matrix:
        """Return the matrix of a table of numbers."""
        return _stacked(self.reader(table), table.n_rows, len(table.columns))

    def reader(self, table: Table) -> Reader:
        """Return what encodes some of its rows, on any thread; first all rows are looked at."""
        for column in table.columns:
            if column.kind == "category":
                raise ValueError(
                    f"The column {column.name!r} holds text, but a network of your own takes numbers only. "
                    "Encode it first."
                )
            missing = np.flatnonzero(np.isnan(numbers_from(column)))
            if len(missing):
                raise ValueError(
                    f"The column {column.name!r} has missing values (NaN) in {rows_named(missing)}, but a network of "
                    "your own takes none. Fill them in, or remove these rows."
                )
        table = table.read_as([column.kind for column in table.columns])
        return lambda rows: self.rows(table.part(rows)).astype(np.float32)

    def rows(self, table: Table) -> Rows:
        """Return one number for each cell, ``(n, columns)``."""
        return np.stack([numbers_from(column) for column in table.columns], axis=1)

    def encode_rows(self, rows: Any, xp: Any) -> Any:
        """Return what ``rows`` returned in single precision, as arrays of numpy or torch."""
        return rows.astype(np.float32) if xp is np else rows.float()

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder for JSON."""
        return {"encoder": "plain"}


Encoder = TableEncoder | PlainNumbers


def _stacked(encoded: Reader, n: int, width: int) -> Matrix:
    """Return all of n rows as one matrix; only one block at a time is there twice."""
    out = np.empty((n, width), dtype=np.float32)
    for start in range(0, max(1, n), ROWS_AT_A_TIME):
        block = encoded(slice(start, start + ROWS_AT_A_TIME))
        out[start : start + len(block)] = block
    return out


def encoder_from_dict(entries: Mapping[str, Any]) -> Encoder:
    """Return the encoder that its ``to_dict`` described."""
    return TableEncoder.from_dict(entries) if entries["encoder"] == "table" else PlainNumbers()
