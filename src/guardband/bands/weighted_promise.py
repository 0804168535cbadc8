"""What follows from weights that say how the rows to predict differ from the calibration rows: known, or estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DISTINCT_ROW, Promise, joined, levels_in_words
from guardband.bands.rank_promise import ON_AVERAGE, least_in_words
from guardband.bands.ranks import marginal_rank
from guardband.words import level_name, number, percent

SHIFTED = (
    "the weights say how the share of each kind of row changes. For given inputs, true values behave as before. Rows "
    "are drawn independently"
)
"""Covariate shift, in words."""


@dataclass(frozen=True, kw_only=True)
class WeightedPromise(Promise):
    """On average over calibration sets, the level's share of rows of another population falls inside.

    Calibration rows count by their weights, and a new row by its own (Tibshirani, Barber, Candès & Ramdas 2019). A row
    with a large weight may have an infinite interval.

    Parameters
    ----------
    n_effective : float
        As many rows of equal weight would say as much: (sum of w)^2 / sum of w^2.
    largest_share : float
        The largest weight of a calibration row, as a share of all.
    most_weight : tuple of float
        At each level, rows with a larger weight have infinite intervals.
    infinite_share : tuple of float
        At each level, about what share of new rows that is, judged by the calibration rows.
    chosen_after : bool, default False
        Whether the levels were chosen after calibration.
    """

    kind = "weighted"
    assumption = SHIFTED
    is_bound_known = False
    is_testable = False
    n_effective: float
    largest_share: float
    most_weight: tuple[float, ...]
    infinite_share: tuple[float, ...]
    chosen_after: bool = False

    @property
    def guarantee(self) -> str:
        """On average, as without weights."""
        return "marginal"

    @property
    def possible_weight(self) -> float:
        """The largest weight that a new row can have."""
        return math.inf

    @property
    def some_infinite(self) -> tuple[bool, ...]:
        """At each level, whether some calibration rows would have infinite intervals."""
        return tuple(share > 0 for share in self.infinite_share)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the level, and 1 where all intervals are infinite."""
        pairs = zip(self.confidence_level, self.whole_line, strict=True)
        return tuple(1.0 if whole else level for level, whole in pairs)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return 1 - (1 - level) / delta, or 0: misses are 1 - level on average, and never negative (Markov)."""
        return tuple(max(0.0, 1 - (1 - share) / delta) for share in self.expected_coverage())

    def expectations(self) -> tuple[Expectation, ...]:
        """Return about what to expect, with as many rows as the weights leave; no count contradicts the promise.

        No law is known for one calibration set, so every count has the p-value 1.
        """
        anything, n, out = Law(share=0.0, open=True), math.floor(self.n_effective), []
        for level, whole in zip(self.confidence_level, self.whole_line, strict=True):
            rank = min(n, marginal_rank(Fraction(str(level)), n))
            out.append(Expectation(level, Law() if whole else Law((rank, n), open=True), (anything,), None))
        return tuple(out)

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return (
            "With weights, nobody knows how far one calibration set may fall below the average. For a promise that "
            'an audit can test, calibrate with guarantee="pac" and max_weight.'
        )

    def why_infinite(self, i: int) -> str:
        """Return why intervals are infinite at a level, and what to do.

        Parameters
        ----------
        i : int
            The position of the level.
        """
        return (
            f"the weights leave as much as {self.n_effective:,.1f} rows of equal weight, which is too few for "
            f"{level_name(self.confidence_level[i])} intervals. Add calibration rows that are like those to predict, "
            "or choose a lower confidence level."
        )

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        out = [
            f"Promise: {self._sentence(levels_in_words(self))}",
            f"How: {method} counted each calibration row by its weight. {self._effective()}{self._infinite()}",
            f"Coverage: {self._coverage()}",
            f"Assumes: {self.assumption}.",
            "Not promised: coverage for these calibration rows alone, for a single row or a group, or for rows whose "
            "weights are wrong.",
        ]
        if self.chosen_after:
            out.append("Note: you chose this level after calibration. If you looked at intervals, nothing is promised.")
        return out

    def headline(self, method: str) -> str:
        """Return the promise of the first level in one or two plain sentences."""
        words, others = self._sentence(level_name(self.confidence_level[0])), self.confidence_level[1:]
        further = f" The same holds for {', '.join(map(level_name, others))}, each with its own intervals."
        return words[0].upper() + words[1:] + (further if others else "")

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        return [
            "Coverage for a single row. The promise is about all rows together, and some rows are harder to predict.",
            "Coverage within a group. Some groups may be covered less often, and others more often.",
            "Coverage if the weights are wrong, or if rows with equal inputs now have other outcomes.",
            "The level for every calibration set. The promise is on average over such sets.",
            "Narrow intervals or accurate predictions.",
        ]

    # ------------------------------------------------------------------------------------ in words

    def _sentence(self, levels: str) -> str:
        """Return what is promised, without a capital at the beginning."""
        distinct = " that repeat no row of the table" if self.entity == DISTINCT_ROW else ""
        return (
            f"{ON_AVERAGE}, at least {levels} of new rows{distinct} fall inside their intervals. New rows are those "
            "that the weights describe."
        )

    def _effective(self) -> str:
        return (
            f"The {self.counted} say as much as {self.n_effective:,.0f} rows of equal weight. The largest weight is "
            f"{percent(self.largest_share)} of the total."
        )

    def _infinite(self) -> str:
        """Return which rows have infinite intervals."""
        if all(self.whole_line):
            return " The intervals are infinite."
        if not any(self.some_infinite):
            if min(self.most_weight) >= self.possible_weight:
                return ""
            return f" Rows with a weight above {joined(map(number, self.most_weight))} get infinite intervals."
        share = joined(percent(own) for own in self.infinite_share)
        return (
            f" Rows with a weight above {joined(map(number, self.most_weight))} get infinite intervals, which is about "
            f"{share} of new rows."
        )

    def _coverage(self) -> str:
        return f"{least_in_words(self.expected_coverage())} is expected."


@dataclass(frozen=True, kw_only=True)
class EstimatedPromise(WeightedPromise):
    """The same with weights that were estimated, from training rows and rows to predict: it is no longer exact.

    Coverage falls short of the level by at most half the mean error of the weights (Lei & Candès 2021).

    Parameters
    ----------
    n_training : int
        How many training rows the weights were learnt from.
    n_target : int
        How many rows to predict they were learnt from.
    largest_weight : float
        No weight is larger: a row counts at most this many times as much as before.
    clipped : int
        How many calibration rows had a larger one.
    unlike : int
        How many of the rows to predict are unlike anything that was calibrated.
    """

    kind = "estimated"
    n_training: int
    n_target: int
    largest_weight: float
    clipped: int
    unlike: int

    @property
    def guarantee(self) -> str:
        """A kind of its own: nothing is exact."""
        return self.kind

    @property
    def possible_weight(self) -> float:
        """The largest weight that a new row can have: weights are limited."""
        return self.largest_weight

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return 0, and 1 where all intervals are infinite: no other bound is known."""
        return tuple(float(whole) for whole in self.whole_line)

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return (
            "The weights were estimated, so nothing exact is promised. For an exact promise, calibrate on rows like "
            "these."
        )

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        out = super().lines(method)
        at = next(i for i, line in enumerate(out) if line.startswith("Coverage:"))
        return [*out[:at], f"Weights: {self._weights()}", *out[at:]]

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        return [
            "Exactly this level. The weights were estimated, and nobody knows their error.",
            *super().not_promised(),
        ]

    def _sentence(self, levels: str) -> str:
        distinct = " that repeat no row of the table" if self.entity == DISTINCT_ROW else ""
        return (
            f"{ON_AVERAGE}, about {levels} of new rows{distinct} fall inside their intervals. New rows are rows like "
            "those that you gave to for_target."
        )

    def _weights(self) -> str:
        clipped = "1 calibration row" if self.clipped == 1 else f"{self.clipped:,} calibration rows"
        out = (
            f"guardband estimated them from {self.n_training:,} training rows and {self.n_target:,} rows to predict. "
            f"It limited weights to {number(self.largest_weight)}, which changed {clipped}."
        )
        if self.unlike:
            verb = "is" if self.unlike == 1 else "are"
            out += f" {self.unlike:,} of the rows to predict {verb} unlike anything that was calibrated."
        return out

    def _coverage(self) -> str:
        return (
            f"{least_in_words(self.expected_coverage())} would be expected with exact weights. Estimated weights lower "
            "it by at most half of their mean error, which nobody knows."
        )
