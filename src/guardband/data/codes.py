"""How one column becomes numbers, by what was learnt on the training rows alone.

A code first reads a column as one number for each row, ``(n,)`` in float64, then encodes these as ``(n, width)`` in
float32. ``xp`` is the library that the numbers belong to, numpy or torch: both spell these functions alike, so that one
formula serves tables and the network that is exported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from guardband.data.kinds import Kind
from guardband.data.table import Column, categories_from, numbers_from
from guardband.data.tails import origin_and_unit, signed_log

Array = NDArray[np.float64]

MOST_ONE_HOT = 100
MOST_INDEXED, FEWEST_ROWS = 10_000, 3
"""Categories of a column with many: at most so many, each with at least so many training rows."""
FURTHEST = 1e6
MOST_RANGES = 3
YEAR = 365.2425
SPANS = {"weekday": 14.0, "season": YEAR}
"""Days that dates must span for what recurs to tell more than the day itself."""


@dataclass(frozen=True)
class NumberCode:
    """Standardised numbers; missing ones get the median, and a column that marks them if training rows had any."""

    center: float
    scale: float
    fill: float
    marks_missing: bool
    kind: Kind = "number"
    numbers: ClassVar[int] = 0
    """How many of the columns made, the first ones, are robust numbers."""

    @classmethod
    def learn(cls, column: Column) -> NumberCode:
        """Return the code learnt on the training rows."""
        values = numbers_from(column, column.kind)
        present = values[~np.isnan(values)]
        if len(present) == 0:
            return cls(0.0, 1.0, 0.0, marks_missing=False, kind=column.kind)
        center, scale = cls.measure(present)
        return cls(center, scale or 1.0, float(np.median(present)), len(present) < len(values), column.kind)

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return 1 + self.marks_missing

    @staticmethod
    def measure(present: Array) -> tuple[float, float]:
        """Return the middle of values and their scale, 0 if they do not vary."""
        return center_and_scale(present)

    def read(self, column: Column) -> Array:
        """Return the numbers, NaN for missing."""
        return numbers_from(column, self.kind)

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 1)``, or ``(n, 2)`` with the mark of missing values."""
        missing = xp.isnan(values)
        with _quiet(xp):
            standard = (xp.where(missing, self.fill, values) - self.center) / self.scale
        # A value a million deviations away says no more than that, and keeps single precision finite.
        standard = _single(xp.clip(standard, -FURTHEST, FURTHEST), xp)
        return xp.stack([standard, _single(missing, xp)] if self.marks_missing else [standard], 1)


@dataclass(frozen=True)
class RobustCode(NumberCode):
    """Numbers less their median, in interquartile ranges, with extreme values compressed smoothly to at most three."""

    numbers: ClassVar[int] = 1

    @staticmethod
    def measure(present: Array) -> tuple[float, float]:
        """Return median and interquartile range, or half of the whole range if that is nothing but rounding."""
        low, center, high = (float(q) for q in np.quantile(present, [0.25, 0.5, 0.75]))
        rounding = 10 * np.finfo(float).eps * float(np.abs(present).max())
        return center, next((s for s in (high - low, float(np.ptp(present)) / 2) if s > rounding), 0.0)

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 1)``, or ``(n, 2)`` with the mark of missing values."""
        encoded = super().encode(values, xp)
        first = encoded[:, :1]
        return xp.concatenate([first / xp.sqrt(1 + (first / MOST_RANGES) ** 2), encoded[:, 1:]], 1)


@dataclass(frozen=True)
class LongTailCode:
    """Numbers with a long tail, twice: as robust numbers, and so on a logarithmic scale, which tells far ones apart."""

    plain: NumberCode
    logarithm: NumberCode
    origin: float
    unit: float
    numbers: ClassVar[int] = 2

    @classmethod
    def learn(cls, column: Column) -> NumberCode | LongTailCode:
        """Return the code learnt on the training rows; a ``RobustCode`` if the tail is not long."""
        values = numbers_from(column, column.kind)
        plain = RobustCode.learn(column)
        origin, unit = origin_and_unit(values[~np.isnan(values)])
        if unit is None:
            return plain
        logarithms = Column(column.name, signed_log((values - origin) / unit, np))
        return cls(plain, RobustCode.learn(logarithms), origin, unit)

    @property
    def kind(self) -> Kind:
        """What the column is."""
        return self.plain.kind

    @property
    def marks_missing(self) -> bool:
        """Whether a column marks missing values."""
        return self.plain.marks_missing

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return 1 + self.plain.width

    def read(self, column: Column) -> Array:
        """Return the numbers, NaN for missing."""
        return self.plain.read(column)

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 2)``, or ``(n, 3)`` with the mark of missing values."""
        with _quiet(xp):
            logarithms = signed_log((values - self.origin) / self.unit, xp)
        return xp.concatenate([self.logarithm.encode(logarithms, xp)[:, :1], self.plain.encode(values, xp)], 1)


@dataclass(frozen=True)
class Categories:
    """A list of categories; a row is its index there, -1 if it is not among them, NaN if it is missing."""

    categories: tuple[str, ...]
    kind: ClassVar[Kind] = "category"
    numbers: ClassVar[int] = 0

    def read(self, column: Column) -> Array:
        """Return the index of each row."""
        index: dict[str | None, float] = {category: float(i) for i, category in enumerate(self.categories)}
        index[None] = np.nan
        return np.array([index.get(cell, -1.0) for cell in categories_from(column)])


@dataclass(frozen=True)
class OneHotCode(Categories):
    """One column per frequent category of the training rows, one for their rare ones, one for missing values.

    A category that training rows did not hold counts as rare; if they had no rare ones, it is a row of zeros.
    """

    has_rare: bool
    marks_missing: bool

    @classmethod
    def learn(cls, column: Column) -> OneHotCode:
        """Return the code learnt on the training rows."""
        cells = categories_from(column)
        counts = Counter(cell for cell in cells if cell is not None)
        frequent = sorted(counts, key=lambda cell: (-counts[cell], cell))[:MOST_ONE_HOT]
        return cls(tuple(sorted(frequent)), len(counts) > len(frequent), None in cells)

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return len(self.categories) + self.has_rare + self.marks_missing

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, categories + rare + missing)`` of zeros and ones."""
        missing = xp.isnan(values)
        known = values[:, None] == xp.arange(len(self.categories), dtype=values.dtype, device=values.device)
        parts = [known]
        if self.has_rare:
            parts.append((~known.any(1) & ~missing)[:, None])
        if self.marks_missing:
            parts.append(missing[:, None])
        return _single(xp.concatenate(parts, 1), xp)


@dataclass(frozen=True)
class IndexCode(Categories):
    """The index of a category, for a network that learns a vector for each; for columns with many.

    Index 0 is for rare and unknown ones, the last for missing values.
    """

    width: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """The number of indices."""
        return len(self.categories) + 2

    @classmethod
    def learn(cls, column: Column) -> IndexCode:
        """Return the code learnt on the training rows."""
        counts = Counter(cell for cell in categories_from(column) if cell is not None)
        frequent = sorted((v for v in counts if counts[v] >= FEWEST_ROWS), key=lambda v: (-counts[v], v))
        return cls(tuple(sorted(frequent[:MOST_INDEXED])))

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 1)``: single precision holds indices exactly."""
        return _single(xp.where(xp.isnan(values), self.size - 1, values + 1)[:, None], xp)


@dataclass(frozen=True)
class NoCode(Categories):
    """Nothing: the column is not learnt from."""

    categories: tuple[str, ...] = ()
    marks_missing: ClassVar[bool] = False
    width: ClassVar[int] = 0

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 0)``."""
        return _single(values[:, None][:, :0], xp)


@dataclass(frozen=True)
class DateCode:
    """A moment as the day itself and what recurs: the time of day, the weekday and the season, if they tell more."""

    parts: tuple[tuple[str, NumberCode], ...]
    kind: ClassVar[Kind] = "date"

    @property
    def numbers(self) -> int:
        """How many of the columns made, the first ones, are robust numbers."""
        return sum(code.numbers for _, code in self.parts)

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return len(self.parts) + self.parts[0][1].marks_missing

    @classmethod
    def learn(cls, column: Column, number: type[NumberCode]) -> DateCode:
        """Return the code learnt on the training rows."""
        days = numbers_from(column, "date")
        present = days[~np.isnan(days)]
        turns = ["day"]
        if len(present):
            turns += ["time"] if np.ptp(turned(present, "time", np)) else []
            turns += [turn for turn, span in SPANS.items() if np.ptp(present) >= span]
        return cls(tuple((turn, number.learn(Column(column.name, turned(days, turn, np)))) for turn in turns))

    def read(self, column: Column) -> Array:
        """Return the days since 1970, NaN for missing."""
        return numbers_from(column, "date")

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return a column for each part, and the mark of missing values if training rows had any."""
        made = [code.encode(turned(values, turn, xp), xp) for turn, code in self.parts]
        return xp.concatenate([part[:, :1] for part in made] + [made[0][:, 1:]], 1)


def turned(days: Any, turn: str, xp: Any) -> Any:
    """Return what recurs of days since 1970: part of a day, weekday from Monday, part of a year."""
    if turn == "time":
        return xp.remainder(days, 1)
    if turn == "weekday":
        return xp.remainder(xp.floor(days) + 3, 7)
    return xp.remainder(days / YEAR, 1) if turn == "season" else days


def _single(values: Any, xp: Any) -> Any:
    return values.astype(np.float32) if xp is np else values.float()


def _quiet(xp: Any) -> AbstractContextManager[Any]:
    """Return what keeps numpy from warning of infinities; torch does not warn, and could not compile that."""
    return np.errstate(over="ignore") if xp is np else nullcontext()


Code = NumberCode | LongTailCode | OneHotCode | IndexCode | NoCode | DateCode
CODES: dict[str, type[NumberCode] | type[OneHotCode] | type[IndexCode] | type[NoCode]] = {
    "number": NumberCode,
    "robust": RobustCode,
    "one-hot": OneHotCode,
    "index": IndexCode,
    "none": NoCode,
}


def code_to_dict(code: Code) -> dict[str, Any]:
    """Return a code for JSON."""
    if isinstance(code, DateCode):
        return {"code": "date", "parts": [[turn, code_to_dict(part)] for turn, part in code.parts]}
    if isinstance(code, LongTailCode):
        parts = {"plain": code_to_dict(code.plain), "logarithm": code_to_dict(code.logarithm)}
        return {"code": "long-tail", **parts, "origin": code.origin, "unit": code.unit}
    (name,) = (name for name, own in CODES.items() if type(code) is own)
    return {"code": name} | asdict(code)


def code_from_dict(entries: Mapping[str, Any]) -> Code:
    """Return the code that ``code_to_dict`` described."""
    own: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entries.items()}
    name = own.pop("code")
    if name == "date":
        return DateCode(tuple((turn, code_from_dict(part)) for turn, part in own["parts"]))  # type: ignore[misc]
    if name == "long-tail":
        parts = {part: code_from_dict(own[part]) for part in ("plain", "logarithm")}
        return LongTailCode(**own | parts)
    return CODES[name](**own)


def center_and_scale(values: Array) -> tuple[float, float]:
    """Return mean and standard deviation, with 0 for the latter if only rounding varies."""
    largest = float(np.abs(values).max())
    if largest == 0:
        return 0.0, 0.0
    shrunk = values / largest  # squares of values beyond 1e154 would overflow
    deviation = float(shrunk.std())
    scale = deviation * largest if deviation > 10 * np.finfo(float).eps else 0.0
    return float(shrunk.mean()) * largest, scale
