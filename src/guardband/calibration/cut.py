"""Cuts: which score is far enough, and what may be promised of that.

``guarantee=`` takes the word of a cut, or a cut. Any cut goes with any score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.bands.promise import DELTA, Promise
from guardband.bands.rank_promise import MarginalPromise, PacPromise
from guardband.bands.ranks import (
    marginal_rank,
    order_statistic,
    pac_rank,
    shared_order_statistic,
    simultaneous_rank,
)
from guardband.calibration.counted import Counted, Joined, Known
from guardband.calibration.counted_at import CountedAt, SharedFound
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.summary import Array
from guardband.exceptions import DegenerateBandWarning
from guardband.words import level_name

SAME = 1e-4
"""Scores of equal rows may differ by so much, relative to their size: networks compute in single precision."""


class Cut(ABC):
    """Turns the scores of calibration rows into thresholds for new ones, with a promise."""

    word: ClassVar[str]
    """What ``guarantee=`` calls it."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """What it must know of a row: names of ``Context``."""

    @property
    def uses_of_new(self) -> frozenset[str]:
        """What it must know of a new row."""
        return self.uses

    @abstractmethod
    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return what the scores of the calibration rows, ``(n,)``, settle at each level.

        ``chosen_after`` says that the levels were chosen after calibration.

        Parameters
        ----------
        scores : array of shape (n,)
            The scores of the calibration rows.
        context : Context
            What else is known of the rows.
        levels : Levels
            The confidence levels, as exact fractions.
        chosen_after : bool
            Whether the levels were chosen after calibration.
        """

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same as ``calibrate`` from scores that can only be counted; a cut that needs more refuses.

        Parameters
        ----------
        counted : Counted
            The scores of the calibration rows, of each group if there are groups.
        levels : Levels
            The confidence levels, as exact fractions.
        chosen_after : bool
            Whether the levels were chosen after calibration.
        """
        raise ValueError(
            f'guarantee="{self.word}" of {type(self).__name__} needs the scores of all {counted.n:,} calibration rows '
            "at once. Calibrate on fewer rows, or keep the scores of more (keep_scores)."
        )

    def calibrate_complete(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same as ``calibrate``, with whatever rows like the calibration rows need.

        Parameters
        ----------
        scores : array of shape (n,)
            The scores of the calibration rows.
        context : Context
            What else is known of the rows.
        levels : Levels
            The confidence levels, as exact fractions.
        chosen_after : bool
            Whether the levels were chosen after calibration.
        """
        found = self.calibrate(scores, context, levels, chosen_after)
        self.completed(found.arrays, scores, context, context, levels)
        return found

    def for_entities(self) -> Cut | None:
        """Return the cut where rows of one entity may depend on each other; None: it takes one row of each."""
        return None

    def completed(self, arrays: dict[str, Any], scores: Array, known: Context, new: Context, levels: Levels) -> None:
        """Add to what calibration found whatever new rows need that was not looked for then.

        Parameters
        ----------
        arrays : dict of arrays
            What calibration found, by name, which is added to.
        scores : array of shape (n,)
            The scores of the calibration rows.
        known : Context
            What else is known of the calibration rows.
        new : Context
            What is known of the new rows.
        levels : Levels
            The confidence levels, as exact fractions.
        """
        return

    def prepared(self, arrays: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return what ``thresholds`` needs for blocks of these rows, such as a table that it looks up.

        Parameters
        ----------
        arrays : dict of arrays
            What calibration found, by name.
        context : Context
            What is known of the new rows.
        """
        return arrays

    def thresholds(self, arrays: dict[str, Any], context: Context, xp: Any = np) -> Any:
        """Return the largest score that is inside at each level, ``(L,)`` for all new rows or ``(n, L)`` for each.

        Parameters
        ----------
        arrays : dict of arrays
            What calibration found, by name.
        context : Context
            What is known of the new rows.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """
        return arrays["threshold"]


@dataclass(frozen=True)
class RankCut(Cut):
    """Takes the k-th smallest of n scores as threshold for every row; k > n gives infinite intervals."""

    counts: ClassVar[str] = "rows"
    """What there are n of."""

    @abstractmethod
    def rank(self, level: Fraction, n: int) -> int:
        """Return k.

        Parameters
        ----------
        level : float or Fraction
            The confidence level.
        n : int
            The number of calibration rows.
        """

    @abstractmethod
    def promise(self, **numbers: Any) -> Promise:
        """Return the promise, from the fields of a ``RankPromise``.

        Parameters
        ----------
        **numbers : keywords
            The fields of a ``RankPromise``.
        """

    def count(self, scores: Array, context: Context) -> int:
        """Return n: the number of rows.

        Parameters
        ----------
        scores : array of shape (n,)
            The scores of the calibration rows.
        context : Context
            What else is known of the rows.
        """
        return len(scores)

    def threshold(self, scores: Array, context: Context, level: Fraction, k: int) -> float:
        """Return the k-th smallest score.

        Parameters
        ----------
        scores : array of shape (n,)
            The scores of the calibration rows.
        context : Context
            What else is known of the rows.
        level : float or Fraction
            The confidence level.
        k : int
            The rank of the score that becomes the threshold.
        """
        return order_statistic(scores, k)

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the threshold of each level, and the promise."""
        n = self.count(scores, context)
        ranks = tuple(self.rank(level, n) for level in levels.values)
        pairs = zip(levels.values, ranks, strict=True)
        thresholds = np.array([self.threshold(scores, context, level, k) for level, k in pairs])
        return self.concluded(levels, ranks, thresholds, n, Joined(scores), chosen_after)

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the threshold of each level, and the promise, from scores that need not meet."""
        n = int(counted.number[0])
        ranks = tuple(self.rank(level, n) for level in levels.values)
        thresholds = counted.smallest(np.array([ranks]))[0]
        return self.concluded(levels, ranks, thresholds, n, counted, chosen_after)

    def concluded(
        self,
        levels: Levels,
        ranks: tuple[int, ...],
        thresholds: Array,
        n: int,
        counted: Counted,
        chosen_after: bool,
    ) -> Calibration:
        """Return what follows from the ranks and thresholds of each level.

        Parameters
        ----------
        levels : Levels
            The confidence levels, as exact fractions.
        ranks : tuple of int
            The rank at each level.
        thresholds : array of shape (L,)
            The threshold at each level.
        n : int
            The number of calibration rows, or of what they belong to.
        counted : Counted
            The scores of the calibration rows.
        chosen_after : bool
            Whether the levels were chosen after calibration.
        """
        remarks = [
            Remark(partial(self._too_few, level, n)) for level, k in zip(levels.values, ranks, strict=True) if k > n
        ]
        if any(k <= n and threshold == np.inf for k, threshold in zip(ranks, thresholds, strict=True)):
            count = int(counted.infinite().sum())
            why = (
                f"{count:,} of {counted.n:,} calibration rows have a prediction that is not finite, or lie on a side "
                "of the interval that has no width. That is more than this level allows. Check the model's predictions."
            )
            remarks.append(Remark(why, DegenerateBandWarning))
        promise = self.promise(
            confidence_level=levels.floats,
            n_calibration=n,
            rank=ranks,
            whole_line=tuple(bool(infinite) for infinite in np.isinf(thresholds)),
            chosen_after=chosen_after,
        )
        return Calibration({"threshold": thresholds}, promise, tuple(remarks))

    def _too_few(self, level: Fraction, n: int) -> str:
        return (
            f"{level_name(float(level))} intervals with this guarantee need at least "
            f"{self.rows_needed(level):,} calibration {self.counts}, but there {'is' if n == 1 else 'are'} {n:,}. Add "
            f"calibration {self.counts} or choose a lower confidence level."
        )

    def rows_needed(self, level: Fraction) -> int:
        """Return the fewest rows for which k <= n.

        Parameters
        ----------
        level : Fraction
            The confidence level.
        """
        high = 1
        while self.rank(level, high) > high and high < 2**50:  # beyond, floating point cannot tell neighbours apart
            high *= 2
        return bisect_left(range(high), 0, key=lambda n: -int(self.rank(level, n) > n))


@dataclass(frozen=True)
class MarginalCut(RankCut):
    """Split conformal: k = ceil(level (n + 1))."""

    word = "marginal"

    def rank(self, level: Fraction, n: int) -> int:
        """Return k."""
        return marginal_rank(level, n)

    def promise(self, **numbers: Any) -> MarginalPromise:
        """Return the promise on average."""
        return MarginalPromise(**numbers)

    def for_entities(self) -> Cut:
        """Return the cut that lets the rows of an entity share one weight."""
        return SharedCut()


@dataclass(frozen=True)
class SharedCut(MarginalCut):
    """Hierarchical conformal prediction: the rows of each of K entities share one weight (Lee, Barber & Willett 2023).

    The threshold is the level-quantile of sum_k sum_i delta(score_ki) / ((K + 1) N_k) + delta(inf) / (K + 1). A new row
    of a new entity is inside with probability at least the level, whatever the dependence within entities.
    """

    uses = frozenset({"entity"})
    counts = "entities"

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the thresholds; where the rows of each entity score alike, as repeated rows do, those of one each."""
        every, number = np.unique(context.entity, return_inverse=True)
        highest, lowest = np.full(len(every), -np.inf), np.full(len(every), np.inf)
        np.maximum.at(highest, number, scores)
        np.minimum.at(lowest, number, scores)
        if np.isclose(lowest, highest, rtol=SAME, atol=0).all():
            return MarginalCut().calibrate(highest, Context(), levels, chosen_after)
        return super().calibrate(scores, context, levels, chosen_after)

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same from scores of entities that need not meet."""
        if not isinstance(counted, CountedAt):
            return Cut.calibrate_counted(self, counted, levels, chosen_after)
        own: SharedFound = counted.at(levels)
        cut, n = (MarginalCut(), own.entities) if own.are_alike else (self, counted.n)
        if len(own.thresholds) != len(levels):
            raise ValueError("There must be a threshold for each level. Calibrate again.")
        ranks = tuple(self.rank(level, own.entities) for level in levels.values)
        none = np.empty((1, 0), dtype=np.int64)
        known = Known(n, np.array([n]), np.array([own.infinite]), none, np.empty((1, 0)))
        return cut.concluded(levels, ranks, own.thresholds, own.entities, known, chosen_after)

    def promise(self, **numbers: Any) -> MarginalPromise:
        """Return the promise on average, of entities that may be inside in part."""
        return MarginalPromise(**numbers, shared=True)

    def count(self, scores: Array, context: Context) -> int:
        """Return K: the number of entities."""
        return len(np.unique(context.entity))

    def threshold(self, scores: Array, context: Context, level: Fraction, k: int) -> float:
        """Return the least score at which the weights reach level (K + 1)."""
        return shared_order_statistic(scores, context.entity, level * (self.count(scores, context) + 1))


@dataclass(frozen=True)
class PacCut(RankCut):
    """The least k for which coverage given the data is at least the level, with probability 1 - delta.

    With ``joint`` that holds for all levels at once, those that are asked for after calibration too.

    Parameters
    ----------
    delta : float, default 0.1
        How often the promise may fail over possible calibration sets.
    joint : bool, default False
        Whether a "pac" guarantee holds for all levels at once. Set it if you choose a level after looking at
        the intervals.
    """

    word = "pac"
    delta: float = DELTA
    joint: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, found {self.delta}.")

    def rank(self, level: Fraction, n: int) -> int:
        """Return k."""
        return (simultaneous_rank if self.joint else pac_rank)(level, n, self.delta)

    def promise(self, **numbers: Any) -> PacPromise:
        """Return the promise given the data."""
        return PacPromise(**numbers, delta=self.delta, joint=bool(self.joint))
