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
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.summary import Array
from guardband.exceptions import DegenerateBandWarning

SAME = 1e-4
"""Scores of equal rows may differ by so much, relative to their size: networks compute in single precision."""


class Cut(ABC):
    """Turns the scores of calibration rows into thresholds for new ones, with a promise."""

    word: ClassVar[str]
    """What ``guarantee=`` calls it."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """What it must know of a row: names of ``Context``."""

    @abstractmethod
    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return what the scores of the calibration rows, ``(n,)``, settle at each level.

        ``chosen_after`` says that the levels were chosen after calibration.
        """

    def for_entities(self) -> Cut | None:
        """Return the cut where rows of one entity may depend on each other; None: it takes one row of each."""
        return None

    def thresholds(self, arrays: dict[str, Any], context: Context, xp: Any = np) -> Any:
        """Return the largest score that is inside at each level, ``(L,)`` for all new rows or ``(n, L)`` for each."""
        return arrays["threshold"]


@dataclass(frozen=True)
class RankCut(Cut):
    """Takes the k-th smallest of n scores as threshold for every row; k > n is the whole line."""

    counts: ClassVar[str] = "rows"
    """What there are n of."""

    @abstractmethod
    def rank(self, level: Fraction, n: int) -> int:
        """Return k."""

    @abstractmethod
    def promise(self, **numbers: Any) -> Promise:
        """Return the promise, from the fields of a ``RankPromise``."""

    def count(self, scores: Array, context: Context) -> int:
        """Return n: the number of rows."""
        return len(scores)

    def threshold(self, scores: Array, context: Context, level: Fraction, k: int) -> float:
        """Return the k-th smallest score."""
        return order_statistic(scores, k)

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the threshold of each level, and the promise."""
        n = self.count(scores, context)
        ranks = tuple(self.rank(level, n) for level in levels.values)
        pairs = zip(levels.values, ranks, strict=True)
        thresholds = np.array([self.threshold(scores, context, level, k) for level, k in pairs])
        remarks = [
            Remark(partial(self._too_few, level, n)) for level, k in zip(levels.values, ranks, strict=True) if k > n
        ]
        if any(k <= n and threshold == np.inf for k, threshold in zip(ranks, thresholds, strict=True)):
            count = int(np.isinf(scores).sum())
            why = (
                f"{count} of {len(scores)} calibration rows lie beyond a side of no width or have a band that is not "
                "finite, more than the level leaves out."
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
            f"A {float(level)} interval with guarantee {self.word!r} needs at least {self._rows_needed(level)} "
            f"calibration {self.counts}, found {n}."
        )

    def _rows_needed(self, level: Fraction) -> int:
        """Return the fewest rows for which k <= n."""
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
