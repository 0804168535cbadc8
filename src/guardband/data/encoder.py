"""The encoder: a table becomes a matrix of numbers, by what was learnt on D1 alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, Table, categories_from, has_text, numbers_from
from guardband.data.words import Unit

Matrix = NDArray[np.float32]

MOST_CATEGORIES = 100
FURTHEST = 1e6
MOST_RANGES = 3


@dataclass(frozen=True)
class NumberCode:
    """Standardised numbers; missing ones get the median, and a column that marks them if D1 had any."""

    center: float
    scale: float
    fill: float
    marks_missing: bool
    unit: Unit = "number"

    @classmethod
    def learn(cls, column: Column) -> NumberCode:
        """Return the code learnt on the rows of D1."""
        values = numbers_from(column, column.unit)
        present = values[~np.isnan(values)]
        if len(present) == 0:
            return cls(0.0, 1.0, 0.0, marks_missing=False, unit=column.unit)
        center, scale = cls.measure(present)
        return cls(center, scale or 1.0, float(np.median(present)), len(present) < len(values), column.unit)

    @staticmethod
    def measure(present: NDArray[np.float64]) -> tuple[float, float]:
        """Return the middle of values and their scale, 0 where they do not vary."""
        return center_and_scale(present)

    def encode(self, column: Column) -> Matrix:
        """Return ``(n, 1)``, or ``(n, 2)`` with the mark of missing values."""
        values = numbers_from(column, self.unit)
        missing = np.isnan(values)
        with np.errstate(over="ignore"):
            standard = (np.where(missing, self.fill, values) - self.center) / self.scale
        # A value a million deviations away says no more than that, and keeps single precision finite.
        standard = np.clip(standard, -FURTHEST, FURTHEST)
        parts = [standard, missing] if self.marks_missing else [standard]
        return np.stack(parts, axis=1).astype(np.float32)


@dataclass(frozen=True)
class RobustCode(NumberCode):
    """Numbers less their median, in interquartile ranges, with values far out drawn in smoothly to at most three."""

    @staticmethod
    def measure(present: NDArray[np.float64]) -> tuple[float, float]:
        """Return median and interquartile range, or half of the whole range where that is nothing."""
        low, center, high = (float(q) for q in np.quantile(present, [0.25, 0.5, 0.75]))
        return center, high - low or float(np.ptp(present)) / 2

    def encode(self, column: Column) -> Matrix:
        """Return ``(n, 1)``, or ``(n, 2)`` with the mark of missing values."""
        encoded = super().encode(column)
        encoded[:, 0] /= np.sqrt(1 + (encoded[:, 0] / MOST_RANGES) ** 2)
        return encoded


@dataclass(frozen=True)
class CategoryCode:
    """One column per frequent category of D1, one for its rare ones, one for missing values.

    A category that D1 did not hold counts as rare; where D1 had no rare ones, it is a row of zeros.
    """

    categories: tuple[str, ...]
    has_rare: bool
    marks_missing: bool

    @classmethod
    def learn(cls, column: Column) -> CategoryCode:
        """Return the code learnt on the rows of D1."""
        values = categories_from(column)
        counts = Counter(v for v in values if v is not None)
        frequent = sorted(counts, key=lambda v: (-counts[v], v))[:MOST_CATEGORIES]
        return cls(tuple(sorted(frequent)), len(counts) > len(frequent), any(v is None for v in values))

    def encode(self, column: Column) -> Matrix:
        """Return ``(n, categories + rare + missing)`` of zeros and ones."""
        values = categories_from(column)
        place: dict[str | None, int] = {category: j for j, category in enumerate(self.categories)}
        width = len(place) + self.has_rare + self.marks_missing
        if self.marks_missing:
            place[None] = width - 1
        rare = len(self.categories) if self.has_rare else -1
        at = np.array([place.get(v, -1 if v is None else rare) for v in values], dtype=np.intp)
        matrix = np.zeros((len(values), width), dtype=np.float32)
        known = np.flatnonzero(at >= 0)
        matrix[known, at[known]] = 1
        return matrix


@dataclass(frozen=True)
class TableEncoder:
    """Turns tables with the columns of D1 into matrices ``(n, d)``; robust numbers come first."""

    codes: tuple[NumberCode | CategoryCode, ...]

    @classmethod
    def learn(cls, table: Table, robust: bool = False) -> TableEncoder:
        """Return the encoder learnt on the rows of D1."""
        number: type[NumberCode] = RobustCode if robust else NumberCode
        codes = [CategoryCode.learn(c) if has_text(c) else number.learn(c) for c in table.columns]
        return cls(tuple(codes))

    @property
    def kinds(self) -> tuple[Unit | Literal["category"], ...]:
        """What each column of the table was read as."""
        return tuple(code.unit if isinstance(code, NumberCode) else "category" for code in self.codes)

    @property
    def numbers(self) -> int:
        """How many columns of the matrix are robust numbers."""
        return sum(isinstance(code, RobustCode) for code in self.codes)

    def encode(self, table: Table) -> Matrix:
        """Return the matrix of a table with the same columns."""
        parts = [code.encode(column) for code, column in zip(self.codes, table.columns, strict=True)]
        return np.concatenate(self.in_order(parts), axis=1)

    def in_order(self, parts: Sequence[Any]) -> list[Any]:
        """Return what the codes made, ``(n, width)`` each, robust numbers first, marks of missing ones after."""
        pairs = list(zip(self.codes, parts, strict=True))
        first = [part[:, :1] for code, part in pairs if isinstance(code, RobustCode)]
        return first + [part[:, 1:] if isinstance(code, RobustCode) else part for code, part in pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder for JSON."""
        return {"kind": "table", "robust": self.numbers > 0, "codes": [asdict(code) for code in self.codes]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that ``to_dict`` described."""
        number = RobustCode if entries["robust"] else NumberCode
        return cls(
            tuple(
                CategoryCode(tuple(code["categories"]), code["has_rare"], code["marks_missing"])
                if "categories" in code
                else number(**code)
                for code in entries["codes"]
            )
        )


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


def center_and_scale(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation, with 0 for the latter where only rounding varies."""
    largest = float(np.abs(values).max())
    if largest == 0:
        return 0.0, 0.0
    shrunk = values / largest  # squares of values beyond 1e154 would overflow
    deviation = float(shrunk.std())
    scale = deviation * largest if deviation > 10 * np.finfo(float).eps else 0.0
    return float(shrunk.mean()) * largest, scale


def rows_named(rows: NDArray[np.intp], most: int = 5) -> str:
    """Return rows as words: ``row 3``, or ``rows 3, 8, 9, 12, 15 and 4 more``."""
    shown = ", ".join(str(row) for row in rows[:most])
    word = "row" if len(rows) == 1 else "rows"
    return f"{word} {shown}" if len(rows) <= most else f"{word} {shown} and {len(rows) - most} more"
