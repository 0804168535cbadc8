"""How one column becomes numbers, by what was learnt on the training rows alone.

A code first reads a column as one number for each row, ``(n,)`` in float64, then encodes these as ``(n, width)`` in
float32. ``xp`` is the library that the numbers belong to, numpy or torch: both spell these functions alike, so that one
formula serves tables and the network that is exported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, SideBySide, answered
from guardband.data.kinds import Kind
from guardband.data.order_statistics import between, middle_ranks, ranks_around
from guardband.data.questions import PLAIN, AskMean, AskRanks, AskSpread, Spread, View
from guardband.data.table import Column, categories_from, numbers_from
from guardband.data.tails import asks_origin_and_unit, signed_log
from guardband.data.turns import YEAR, turned

Array = NDArray[np.float64]

MOST_ONE_HOT = 100
MOST_INDEXED = 10_000
"""Categories that are told apart in a column with many, the most frequent ones."""
FURTHEST = 1e6
MOST_RANGES = 3
QUARTERS = (0.25, 0.5, 0.75)
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
    def asks(cls, kind: Kind, view: View = PLAIN) -> Asking[NumberCode]:
        """Learn the code on the training rows."""
        spread = yield AskSpread(view)
        if not spread.values:
            return cls(0.0, 1.0, 0.0, marks_missing=False, kind=kind)
        quartiles = yield from _asks_quartiles(spread, view)
        center, scale = yield from cls.asks_measure(quartiles, view)
        return cls(center, scale or 1.0, quartiles.median, spread.some_missing, kind)

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return 1 + self.marks_missing

    @staticmethod
    def asks_measure(quartiles: Quartiles, view: View) -> Asking[tuple[float, float]]:
        """Learn the middle of values and their scale, 0 if they do not vary."""
        return (yield from asks_center_and_scale(quartiles.spread, view))

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
    def asks_measure(quartiles: Quartiles, view: View) -> Asking[tuple[float, float]]:
        """Learn the middle of values and their scale: there is nothing more to ask."""
        yield from ()
        return quartiles.center_and_range

    @classmethod
    def of(cls, quartiles: Quartiles, kind: Kind = "number") -> RobustCode:
        """Return the code for values with these quartiles."""
        center, scale = quartiles.center_and_range
        return cls(center, scale or 1.0, quartiles.median, quartiles.spread.some_missing, kind)

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
    def asks(cls, kind: Kind) -> Asking[NumberCode | LongTailCode]:
        """Learn the code on the training rows; a ``RobustCode`` if the tail is not long."""
        spread = yield AskSpread()
        if not spread.values:
            return RobustCode(0.0, 1.0, 0.0, marks_missing=False, kind=kind)
        quartiles = yield from _asks_quartiles(spread, PLAIN)
        plain = RobustCode.of(quartiles, kind)
        origin, unit = yield from asks_origin_and_unit(spread, quartiles.middle)
        if unit is None:
            return plain
        # The logarithm grows with the value: its order statistics are the logarithms of those of the values.
        logarithms = quartiles.map(lambda values: signed_log((values - origin) / unit, np))
        return cls(plain, RobustCode.of(logarithms), origin, unit)

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


def most_frequent(counts: Counter[str | None], most: int = MOST_INDEXED) -> tuple[str, ...]:
    """Return the most frequent categories in the order of the alphabet."""
    present = {cell: n for cell, n in counts.items() if cell is not None}
    frequent = sorted(present, key=lambda cell: (-present[cell], cell))[:most]
    return tuple(sorted(frequent))


@dataclass(frozen=True)
class OneHotCode(Categories):
    """One column per frequent category of the training rows, one for their rare ones, one for missing values.

    A category that training rows did not hold counts as rare; if they had no rare ones, it is a row of zeros.
    """

    has_rare: bool
    marks_missing: bool

    @classmethod
    def of(cls, counts: Counter[str | None]) -> OneHotCode:
        """Return the code for categories that occur so often."""
        frequent, some_missing = most_frequent(counts, MOST_ONE_HOT), counts[None] > 0
        return cls(frequent, len(counts) - some_missing > len(frequent), some_missing)

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

    Index 0 is for unknown ones, and those beyond so many, the last for missing values.
    """

    width: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """The number of indices."""
        return len(self.categories) + 2

    @classmethod
    def of(cls, counts: Counter[str | None]) -> IndexCode:
        """Return the code for categories that occur so often; without any if each occurs once."""
        some_repeat = any(n > 1 for cell, n in counts.items() if cell is not None)
        return cls(most_frequent(counts) if some_repeat else ())

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 1)``: single precision holds indices exactly."""
        return _single(xp.where(xp.isnan(values), self.size - 1, values + 1)[:, None], xp)


@dataclass(frozen=True)
class TargetCode(Categories):
    """What the target is like in a category, as robust numbers; for columns with many.

    ``values`` are the numbers of each category, then of missing values, then of categories that are not among them.
    """

    values: tuple[tuple[float, ...], ...]
    marks_missing: ClassVar[bool] = True
    numbers: ClassVar[int] = 3
    width: ClassVar[int] = 3

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return ``(n, 3)``."""
        missing = len(self.categories)
        place = xp.where(xp.isnan(values), missing, xp.where(values < 0, missing + 1, values))
        if xp is np:
            return self._table[place.astype(np.intp)]
        return xp.from_numpy(self._table).to(values.device)[place.long()]

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        return np.array(self.values, dtype=np.float32)


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
    def asks(cls, number: type[NumberCode]) -> Asking[DateCode]:
        """Learn the code on the training rows."""
        spread = yield AskSpread()
        turns = ["day"]
        if spread.values:
            times = yield AskSpread(View("time"))
            turns += ["time"] if times.range else []
            turns += [turn for turn, span in SPANS.items() if spread.range >= span]
        parts = yield SideBySide(tuple(number.asks("number", View(turn)) for turn in turns))
        return cls(tuple(zip(turns, parts, strict=True)))

    def read(self, column: Column) -> Array:
        """Return the days since 1970, NaN for missing."""
        return numbers_from(column, "date")

    def encode(self, values: Any, xp: Any = np) -> Any:
        """Return a column for each part, and the mark of missing values if training rows had any."""
        made = [code.encode(turned(values, turn, xp), xp) for turn, code in self.parts]
        return xp.concatenate([part[:, :1] for part in made] + [made[0][:, 1:]], 1)


def _single(values: Any, xp: Any) -> Any:
    return values.astype(np.float32) if xp is np else values.float()


def _quiet(xp: Any) -> AbstractContextManager[Any]:
    """Return what keeps numpy from warning of infinities; torch does not warn, and could not compile that."""
    return np.errstate(over="ignore") if xp is np else nullcontext()


Code = NumberCode | LongTailCode | OneHotCode | IndexCode | TargetCode | NoCode | DateCode
CODES: dict[str, type[NumberCode] | type[OneHotCode] | type[IndexCode] | type[TargetCode] | type[NoCode]] = {
    "number": NumberCode,
    "robust": RobustCode,
    "one-hot": OneHotCode,
    "index": IndexCode,
    "target": TargetCode,
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
    own: dict[str, Any] = {name: _frozen(v) for name, v in entries.items()}
    name = own.pop("code")
    if name == "date":
        return DateCode(tuple((turn, code_from_dict(part)) for turn, part in own["parts"]))  # type: ignore[misc]
    if name == "long-tail":
        parts = {part: code_from_dict(own[part]) for part in ("plain", "logarithm")}
        return LongTailCode(**own | parts)
    return CODES[name](**own)


def _frozen(entry: Any) -> Any:
    return tuple(map(_frozen, entry)) if isinstance(entry, list) else entry


# ------------------------------------------------------------------------------------------------ measures


@dataclass(frozen=True)
class Quartiles:
    """Values around the quartiles: two for each share, and the two in the middle."""

    spread: Spread
    low: tuple[float, float]
    center: tuple[float, float]
    high: tuple[float, float]
    middle: tuple[float, float]

    @property
    def median(self) -> float:
        """The mean of the two values in the middle."""
        return float(np.mean(self.middle))

    @property
    def center_and_range(self) -> tuple[float, float]:
        """Median and interquartile range, or half of the whole range if that is nothing but rounding, or 0."""
        n, rounding = self.spread.values, 10 * np.finfo(float).eps * self.spread.furthest
        pairs = zip((self.low, self.center, self.high), QUARTERS, strict=True)
        low, center, high = (between(*pair, share, n) for pair, share in pairs)
        return center, next((s for s in (high - low, self.spread.range / 2) if s > rounding), 0.0)

    def map(self, increasing: Callable[[Array], Array]) -> Quartiles:
        """Return those of the values of a function that grows."""
        ends = increasing(np.array([self.spread.least, self.spread.most])).tolist()
        pairs = (increasing(np.array(pair)).tolist() for pair in (self.low, self.center, self.high, self.middle))
        return Quartiles(replace(self.spread, least=ends[0], most=ends[1]), *map(tuple, pairs))


def _asks_quartiles(spread: Spread, view: View) -> Asking[Quartiles]:
    n = spread.values
    ranks = [*(ranks_around(share, n) for share in QUARTERS), middle_ranks(n)]
    found = yield AskRanks(tuple(rank for pair in ranks for rank in pair), spread, view)
    return Quartiles(spread, *zip(found[::2].tolist(), found[1::2].tolist(), strict=True))


def asks_center_and_scale(
    spread: Spread, view: View = PLAIN, change: Callable[[Array], Array] | None = None
) -> Asking[tuple[float, float]]:
    """Learn mean and standard deviation, with 0 for the latter if only rounding varies."""
    largest = spread.furthest
    if largest == 0:
        return 0.0, 0.0
    # Divided by the largest, since squares of values beyond 1e154 would overflow.
    mean = yield AskMean(view, largest, change=change)
    variance = yield AskMean(view, largest, mean, change)
    deviation = float(np.sqrt(variance))
    return mean * largest, deviation * largest if deviation > 10 * np.finfo(float).eps else 0.0


def center_and_scale(values: Array) -> tuple[float, float]:
    """Return mean and standard deviation, with 0 for the latter if only rounding varies."""

    def asks() -> Asking[tuple[float, float]]:
        spread = yield AskSpread()
        return (yield from asks_center_and_scale(spread))

    return answered(asks(), Column("", values))
