"""What learning asks of a column, and who answers: a table in memory, or passes over blocks of rows that add up.

What is learnt of a column is written once, as a generator that yields questions and is sent their answers. ``answered``
answers them from a table. ``in_passes`` answers the questions of many columns together, one pass over all rows for each
round of questions. Answers depend on the values alone, not on their order, and not on how rows are divided. So what is
learnt is the same to the last bit, but for means and deviations: those of passes are exact, those of numpy are off by
a few units of the last place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from guardband.data.exact_sum import ExactSum
from guardband.data.order_statistics import Array, Digits, replied, searched
from guardband.data.table import Column, categories_from, numbers_from
from guardband.data.turns import turned

T = TypeVar("T")


class Question(Protocol):
    """What is asked of values: the answer for all rows is made of parts, which can be added."""

    def of(self, column: Column) -> Any:
        """Return the part of some rows."""

    def added(self, one: Any, other: Any) -> Any:
        """Return the part of both."""

    def answer(self, part: Any) -> Any:
        """Return the answer, given the part of all rows."""


Asking = Generator[Question, Any, T]
"""What learns a ``T`` of one column by asking."""
Pass = Callable[[Sequence[tuple[int, Question]]], Sequence[Any]]
"""Takes questions, each with the number of its column, over all rows once, and returns the part of each."""

# ------------------------------------------------------------------------------------------------- values


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
MOST_BYTES_OF_COLUMN = 1 << 16
"""A worker tells so many bytes at most of the values of a column at some ranks, because columns are asked together."""


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
class AskSpread:
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

    def answer(self, part: Spread) -> Spread:
        """Return it."""
        return part


@dataclass(frozen=True)
class AskMean:
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
class AskExactMean:
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
class AskAtMost:
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
class AskDistinct:
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

    def answer(self, part: tuple[Distinct, bool]) -> tuple[Distinct, bool]:
        """Return them."""
        return part

    def _ends(self, values: Array, counts: NDArray[np.intp], every: bool) -> tuple[Distinct, bool]:
        if every and len(values) <= self.many:
            return (values, counts), True
        half = self.many // 2  # the least and the largest of all rows are among those of some part of the rows
        if len(values) > 2 * half:
            values, counts = (np.concatenate([own[:half], own[-half:]]) for own in (values, counts))
        return (values, counts), False


@dataclass(frozen=True)
class AskCategories:
    """Asks how often each category occurs, None for missing ones."""

    def of(self, column: Column) -> Counter[str | None]:
        """Return the counts of some rows."""
        return Counter(categories_from(column))

    def added(self, one: Counter[str | None], other: Counter[str | None]) -> Counter[str | None]:
        """Return the counts of both."""
        return one + other

    def answer(self, part: Counter[str | None]) -> Counter[str | None]:
        """Return them."""
        return part


@dataclass(frozen=True)
class AskLargest:
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
class AskRanks:
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
class AskDigits:
    """Asks for the next digits of the values at some ranks, or for few values that may be these."""

    question: Digits
    view: View

    def of(self, column: Column) -> NDArray[np.generic]:
        """Return the answer of some rows."""
        return self.question.answer(self.view.of(column))

    def added(self, one: NDArray[np.generic], other: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the answer of both."""
        return self.question.together([one, other])

    def answer(self, part: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return it."""
        return part


@dataclass(frozen=True, eq=False)
class Several:
    """Stands for a question where several things are learnt of one column: they ask side by side.

    The answer is a list of what each learns.
    """

    askings: tuple[Asking[Any], ...]

    def of(self, column: Column) -> list[Any]:
        """Return what is learnt of a column in memory."""
        return [answered(asking, column) for asking in self.askings]

    def added(self, one: Any, other: Any) -> Any:
        """By passes ``AskEach`` is asked instead."""
        raise NotImplementedError

    def answer(self, part: list[Any]) -> list[Any]:
        """Return it."""
        return part


@dataclass(frozen=True)
class AskEach:
    """Asks several questions."""

    questions: tuple[Any, ...]

    def of(self, column: Column) -> list[Any]:
        """Return the parts of some rows."""
        return [own.of(column) for own in self.questions]

    def added(self, one: list[Any], other: list[Any]) -> list[Any]:
        """Return the parts of both."""
        return [own.added(*pair) for own, pair in zip(self.questions, zip(one, other, strict=True), strict=True)]

    def answer(self, part: list[Any]) -> list[Any]:
        """Return the answers."""
        return [own.answer(each) for own, each in zip(self.questions, part, strict=True)]


# ------------------------------------------------------------------------------------------------ answers


def answered(asking: Asking[T], column: Column) -> T:
    """Return what is learnt of a column in memory."""
    return replied(asking, lambda question: question.answer(question.of(column)))


@dataclass
class _Learner:
    """One way through the passes: the question that is open, or what was learnt."""

    asking: Asking[Any]
    question: Question | None = None
    learnt: Any = None

    def go_on(self, reply: Any = None) -> None:
        try:
            self.question = self.asking.send(reply)
        except StopIteration as end:
            self.question, self.learnt = None, end.value


def in_passes(askings: Sequence[tuple[int, Asking[Any]]], over_all_rows: Pass) -> list[Any]:
    """Return what each asking learns of the column with its number, in as few passes as the longest of them needs."""
    columns = [column for column, _ in askings]
    learners = [_Learner(_without_memory(asking)) for _, asking in askings]
    for own in learners:
        own.go_on()
    while waiting := [(i, own) for i, own in zip(columns, learners, strict=True) if own.question is not None]:
        questions = [(i, own.question) for i, own in waiting if own.question is not None]
        parts = over_all_rows(questions)
        for (_, own), (_, question), part in zip(waiting, questions, parts, strict=True):
            own.go_on(question.answer(part))
    return [own.learnt for own in learners]


def parts_of(questions: Sequence[tuple[int, Question]], columns: Sequence[Column]) -> list[Any]:
    """Return the parts of one block of rows."""
    return [question.of(columns[i]) for i, question in questions]


def added(questions: Sequence[tuple[int, Question]], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the parts of several blocks, added up."""
    each = zip(*parts, strict=True)
    return [reduce(question.added, own) for (_, question), own in zip(questions, each, strict=True)]


def _without_memory(asking: Asking[T]) -> Asking[T]:
    """Ask the same, with digits in place of ranks, since no process has all values, and several things side by side."""
    try:
        question = next(asking)
        while True:
            reply: Any
            if isinstance(question, AskRanks):
                reply = yield from _at_ranks(question)
            elif isinstance(question, AskMean):
                reply = yield AskExactMean(question)
            elif isinstance(question, Several):
                reply = yield from _side_by_side(question.askings)
            else:
                reply = yield question
            question = asking.send(reply)
    except StopIteration as end:
        learnt: T = end.value
        return learnt


def _side_by_side(askings: Sequence[Asking[Any]]) -> Asking[list[Any]]:
    learners = [_Learner(_without_memory(asking)) for asking in askings]
    for own in learners:
        own.go_on()
    while waiting := [own for own in learners if own.question is not None]:
        answers = yield AskEach(tuple(own.question for own in waiting))
        for own, answer in zip(waiting, answers, strict=True):
            own.go_on(answer)
    return [own.learnt for own in learners]


def _at_ranks(question: AskRanks) -> Asking[Array]:
    """Ask for digits of the values at some ranks."""
    spread, ranks = question.spread, np.array([question.ranks]) + 1
    off_by, ends = question.off_by * spread.values, (spread.least, spread.most)
    search = searched(ranks, np.array([spread.values]), MOST_BYTES_OF_COLUMN, off_by, ends)
    try:
        digits = next(search)
        while True:
            digits = search.send((yield AskDigits(digits, question.view)))
    except StopIteration as end:
        found: Array = end.value[0]
        return found
