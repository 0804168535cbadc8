"""The encoder: a table becomes a matrix of numbers, by what was learnt on D1 alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from guardband.data.codes import (
    MOST_CATEGORIES,
    CategoryCode,
    Code,
    DateCode,
    Matrix,
    NumberCode,
    PlaceCode,
    RobustCode,
    code_from_dict,
    code_to_dict,
)
from guardband.data.table import Column, Table, categories_from, has_text, numbers_from
from guardband.data.words import Unit
from guardband.words import rows_named

Kind = Unit | Literal["category"]


@dataclass(frozen=True)
class TableEncoder:
    """Turns tables with the columns of D1 into matrices ``(n, d)``: robust numbers come first, places last."""

    codes: tuple[Code, ...]

    @classmethod
    def learn(cls, table: Table, robust: bool = False) -> TableEncoder:
        """Return the encoder learnt on the rows of D1."""
        return cls(tuple(_learn(column, robust) for column in table.columns))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What each column of the table was read as."""
        return tuple(_kind(code) for code in self.codes)

    @property
    def numbers(self) -> int:
        """How many columns of the matrix are robust numbers."""
        return sum(code.numbers for code in self.codes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many places each of the last columns of the matrix has."""
        return tuple(code.size for code in self.codes if isinstance(code, PlaceCode))

    def encode(self, table: Table) -> Matrix:
        """Return the matrix of a table with the same columns."""
        parts = [code.encode(column) for code, column in zip(self.codes, table.columns, strict=True)]
        return np.concatenate(self.in_order(parts), axis=1)

    def in_order(self, parts: Sequence[Any]) -> list[Any]:
        """Return what the codes made, ``(n, width)`` each, in the order of the matrix."""
        pairs = list(zip(self.codes, parts, strict=True))
        rest = [part[:, code.numbers :] for code, part in pairs if not isinstance(code, PlaceCode)]
        places = [part for code, part in pairs if isinstance(code, PlaceCode)]
        return [part[:, : code.numbers] for code, part in pairs] + rest + places

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder for JSON."""
        return {"kind": "table", "codes": [code_to_dict(code) for code in self.codes]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that ``to_dict`` described."""
        return cls(tuple(code_from_dict(code) for code in entries["codes"]))


def _kind(code: Code) -> Kind:
    if isinstance(code, DateCode):
        return "date"
    return code.unit if isinstance(code, NumberCode) else "category"


def _learn(column: Column, robust: bool) -> Code:
    number: type[NumberCode] = RobustCode if robust else NumberCode
    if has_text(column):
        many = robust and len(set(categories_from(column)) - {None}) > MOST_CATEGORIES
        return PlaceCode.learn(column) if many else CategoryCode.learn(column)
    return DateCode.learn(column, number) if column.unit == "date" else number.learn(column)


@dataclass(frozen=True)
class PlainNumbers:
    """Passes numbers on as they are, for a network of the user's own: text and NaN are refused."""

    def encode(self, table: Table) -> Matrix:
        """Return the matrix of a table of numbers."""
        for column in table.columns:
            if has_text(column):
                raise ValueError(
                    f"A network of your own takes numbers only, found text in the column {column.name!r}: "
                    "encode it first."
                )
            missing = np.flatnonzero(np.isnan(numbers_from(column)))
            if len(missing):
                raise ValueError(
                    f"A network of your own takes no missing values, found NaN in the column {column.name!r} "
                    f"at {rows_named(missing)}: impute it first."
                )
        return np.stack([numbers_from(column) for column in table.columns], axis=1).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder for JSON."""
        return {"kind": "plain"}


Encoder = TableEncoder | PlainNumbers


def encoder_from_dict(entries: Mapping[str, Any]) -> Encoder:
    """Return the encoder that its ``to_dict`` described."""
    return TableEncoder.from_dict(entries) if entries["kind"] == "table" else PlainNumbers()
