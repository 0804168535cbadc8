"""A rule with a score in use: rows are given intervals, wait for their true values, and are judged once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from guardband.bands.predicted import Predicted, PredictedInterval, PredictedPoint
from guardband.bands.promise import Promise, Side
from guardband.calibration.online.keys import Key, refuse_repeated
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.rule import OnlineRule, State, Tally
from guardband.calibration.score import OneSide, Score
from guardband.calibration.summary import Array
from guardband.words import listed


class Stream:
    """What an online rule has seen so far, and the rows that wait for their true values, oldest first.

    ``waiting`` has for each row the threshold that it was given and the parts of its prediction: all that is needed to
    judge it. Nothing is changed before everything is known to be right.
    """

    def __init__(self, rule: OnlineRule, score: Score, alpha: Fraction, window: int | None) -> None:
        self.rule, self.score, self.alpha = rule, score, alpha
        self.past, self.tally, self.n_calibration = PastScores(window), Tally(), 0
        self.state: State = rule.begin(alpha, self.past)
        self.waiting: dict[Key, tuple[float, ...]] = {}
        self.given = 0
        """How many rows were given intervals: the number of the next row."""

    @property
    def side(self) -> Side:
        """Which bound the score is about."""
        return self.score.side if isinstance(self.score, OneSide) else "both"

    @property
    def parts(self) -> int:
        """How many numbers of a prediction the score needs."""
        return 1 if _takes_point(self.score) else 3

    def start(self, scores: Array) -> None:
        """Begin again with the scores of calibration rows, oldest first."""
        self.past = PastScores(self.past.window, scores.tolist())
        self.state, self.n_calibration = self.rule.begin(self.alpha, self.past), len(scores)

    def threshold(self) -> float:
        """Return the largest score that is inside for the next rows."""
        return self.rule.threshold(self.alpha, self.tally, self.state, self.past)

    def promise(self) -> Promise:
        """Return what may be said by now."""
        numbers = {
            "confidence_level": (float(1 - self.alpha),),
            "n_calibration": self.n_calibration,
            "whole_line": (self.threshold() == math.inf,),
            "of_side": self.side,
        }
        return self.rule.promise(self.alpha, self.tally, self.state, numbers)

    def expect(self, predicted: Predicted, keys: Sequence[Key] | None) -> tuple[list[Key], Array, Array]:
        """Let rows wait for their true values; return their keys and the ends of their intervals, ``(n,)`` each."""
        own: list[Key] = list(range(self.given, self.given + len(predicted))) if keys is None else list(keys)
        if len(own) != len(predicted):
            raise ValueError(f"keys must have one entry for each of {len(predicted)} rows, found {len(own)}.")
        refuse_repeated(own)
        if any(key in self.waiting for key in own):
            named = listed([key for key in own if key in self.waiting])
            raise ValueError(f"A row with the key {named} is waiting for its true value already. Use another key.")
        threshold = self.threshold()
        lower, upper = ends(self.score, predicted, threshold)
        rows = zip(*(part[0, 0].tolist() for part in predicted.parts), strict=True)
        self.waiting |= {key: (threshold, *parts) for key, parts in zip(own, rows, strict=True)}
        self.given += len(own)
        self.tally = replace(self.tally, most_waiting=max(self.tally.most_waiting, len(self.waiting)))
        return own, lower, upper

    def oldest(self, count: int) -> list[Key]:
        """Return the keys of the rows that have waited longest; raise if there are not so many."""
        if count > len(self.waiting):
            raise ValueError(
                f"y has {count:,} true values, but {len(self.waiting):,} rows wait for theirs. Pass a true value for "
                "each row that was given an interval, once."
            )
        every = iter(self.waiting)
        return [next(every) for _ in range(count)]

    def need(self, keys: Sequence[Key]) -> None:
        """Raise unless all these rows are waiting, each named once."""
        refuse_repeated(keys)
        unknown = [key for key in keys if key not in self.waiting]
        if unknown:
            raise ValueError(
                f"No row with the key {listed(unknown)} is waiting for its true value. It was judged already, or was "
                "never given an interval. Nothing was updated: remove it and try again."
            )

    def judge(self, keys: Sequence[Key], scores_of: Callable[[Predicted], Array]) -> None:
        """Judge waiting rows in this order, by the scores of their predictions; all of them, or none if one fails."""
        self.need(keys)
        if not keys:
            return
        numbers = np.array([self.waiting[key] for key in keys]).T
        thresholds, predicted = numbers[0], _with_parts(numbers[1:])
        scores = scores_of(predicted)
        past, tally, state = self.past.copy(), self.tally, self.state
        for score, is_miss in zip(scores.tolist(), (scores > thresholds).tolist(), strict=True):
            past.add(score)
            tally = replace(tally, judged=tally.judged + 1, misses=tally.misses + is_miss)
            state = self.rule.judged(self.alpha, tally, state, past, is_miss)
        self.past, self.tally, self.state = past, tally, state
        for key in keys:
            del self.waiting[key]

    def discard(self, keys: Sequence[Key]) -> None:
        """Wait no longer for the true values of these rows."""
        self.need(keys)
        for key in keys:
            del self.waiting[key]


def as_scored(score: Score, predicted: Predicted) -> Predicted:
    """Return what the score needs of a prediction, to be kept until the row is judged: an interval, or a point."""
    if _takes_point(score):
        return PredictedPoint(predicted.point)
    if not issubclass(PredictedInterval, score.takes) or not isinstance(predicted, PredictedInterval):
        raise ValueError(f"An online rule needs {PredictedInterval.what} of each row, found {predicted.what}.")
    return PredictedInterval(*predicted.parts)


def ends(score: Score, predicted: Predicted, threshold: float) -> tuple[Array, Array]:
    """Return the ends of the intervals at a threshold, ``(n,)`` each, extended to contain the prediction."""
    point: Any = predicted.point
    is_point = threshold == -math.inf
    low, high = score.interval(predicted, 0.0 if is_point else threshold)
    if is_point:  # at any finite threshold, an end is infinite if the score has no such end or the prediction is none
        low, high = (np.where(np.isfinite(end), point, end) for end in (low, high))
    low, high = np.where(point < low, point, low), np.where(point > high, point, high)
    return low[0, 0], high[0, 0]


def _with_parts(parts: Array) -> Predicted:
    kinds: dict[int, Any] = {1: PredictedPoint, 3: PredictedInterval}
    predicted: Predicted = kinds[len(parts)](*parts[:, None, None])
    return predicted


def _takes_point(score: Score) -> bool:
    return score.takes is Predicted or score.takes is PredictedPoint
