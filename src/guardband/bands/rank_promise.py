"""What follows from a rank that was fixed beforehand: on average over calibration rows, or given those at hand."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DELTA, DISTINCT_ROW, EXCHANGEABLE, Promise, joined, levels_in_words
from guardband.bands.ranks import (
    average_coverage,
    coverage_bound,
    shared_coverage_bound,
    shared_simultaneous_bound,
    simultaneous_bound,
)
from guardband.words import at_least, confidence_name, level_name


@dataclass(frozen=True, kw_only=True)
class RankPromise(Promise):
    """What follows from a rank fixed beforehand: coverage given the data is Beta(rank, n + 1 - rank), or larger.

    ``rank`` is the number of calibration rows that the interval was asked to contain; it exceeds ``n_calibration``
    where there are too few rows, and the interval is infinite. ``joint`` says that all levels hold at once, and
    ``chosen_after`` that the level was chosen after calibration. ``extended`` intervals may hold more than what scores
    no more than their threshold, so that coverage may be larger. A subclass says whether the level is promised
    ``on_average``, or, with probability 1 - ``delta``, of new rows given the data.
    """

    rank: tuple[int, ...]
    joint: bool = False
    chosen_after: bool = False
    extended: bool = False

    @property
    @abstractmethod
    def on_average(self) -> bool:
        """Whether the level holds on average over calibration rows, not given the ones at hand."""

    def promised(self) -> tuple[float, ...]:
        """Return what is promised of new rows given the data, unless it is on average: the level."""
        return self.confidence_level

    def law(self, i: int) -> Law:
        """Return the law of the number of covered rows at a level."""
        return Law((self.rank[i], self.n_calibration), open=self.extended)

    def widened(self) -> RankPromise:
        """Return the promise for extended intervals."""
        return replace(self, extended=True)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return rank / (n + 1), and 1 where there are too few rows.

        A whole line that comes from infinite scores does not change it: other calibration rows would have had others.
        """
        return tuple(average_coverage(k, self.n_calibration) for k in self.rank)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the delta-quantile of Beta(rank, n + 1 - rank), and 1 where there are too few rows; each level apart.

        For joint levels, and for one chosen after calibration, it is a bound that holds for all levels at once.
        """
        bound = simultaneous_bound if self.joint or self.chosen_after else coverage_bound
        return tuple(bound(delta, k, self.n_calibration) for k in self.rank)

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the laws of each level.

        On average: the law of the rank. Otherwise the promise is that coverage given the data is at least a share,
        but for a few calibration sets. Bin(m, share) alone would call these broken, and the law of the rank alone
        would call models broken that are at the share: the count is tested by both.
        """
        out = []
        for i, (level, whole) in enumerate(zip(self.confidence_level, self.whole_line, strict=True)):
            law, share = (Law(), 1.0) if whole else (self.law(i), None if self.on_average else self.promised()[i])
            tests = (law,) if whole or share is None else (law, Law(share=share))
            out.append(Expectation(level, law, tests, share))
        return tuple(out)

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        confidence = confidence_name(self._delta)
        out = [
            self.sentence(),
            self.how(method),
            f"Coverage: at least {joined(map(at_least, self.expected_coverage()))} expected; given these calibration "
            f"rows at least {joined(map(at_least, self.coverage_bound(self._delta)))}, with {confidence} "
            "confidence.",
            f"Assumes: {self._assumptions()}.",
            "Not promised: coverage for one particular x or group, nor for rows from elsewhere or later "
            "if the data have changed.",
        ]
        note = self._note_on_levels()
        return [*out, f"Note: {note}"] if note else out

    def sentence(self) -> str:
        """Return the promise."""
        apart = " (each level apart)" if len(self.confidence_level) > 1 else ""
        several = " (all levels at once)" if self.joint else apart
        levels = levels_in_words(self)
        if self.on_average:
            return (
                f"Promise: a new row{self._of_a_new()} falls inside its interval with probability at least "
                f"{levels}{several}, averaged over the draw of the calibration rows."
            )
        kept, asked = joined(map(at_least, self.promised())), ""
        if self.promised() == self.confidence_level:
            kept = levels
        else:
            asked = f", where {levels} was asked for"
        return (
            f"Promise: with probability at least {confidence_name(self._delta)} over the draw of the calibration "
            f"rows{several}, the intervals cover at least {kept} of {self._all_new()}{asked}."
        )

    def how(self, method: str) -> str:
        """Return where the interval comes from."""
        whole = " The interval is the whole line." if any(self.whole_line) else ""
        ranks = joined(f"{k:,}" for k in self.rank)
        return f"How: {method}, cut at rank {ranks} of {self.n_calibration:,} held-out scores{self.drawn()}.{whole}"

    def drawn(self) -> str:
        """Return how many calibration rows there were if only one of each entity counts."""
        return "" if self.entity is None else f", one row drawn from each {self.entity} ({self.n_rows:,} rows in all)"

    def headline(self, method: str) -> str:
        """Return the promise of the first level in one or two plain sentences."""
        first, *others = self.confidence_level
        further = f" The same holds for {', '.join(map(level_name, others))}, each with intervals of its own."
        if self.on_average:
            chance = level_name(first)
            said = (
                f"A new row{self._of_a_new()} from the same source falls inside its interval with probability at least "
                f"{chance}."
            )
        else:
            said = (
                f"With {confidence_name(self._delta)} confidence, at least "
                f"{at_least(self.promised()[0])} of {self._all_new()} from the same source fall inside their intervals."
            )
        return said + (further if others else "")

    def not_promised(self) -> list[str]:
        """Return what nobody can promise without further assumptions, and what a level on average does not say."""
        out = [
            "Coverage for one particular row: the share holds over all rows together, and for a given x it may be "
            "lower.",
            "Coverage within a group: some group may be covered less often, as others are covered more often.",
            "Coverage for rows from elsewhere or from later, if the data have changed: new rows must come from the "
            "source that the calibration rows came from.",
            "Short intervals, or good point predictions.",
        ]
        if self.entity is not None:
            out.insert(2, f"Coverage for a further row of a {self.entity} that the table holds already.")
            out.insert(3, f"The share of all rows: each {self.entity} counts the same, however many rows it has.")
        if self.on_average:
            out.append(
                "The level for each calibration set: it holds on average over them. Given the one at hand, coverage is "
                f"at least {at_least(self.coverage_bound(DELTA)[0])} with 90% confidence, if rows are independent."
            )
        return out

    @property
    def _delta(self) -> float:
        return DELTA if self.delta is None else self.delta

    def _of_a_new(self) -> str:
        """Return which new rows are meant."""
        if self.entity == DISTINCT_ROW:
            return " that repeats none of the table's"
        return "" if self.entity is None else f" of a new {self.entity}"

    def _all_new(self) -> str:
        """Return which new rows a share is of: entities count alike, however many rows they have."""
        if self.entity == DISTINCT_ROW:
            return "all new rows that repeat none of the table's"
        return "all new rows" if self.entity is None else f"rows drawn at random, one from each new {self.entity}"

    def _assumptions(self) -> str:
        if self.entity is not None:
            what = "exchangeable" if self.assumption == EXCHANGEABLE else "independent and identically distributed"
            return f"each {self.entity} of the calibration rows and each new one are {what}"
        if self.assumption != EXCHANGEABLE:
            return self.assumption
        return f"{EXCHANGEABLE}; for the bound given the calibration rows, independent and identically distributed"

    def _note_on_levels(self) -> str:
        """Return what becomes of a level that was chosen after calibration."""
        if not self.chosen_after:
            return ""
        return (
            "this level was chosen after calibration. If the choice was made by looking at the intervals, only the "
            "bound given the data, which holds for all levels at once, remains."
        )


@dataclass(frozen=True, kw_only=True)
class MarginalPromise(RankPromise):
    """A new row falls inside with at least the level's probability, averaged over calibration rows (Theorem 1).

    ``shared`` says that the rows of an entity share one weight, and that some entities are inside in part.
    """

    kind = "marginal"
    assumption = EXCHANGEABLE
    on_average = True
    shared: bool = False

    def law(self, i: int) -> Law:
        """Return the law of the rank; where entities are inside in part, what bounds the count from below.

        The interval then contains level (K + 1) of K entities, each by the share of its rows inside: see
        ``ranks.shared_coverage_bound``.
        """
        if not self.shared:
            return super().law(i)
        return Law((self._weight(i), self.n_calibration), candidates=math.e, open=True)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return rank / (n + 1), and the level itself where entities are inside in part."""
        if not self.shared:
            return super().expected_coverage()
        pairs = zip(self.confidence_level, self.rank, strict=True)
        return tuple(level if k <= self.n_calibration else 1.0 for level, k in pairs)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the bound of the rank; for shares the one that ``law`` gives, or one for all levels at once."""
        if not self.shared:
            return super().coverage_bound(delta)
        bound = shared_simultaneous_bound if self.chosen_after else shared_coverage_bound
        n = self.n_calibration
        return tuple(bound(delta, self._weight(i), n) if k <= n else 1.0 for i, k in enumerate(self.rank))

    def drawn(self) -> str:
        """Return how many rows there were in all: those of an entity share one weight."""
        return "" if self.entity is None else f", where the {self.n_rows:,} rows count as one for each {self.entity}"

    def _weight(self, i: int) -> int:
        return math.floor(Fraction(str(self.confidence_level[i])) * (self.n_calibration + 1))


@dataclass(frozen=True, kw_only=True)
class PacPromise(RankPromise):
    """With probability 1 - delta over calibration rows, at least the level's share of new rows falls inside."""

    kind = "pac"
    on_average = False

    def _note_on_levels(self) -> str:
        if not self.joint:
            return super()._note_on_levels()
        return "the promise holds for all levels at once. You may ask for other levels later, and choose among them."
