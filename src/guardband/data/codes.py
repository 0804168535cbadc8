"""How one column becomes numbers, by what was learnt on D1 alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, categories_from, numbers_from
from guardband.data.words import Unit

Matrix = NDArray[np.float32]

MOST_CATEGORIES = 100
MOST_PLACES, FEWEST_ROWS = 10_000, 3
"""Categories of a column with many: at most so many, each with at least so many rows of D1."""
FURTHEST = 1e6
MOST_RANGES = 3
YEAR = 365.2425
SPANS = {"weekday": 14.0, "season": YEAR}
"""Days that dates must span for what recurs to tell more than the day itself."""


@dataclass(frozen=True)
class NumberCode:
    """Standardised numbers; missing ones get the median, and a column that marks them if D1 had any."""

    center: float
    scale: float
    fill: float
    marks_missing: bool
    unit: Unit = "number"

    @property
    def numbers(self) -> int:
        """How many of the columns made, the first ones, are robust numbers."""
        return 0

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

    @property
    def numbers(self) -> int:
        """How many of the columns made, the first ones, are robust numbers."""
        return 1

    @staticmethod
    def measure(present: NDArray[np.float64]) -> tuple[float, float]:
        """Return median and interquartile range, or half of the whole range where that is nothing but rounding."""
        low, center, high = (float(q) for q in np.quantile(present, [0.25, 0.5, 0.75]))
        rounding = 10 * np.finfo(float).eps * float(np.abs(present).max())
        return center, next((s for s in (high - low, float(np.ptp(present)) / 2) if s > rounding), 0.0)

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
    numbers = 0

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
class PlaceCode:
    """The place of a category in a list, for a network that learns a vector for each; for columns with many.

    Place 0 is for rare and unknown ones, the last for missing values.
    """

    categories: tuple[str, ...]
    numbers = 0

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.categories) + 2

    @classmethod
    def learn(cls, column: Column) -> PlaceCode:
        """Return the code learnt on the rows of D1."""
        counts = Counter(v for v in categories_from(column) if v is not None)
        frequent = sorted((v for v in counts if counts[v] >= FEWEST_ROWS), key=lambda v: (-counts[v], v))
        return cls(tuple(sorted(frequent[:MOST_PLACES])))

    def encode(self, column: Column) -> Matrix:
        """Return ``(n, 1)``: single precision holds places exactly."""
        place: dict[str | None, int] = {category: j + 1 for j, category in enumerate(self.categories)}
        place[None] = self.size - 1
        return np.array([[place.get(v, 0)] for v in categories_from(column)], dtype=np.float32)


@dataclass(frozen=True)
class DateCode:
    """A moment as the day itself and what recurs: the time of day, the weekday and the season, where they tell more."""

    parts: tuple[tuple[str, NumberCode], ...]

    @property
    def numbers(self) -> int:
        """How many of the columns made, the first ones, are robust numbers."""
        return sum(code.numbers for _, code in self.parts)

    @classmethod
    def learn(cls, column: Column, number: type[NumberCode]) -> DateCode:
        """Return the code learnt on the rows of D1."""
        days = numbers_from(column, "date")
        present = days[~np.isnan(days)]
        turns = ["day"]
        if len(present):
            turns += ["time"] if np.ptp(turned(present, "time", np)) else []
            turns += [turn for turn, span in SPANS.items() if np.ptp(present) >= span]
        return cls(tuple((turn, number.learn(Column(column.name, "number", turned(days, turn, np)))) for turn in turns))

    def encode(self, column: Column) -> Matrix:
        """Return a column for each part, and the mark of missing values if D1 had any."""
        days = numbers_from(column, "date")
        made = [code.encode(Column(column.name, "number", turned(days, turn, np))) for turn, code in self.parts]
        return np.concatenate([part[:, :1] for part in made] + [made[0][:, 1:]], axis=1)


def turned(days: Any, turn: str, xp: Any) -> Any:
    """Return what recurs of days since 1970, numpy or torch: part of a day, weekday from Monday, part of a year."""
    if turn == "time":
        return xp.remainder(days, 1)
    if turn == "weekday":
        return xp.remainder(xp.floor(days) + 3, 7)
    return xp.remainder(days / YEAR, 1) if turn == "season" else days


Code = NumberCode | CategoryCode | PlaceCode | DateCode
KINDS: dict[str, type[NumberCode] | type[CategoryCode] | type[PlaceCode]] = {
    "number": NumberCode,
    "robust": RobustCode,
    "category": CategoryCode,
    "place": PlaceCode,
}


def code_to_dict(code: Code) -> dict[str, Any]:
    """Return a code for JSON."""
    if isinstance(code, DateCode):
        return {"kind": "date", "parts": [[turn, code_to_dict(part)] for turn, part in code.parts]}
    (kind,) = (name for name, own in KINDS.items() if type(code) is own)
    return {"kind": kind} | asdict(code)


def code_from_dict(entries: Mapping[str, Any]) -> Code:
    """Return the code that ``code_to_dict`` described."""
    own: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entries.items()}
    kind = own.pop("kind")
    if kind == "date":
        return DateCode(tuple((turn, code_from_dict(part)) for turn, part in own["parts"]))  # type: ignore[misc]
    return KINDS[kind](**own)


def center_and_scale(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation, with 0 for the latter where only rounding varies."""
    largest = float(np.abs(values).max())
    if largest == 0:
        return 0.0, 0.0
    shrunk = values / largest  # squares of values beyond 1e154 would overflow
    deviation = float(shrunk.std())
    scale = deviation * largest if deviation > 10 * np.finfo(float).eps else 0.0
    return float(shrunk.mean()) * largest, scale
