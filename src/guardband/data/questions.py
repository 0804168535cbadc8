"""What can be asked of the values of a column: a part of the answer for some rows, how parts add up, and the answer.

Answers depend on the values alone, not on their order, and not on how rows are divided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.exact_sum import ExactSum
from guardband.data.order_statistics import Array, Digits
from guardband.data.table import Column, categories_from, numbers_from
from guardband.data.turns import turned


class Question(ABC):
    """What is asked of values: the answer for all rows is made of parts, which can be added."""

    @abstractmethod
    def of(self, column: Column) -> Any:
        """Return the part of some rows."""

    @abstractmethod
    def added(self, one: Any, other: Any) -> Any:
        """Return the part of both."""

    def answer(self, part: Any) -> Any:
        """Return the answer, given the part of all rows: it is the part unless a question says otherwise."""
        return part


@dataclass(frozen=True)
class View:
    """How numbers are looked at: as they are, as what recurs of a date, or by their distance from an ``origin``.

    With an origin values at the origin itself are left out if ``away``, and with ``halved`` both are halved before:
    the difference of numbers near the largest would overflow.
    """

    turn: str = "day"
    origin: float | None = None
    away: bool = False
    halved: bool = False

    def of(self, column: Column) -> Array:
        """Return the numbers of a column that are present, so looked at."""
        values = numbers_from(column, column.kind)
        values = values[~np.isnan(values)]
        if self.turn != "day":
            values = turned(values, self.turn, np)
        if self.origin is None:
            return values
        with np.errstate(over="ignore"):
            values = np.abs(values / 2 - self.origin if self.halved else values - self.origin)
        return values[values > 0] if self.away else values


PLAIN = View()


@dataclass(frozen=True)
class Spread:
    """How many rows there are, how many values, and the least and the largest of these, if there are any."""

    rows: int
    values: int
    least: float
    most: float

    @property
    def range(self) -> float:
        """The difference of the largest and the least."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.most) - self.least)

    @property
    def furthest(self) -> float:
        """The largest distance from zero."""
        return max(abs(self.least), abs(self.most))

    @property
    def some_missing(self) -> bool:
        """Whether rows have no value."""
        return self.values < self.rows


@dataclass(frozen=True)
class AskSpread(Question):
    """Asks for the ``Spread`` of values."""

    view: View = PLAIN

    def of(self, column: Column) -> Spread:
        """Return it for some rows."""
        values = self.view.of(column)
        ends = (float(values.min()), float(values.max())) if len(values) else (np.inf, -np.inf)
        return Spread(len(column.values), len(values), *ends)

    def added(self, one: Spread, other: Spread) -> Spread:
        """Return it for both."""
        least, most = min(one.least, other.least), max(one.most, other.most)
        return Spread(one.rows + other.rows, one.values + other.values, least, most)


@dataclass(frozen=True)
class AskMean(Question):
    """Asks for the mean of values divided by ``unit``, or of the squares of their deviations from ``center`` then.

    In memory it is numpy's, which is off by a few units of the last place. By passes ``AskExactMean`` is asked instead:
    numpy's sum depends on the order of rows.
    """

    view: View = PLAIN
    unit: float = 1.0
    center: float | None = None
    change: Callable[[Array], Array] | None = None

    def of(self, column: Column) -> Array:
        """Return what is averaged, of rows in memory."""
        values = self.view.of(column)
        values = (values if self.change is None else self.change(values)) / self.unit
        return values if self.center is None else (values - self.center) ** 2

    def added(self, one: Array, other: Array) -> Array:
        """Return that of both."""
        return np.concatenate([one, other])

    def answer(self, part: Array) -> float:
        """Return the mean."""
        return float(part.mean())


@dataclass(frozen=True)
class AskExactMean(Question):
    """Asks for the same mean, rounded once, whatever the order of rows."""

    question: AskMean

    def of(self, column: Column) -> ExactSum:
        """Return the sum over some rows."""
        return ExactSum.of(self.question.of(column))

    def added(self, one: ExactSum, other: ExactSum) -> ExactSum:
        """Return the sum over both."""
        return one + other

    def answer(self, part: ExactSum) -> float:
        """Return the mean."""
        return part.mean


@dataclass(frozen=True)
class AskAtMost(Question):
    """Asks how many values lie at or below each of some numbers."""

    numbers: tuple[float, ...]
    view: View = PLAIN

    def of(self, column: Column) -> NDArray[np.int64]:
        """Return the counts of some rows."""
        where = np.searchsorted(np.array(self.numbers), self.view.of(column), side="left")
        return np.bincount(where, minlength=len(self.numbers) + 1)[: len(self.numbers)].cumsum()

    def added(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of both."""
        return one + other

    def answer(self, part: NDArray[np.int64]) -> tuple[int, ...]:
        """Return the counts."""
        return tuple(part.tolist())


Distinct = tuple[Array, NDArray[np.intp]]
"""Values that differ, in order, and how often each occurs."""


@dataclass(frozen=True)
class AskDistinct(Question):
    """Asks for the values that differ, with how often each occurs: for those at either end, if they are ``many``.

    The answer also says whether these are all.
    """

    many: int
    view: View = PLAIN

    def of(self, column: Column) -> tuple[Distinct, bool]:
        """Return those of some rows."""
        return self._ends(*np.unique(self.view.of(column) + 0.0, return_counts=True), every=True)

    def added(self, one: tuple[Distinct, bool], other: tuple[Distinct, bool]) -> tuple[Distinct, bool]:
        """Return those of both. What one part left out lay between its ends, and so does what both leave out."""
        values = np.concatenate([one[0][0], other[0][0]])
        counts = np.concatenate([one[0][1], other[0][1]])
        together, back = np.unique(values, return_inverse=True)
        total = np.bincount(back, weights=counts, minlength=len(together)).astype(np.intp)
        return self._ends(together, total, every=one[1] and other[1])

    def _ends(self, values: Array, counts: NDArray[np.intp], every: bool) -> tuple[Distinct, bool]:
        if every and len(values) <= self.many:
            return (values, counts), True
        half = self.many // 2  # the least and the largest of all rows are among those of some part of the rows
        if len(values) > 2 * half:
            values, counts = (np.concatenate([own[:half], own[-half:]]) for own in (values, counts))
        return (values, counts), False


@dataclass(frozen=True)
class AskCategories(Question):
    """Asks how often each category occurs, None for missing ones."""

    def of(self, column: Column) -> Counter[str | None]:
        """Return the counts of some rows."""
        return Counter(categories_from(column))

    def added(self, one: Counter[str | None], other: Counter[str | None]) -> Counter[str | None]:
        """Return the counts of both."""
        return one + other


@dataclass(frozen=True)
class AskLargest(Question):
    """Asks for the largest values, so many, from the largest on."""

    count: int
    view: View = PLAIN

    def of(self, column: Column) -> Array:
        """Return those of some rows."""
        return self._largest(self.view.of(column))

    def added(self, one: Array, other: Array) -> Array:
        """Return those of both."""
        return self._largest(np.concatenate([one, other]))

    def answer(self, part: Array) -> Array:
        """Return them in order."""
        return np.sort(part)[::-1]

    def _largest(self, values: Array) -> Array:
        kept = min(self.count, len(values))
        return np.partition(values, len(values) - kept)[len(values) - kept :]


@dataclass(frozen=True)
class AskRanks(Question):
    """Asks for the values at some ranks, from 0 on, in order; ``spread`` is what is known of them.

    ``off_by`` is the share of the rows by which a rank may be off if rows are not in memory, 0 for none.
    """

    ranks: tuple[int, ...]
    spread: Spread
    view: View = PLAIN
    off_by: float = 0.0

    def of(self, column: Column) -> Array:
        """Return all values, which are in memory."""
        return self.view.of(column)

    def added(self, one: Array, other: Array) -> Array:
        """Return those of both: by passes ``AskDigits`` is asked instead."""
        return np.concatenate([one, other])

    def answer(self, part: Array) -> Array:
        """Return the values at the ranks."""
        ranks = list(self.ranks)
        return np.partition(part, sorted(set(ranks)))[ranks]


@dataclass(frozen=True)
class AskDigits(Question):
    """Asks for the next digits of the values at some ranks, or for few values that may be these."""

    question: Digits
    view: View

    def of(self, column: Column) -> NDArray[np.generic]:
        """Return the answer of some rows."""
        return self.question.answer(self.view.of(column))

    def added(self, one: NDArray[np.generic], other: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the answer of both."""
        return self.question.together([one, other])
