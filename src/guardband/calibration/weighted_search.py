"""What weights make of scores that never meet: a few questions to all workers, whose answers are small.

Calibration cannot know how heavy a new row will be. On one machine it keeps all scores that may become a threshold,
which are a tenth of them at 90%. Here it keeps the first ``FEW`` of these, and beyond them one for each power of two of
the weight. So thresholds are those of one machine, to the bit, up to a weight that few rows exceed. A heavier row has
the threshold of up to twice its weight: never too narrow, and finite wherever that of one machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Levels
from guardband.calibration.counted_at import CountedAt, Weighed
from guardband.calibration.summary import Array
from guardband.calibration.weighted_cut import effective, largest_weight, scaled_sums
from guardband.data.exact_sum import ExactSum
from guardband.data.order_statistics import Digits, replied, searched
from guardband.data.weight_statistics import BinaryParts, reached

FEW = 1 << 16
"""So many scores are kept of all levels together, besides those of powers of two."""
NOTHING = ExactSum()

Ask = Callable[[Any], Any]
"""Sends a question to all workers, and returns their answers as one."""


@dataclass(frozen=True)
class WeightTotals:
    """What is told of the weights of some rows, and adds up.

    Parameters
    ----------
    n : int
        The number of rows.
    weighty : int
        How many have a finite score and a positive weight.
    infinite : int
        How many scores are infinite.
    sum : ExactSum
        The sum of all weights.
    sum_infinite : ExactSum
        The sum of the weights of infinite scores.
    least : float
        The least positive weight, infinite if there is none.
    most : float
        The largest weight.
    """

    n: int = 0
    weighty: int = 0
    infinite: int = 0
    sum: ExactSum = NOTHING
    sum_infinite: ExactSum = NOTHING
    least: float = np.inf
    most: float = 0.0

    @classmethod
    def of(cls, scores: Array, weights: Array) -> WeightTotals:
        """Return what is told of some rows, ``(n,), (n,)``."""
        positive, infinite = weights > 0, np.isinf(scores)
        return cls(
            len(scores),
            int((positive & ~infinite).sum()),
            int(infinite.sum()),
            ExactSum.of(weights),
            ExactSum.of(weights[infinite]),
            float(weights[positive].min(initial=np.inf)),
            float(weights.max(initial=0.0)),
        )

    def __add__(self, other: WeightTotals) -> WeightTotals:
        return WeightTotals(
            self.n + other.n,
            self.weighty + other.weighty,
            self.infinite + other.infinite,
            self.sum + other.sum,
            self.sum_infinite + other.sum_infinite,
            min(self.least, other.least),
            max(self.most, other.most),
        )


class AskedWeights(CountedAt[Weighed]):
    """Scores and weights of which workers tell what they are asked.

    Parameters
    ----------
    totals : WeightTotals
        What was told of all rows.
    ask : function
        Sends a question to all workers, and returns their answers as one.
    """

    def __init__(self, totals: WeightTotals, ask: Ask) -> None:
        self._totals, self._ask = totals, ask
        self.n, self.number = totals.n, np.array([totals.n])

    def at(self, levels: Levels) -> Weighed:
        """Return what the weights make of the scores at each level."""
        return replied(searched_weights(self._totals, levels), self._ask)


def searched_weights(told: WeightTotals, levels: Levels, few: int = FEW) -> Generator[Any, Any, Weighed]:
    """Yield questions, take their answers, and return what the weights make of the scores at each level.

    Parameters
    ----------
    told : WeightTotals
        What is told of all rows; one weight at least is positive.
    levels : Levels
        The confidence levels, as exact fractions.
    few : int, default 2**16
        How many scores to keep.
    """
    units, total = BinaryParts.between(told.least, told.most), told.sum.exact
    finite = total - told.sum_infinite.exact
    asked = [level for level in levels.values if finite >= level * total]
    starts = yield from reached([level * total for level in asked], units)
    upto, sums = {own.value: own.upto for own in starts}, []
    for level, start in zip(asked, starts, strict=True):
        share, last, known = few // len(asked), np.inf, start.upto
        if start.rows + share <= told.weighty:
            rank = np.array([[start.rows + share]])
            last = (yield from _of_weighty(searched(rank, np.array([told.weighty]))))[0, 0]
        rows: Any = yield Between(start.value, float(last))
        for value, weight in rows[np.argsort(rows[:, 0], kind="stable")].tolist():
            known += Fraction(weight)
            upto[value] = known  # of equal values the last one counts
        if known < finite:
            sums += _sums(level, total, finite, known + Fraction(told.least))
    upto |= {own.value: own.upto for own in (yield from reached(sums, units))}
    scores = sorted(upto)
    most = [[largest_weight(upto[score], total, level) for score in scores] for level in levels.values]
    scaled, squares = yield ScaledSums(told.most)
    out = Weighed(
        np.array(scores, dtype=np.float64),
        np.array(most, dtype=np.float64).reshape(len(levels), len(scores)),
        effective(scaled, squares),
        float(Fraction(told.most) / total),
        np.empty(0),
        told.infinite,
    )
    heavier: Any = yield Heavier(units, out.limits)
    return replace(out, infinite_share=np.array([float(units.total(own) / total) for own in heavier]))


def _sums(level: Fraction, total: Fraction, finite: Fraction, first: Fraction) -> list[Fraction]:
    """Return the first sum after those that are known, and those of powers of two below the largest possible weight."""
    sums, most, least = [first], finite / level - total, first / level - total
    while most > least:
        sums.append(level * (total + most))
        most /= 2
    return sums


def _of_weighty(search: Generator[Digits, Any, Any]) -> Generator[Any, Any, Any]:
    """Ask the same of rows with a finite score and a positive weight."""
    answer = None
    while True:
        try:
            question = next(search) if answer is None else search.send(answer)
        except StopIteration as end:
            return end.value
        answer = yield OfWeighty(question)


@dataclass(frozen=True)
class OfWeighty:
    """Asks of rows with a finite score and a positive weight what ``digits`` asks.

    Parameters
    ----------
    digits : Digits
        The question.
    """

    digits: Digits

    def answer(self, scores: Array, weights: Array) -> NDArray[np.generic]:
        """Return the answer of some rows."""
        return self.digits.answer(scores[(weights > 0) & np.isfinite(scores)])

    def together(self, answers: Sequence[Any]) -> Any:
        """Return the answers of several workers as one."""
        return self.digits.together(answers)


@dataclass(frozen=True)
class Between:
    """Asks for the scores between two others, and for their weights.

    Parameters
    ----------
    low : float
        Scores are larger than this one.
    high : float
        They are smaller than this one.
    """

    low: float
    high: float

    def answer(self, scores: Array, weights: Array) -> Array:
        """Return scores and weights, ``(m, 2)``."""
        rows = (scores > self.low) & (scores < self.high) & (weights > 0)
        return np.stack([scores[rows] + 0.0, weights[rows]], axis=1)

    def together(self, answers: Sequence[Array]) -> Array:
        """Return the answers of several workers as one."""
        return np.concatenate(answers)


@dataclass(frozen=True)
class ScaledSums:
    """Asks for the sum of weights over the largest one, and for that of their squares.

    Parameters
    ----------
    most : float
        The largest weight.
    """

    most: float

    def answer(self, scores: Array, weights: Array) -> tuple[ExactSum, ExactSum]:
        """Return both sums."""
        return scaled_sums(weights, self.most)

    def together(self, answers: Sequence[tuple[ExactSum, ExactSum]]) -> tuple[ExactSum, ExactSum]:
        """Return the answers of several workers as one."""
        scaled, squares = zip(*answers, strict=True)
        return sum(scaled, NOTHING), sum(squares, NOTHING)


@dataclass(frozen=True, eq=False)
class Heavier:
    """Asks for the sum of weights above limits.

    Parameters
    ----------
    units : BinaryParts
        How weights are added.
    limits : array of shape (L,)
        The limits.
    """

    units: BinaryParts
    limits: Array

    def answer(self, scores: Array, weights: Array) -> NDArray[np.int64]:
        """Return the sum above each limit, ``(L, columns)``."""
        above = [weights[(weights > limit) & (weights > 0)] for limit in self.limits]
        return np.concatenate([self.units.counted(own, np.zeros(len(own), dtype=np.int64), 1) for own in above])

    def together(self, answers: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the answers of several workers as one."""
        out: NDArray[np.int64] = np.sum(answers, axis=0)
        return out
