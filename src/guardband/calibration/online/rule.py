"""The contract of an online rule: which score is far enough for the next row, and what that promises.

A row is a miss if its score is larger than the threshold that it was given. Intervals contain every true value that is
no miss, and the prediction besides, so that coverage is never smaller than the share of rows that are no misses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from guardband.bands.long_run_promise import LongRunPromise
from guardband.bands.promise import Promise
from guardband.calibration.online.past_scores import PastScores

State = tuple[float, ...]
"""The numbers that a rule keeps of its own, besides the tally and the past scores."""


@dataclass(frozen=True)
class Tally:
    """How many rows were judged, how many of these were misses, and how many rows waited at once, at most.

    Parameters
    ----------
    judged : int, default 0
        The number of rows whose true value has arrived.
    misses : int, default 0
        How many of them had a score above their threshold.
    most_waiting : int, default 1
        The largest number of rows that ever waited for their true values at the same time.
    """

    judged: int = 0
    misses: int = 0
    most_waiting: int = 1

    def excess(self, alpha: Fraction) -> Fraction:
        """Return by how many rows the misses exceed their share, exactly.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        """
        return self.misses - alpha * self.judged


class OnlineRule(ABC):
    """Finds the threshold of the next row from the rows that were judged so far.

    A subclass is a frozen dataclass with a ``word``. It states the threshold, and by how many rows misses can exceed
    their share, or fall short of it, on any sequence.
    """

    word: ClassVar[str]
    """What ``OnlineCalibrator`` calls it."""

    def begin(self, alpha: Fraction, past: PastScores) -> State:
        """Return the numbers that the rule keeps, before any row is judged.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        past : PastScores
            The scores of the calibration rows, none without a warm start.
        """
        return ()

    @abstractmethod
    def threshold(self, alpha: Fraction, tally: Tally, state: State, past: PastScores) -> float:
        """Return the largest score that is inside: infinity for infinite intervals, minus infinity for the prediction.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        tally : Tally
            What was judged so far.
        state : tuple of float
            The numbers that the rule keeps.
        past : PastScores
            The latest scores.
        """

    def judged(self, alpha: Fraction, tally: Tally, state: State, past: PastScores, is_miss: bool) -> State:
        """Return the numbers that the rule keeps after one more row.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        tally : Tally
            What was judged so far, with this row.
        state : tuple of float
            The numbers that the rule kept before.
        past : PastScores
            The latest scores, with this row's.
        is_miss : bool
            Whether the row was a miss.
        """
        return state

    @abstractmethod
    def limits(self, alpha: Fraction, tally: Tally, state: State) -> tuple[float, float]:
        """Return how many rows the misses can fall short of their share, and exceed it, on any sequence.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        tally : Tally
            What was judged so far.
        state : tuple of float
            The numbers that the rule keeps.
        """

    def promise(self, alpha: Fraction, tally: Tally, state: State, numbers: dict[str, Any]) -> Promise:
        """Return what may be said of the rows judged so far.

        Parameters
        ----------
        alpha : Fraction
            The share of misses to aim at.
        tally : Tally
            What was judged so far.
        state : tuple of float
            The numbers that the rule keeps.
        numbers : dict
            The fields that every promise has.
        """
        short, over = self.limits(alpha, tally, state)
        return LongRunPromise(
            **numbers,
            rule=self.word,
            judged=tally.judged,
            misses=tally.misses,
            most_waiting=tally.most_waiting,
            most_short=short,
            most_over=over,
        )
