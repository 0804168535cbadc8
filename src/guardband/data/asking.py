"""What learning asks of a column, and who answers: a table in memory, or passes over blocks of rows that add up.

What is learnt of a column is written once, as a generator that yields questions and is sent their answers. ``answered``
answers them from a table. ``in_passes`` answers the questions of many columns together, one pass over all rows for each
round of questions. Answers depend on the values alone, not on their order, and not on how rows are divided. So what is
learnt is the same to the last bit, but for means and deviations: those of passes are exact, those of numpy are off by
a few units of the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from guardband.data.order_statistics import Array, Digits, replied, searched
from guardband.data.questions import AskDigits, AskExactMean, AskMean, AskRanks, Question
from guardband.data.table import Column

T = TypeVar("T")
Q = TypeVar("Q")
Asking = Generator[Question, Any, T]
"""What learns a ``T`` of one column by asking."""
Pass = Callable[[Sequence[tuple[int, Question]]], Sequence[Any]]
"""Takes questions, each with the number of its column, over all rows once, and returns the part of each."""
MOST_BYTES_OF_COLUMN = 1 << 16
"""A worker tells so many bytes at most of the values of a column at some ranks, because columns are asked together."""


@dataclass(frozen=True, eq=False)
class SideBySide(Question):
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


@dataclass(frozen=True)
class AskEach(Question):
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
    """Ask the same, with questions that passes can answer in the place of those that need all values at once."""
    return _asked_otherwise(asking, _over_passes)


def _over_passes(question: Question) -> Asking[Any]:
    """Ask for digits in place of ranks, since no process has all values; several things are asked side by side."""
    if isinstance(question, AskRanks):
        return (yield from _at_ranks(question))
    if isinstance(question, SideBySide):
        return (yield from _side_by_side(question.askings))
    return (yield AskExactMean(question) if isinstance(question, AskMean) else question)


def _asked_otherwise(asking: Generator[Q, Any, T], otherwise: Callable[[Q], Asking[Any]]) -> Asking[T]:
    """Ask other questions in the place of each, whose answers together answer it."""
    try:
        question = next(asking)
        while True:
            question = asking.send((yield from otherwise(question)))
    except StopIteration as end:
        learnt: T = end.value
        return learnt


def _at_ranks(question: AskRanks) -> Asking[Array]:
    """Ask for digits of the values at some ranks."""
    spread, ranks = question.spread, np.array([question.ranks]) + 1
    off_by, ends = question.off_by * spread.values, (spread.least, spread.most)
    search = searched(ranks, np.array([spread.values]), MOST_BYTES_OF_COLUMN, off_by, ends)

    def digits(next_digits: Digits) -> Asking[Any]:
        return (yield AskDigits(next_digits, question.view))

    found: Array = (yield from _asked_otherwise(search, digits))[0]
    return found


def _side_by_side(askings: Sequence[Asking[Any]]) -> Asking[list[Any]]:
    learners = [_Learner(_without_memory(asking)) for asking in askings]
    for own in learners:
        own.go_on()
    while waiting := [own for own in learners if own.question is not None]:
        answers = yield AskEach(tuple(own.question for own in waiting))
        for own, answer in zip(waiting, answers, strict=True):
            own.go_on(answer)
    return [own.learnt for own in learners]
