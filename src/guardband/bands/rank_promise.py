"""What follows from a rank that was fixed beforehand: on average over calibration rows, or given those at hand."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import (
    DELTA,
    DISTINCT_ROW,
    EXCHANGEABLE,
    INDEPENDENT,
    Promise,
    infinite_in_words,
    joined,
    levels_in_words,
)
from guardband.bands.ranks import (
    average_coverage,
    coverage_bound,
    shared_coverage_bound,
    shared_simultaneous_bound,
    simultaneous_bound,
)
from guardband.words import at_least, confidence_name, level_name

ON_AVERAGE = "on average over possible calibration sets"
SAME_SOURCE = " from the same source"
OTHER_SOURCE = "Coverage for rows from another source, or from a later time if the data have changed."


@dataclass(frozen=True, kw_only=True)
class RankPromise(Promise):
    """What follows from a rank fixed beforehand: coverage given the data is Beta(rank, n + 1 - rank), or larger.

    ``rank`` is the number of calibration rows that the interval was asked to contain; it exceeds ``n_calibration``
    where there are too few rows, and the interval is infinite. ``joint`` says that all levels hold at once, and
    ``chosen_after`` that the level was chosen after calibration. ``extended`` intervals may hold more than what scores
    no more than their threshold: their coverage may be larger. A subclass says whether the level is promised
    ``on_average``, or, with probability 1 - ``delta``, of new rows given the data.

    Parameters
    ----------
    joint : bool, default False
        Whether the promise holds for all levels at once.
    chosen_after : bool, default False
        Whether the levels were chosen after calibration.
    extended : bool, default False
        Whether intervals may contain more than the score asks for; coverage is then larger.
    targets : int, default 1
        How many targets the promise is about. All of them lie inside at once.
    shared_by : int, default 1
        How many targets share the calibration, if the promise is that of one of them alone.
    """

    rank: tuple[int, ...]
    joint: bool = False
    chosen_after: bool = False
    extended: bool = False
    targets: int = 1
    shared_by: int = 1

    @property
    @abstractmethod
    def on_average(self) -> bool:
        """Whether the level holds on average over calibration rows, not given the ones at hand."""

    def promised(self) -> tuple[float, ...]:
        """Return what is promised of new rows given the data, unless it is on average: the level."""
        return self.confidence_level

    def law(self, i: int) -> Law:
        """Return the law of the number of covered rows at a level.

        Parameters
        ----------
        i : int
            The position of the level.
        """
        return Law((self.rank[i], self.n_calibration), open=self.extended)

    def widened(self) -> RankPromise:
        """Return the promise for extended intervals."""
        return replace(self, extended=True)

    def of_targets(self, targets: int) -> RankPromise:
        """Return the promise for several targets that lie inside at once.

        Parameters
        ----------
        targets : int
            How many targets there are.
        """
        return replace(self, targets=targets)

    def of_target(self, j: int) -> RankPromise:
        """Return the promise of one target: it lies inside at least as often as all of them."""
        return self if self.targets == 1 else replace(self, targets=1, shared_by=self.targets).widened()

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON; that there is one target is not said."""
        counts = ("targets", "shared_by")
        return {name: value for name, value in super().to_dict().items() if name not in counts or value != 1}

    @property
    def _are_inside(self) -> str:
        return "fall inside their intervals" if self.targets == 1 else f"have {self.all_targets} inside their intervals"

    @property
    def n_targets(self) -> int:
        """How many targets it is about."""
        return self.targets

    @property
    def all_targets(self) -> str:
        """All targets that must lie inside at once, in words; nothing for one target."""
        return "" if self.targets == 1 else _all_of(self.targets)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return rank / (n + 1), and 1 where there are too few rows.

        An infinite interval that comes from infinite scores does not change it: it is an average over calibration sets.
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
            f"Coverage: {least_in_words(self.expected_coverage())} is expected. For these calibration rows it is "
            f"{least_in_words(self.coverage_bound(self._delta))}, with {confidence} confidence.",
            f"Assumes: {self.assumptions()}",
            "Not promised: coverage for a single row or for a group, or for rows from another source or a later time "
            "if the data have changed.",
        ]
        note = self.note_on_levels()
        return [*out, f"Note: {note}"] if note else out

    def sentence(self) -> str:
        """Return the promise."""
        separately = ", for each level separately" if len(self.confidence_level) > 1 else ""
        inside = self._are_inside + (", for all levels at once" if self.joint else separately)
        levels = levels_in_words(self)
        if self.on_average:
            return f"Promise: {ON_AVERAGE}, at least {levels} of {self.new_rows()} {inside}."
        kept, asked = f"at least {levels}", ""
        if self.promised() != self.confidence_level:
            kept, asked = least_in_words(self.promised()), f" You asked for {levels}."
        confidence = confidence_name(self._delta)
        return f"Promise: with {confidence} confidence, {kept} of {self.new_rows('all ')} {inside}.{asked}"

    def how(self, method: str) -> str:
        """Return where the interval comes from.

        Parameters
        ----------
        method : str
            The name of the method.
        """
        inside = joined(f"{k:,}" for k in self.rank if k <= self.n_calibration)
        of_rows, together = f"{inside} of the {self.counted}", max(self.targets, self.shared_by)
        if together > 1:
            of_rows = f"{_all_of(together)} in {of_rows}"
        made = f"made the intervals just wide enough to contain {of_rows}."
        if self.shared_by > 1:
            made += " For this target alone, coverage is at least as high."
        if not inside:
            made = f"has too few calibration rows ({self.n_calibration:,}) for {levels_in_words(self)} intervals."
        how = f"How: {method} {made}{self.population(self.n_calibration)}{self.drawn()}{infinite_in_words(self)}"
        return how + self.chosen()

    def population(self, kept: int) -> str:
        """Return how calibration rows were chosen to stand for another population: they were not.

        Parameters
        ----------
        kept : int
            How many calibration rows there are in all.
        """
        return ""

    def chosen(self) -> str:
        """Return what a choice among candidates means for the promise: there was none."""
        return ""

    def drawn(self) -> str:
        """Return how many calibration rows there were if only one of each entity counts."""
        if self.entity is None:
            return ""
        if self.entity == DISTINCT_ROW:
            return f" Repeated rows count once ({self.n_rows:,} rows in all)."
        return f" guardband drew one row from each {self.entity} ({self.n_rows:,} rows in all)."

    def headline(self, method: str) -> str:
        """Return the promise of the first level in one or two plain sentences."""
        first, *others = self.confidence_level
        further = f" The same holds for {', '.join(map(level_name, others))}, each with its own intervals."
        if self.on_average:
            begun = f"O{ON_AVERAGE[1:]}, at least {level_name(first)} of {self.new_rows(source=SAME_SOURCE)}"
        else:
            share = least_in_words(self.promised()[:1])
            rows = self.new_rows("all ", SAME_SOURCE)
            begun = f"With {confidence_name(self._delta)} confidence, {share} of {rows}"
        return f"{begun} {self._are_inside}." + (further if others else "")

    def not_promised(self) -> list[str]:
        """Return what nobody can promise without further assumptions, and what a level on average does not say."""
        out = [
            "Coverage for a single row. The promise is about all rows together, and some rows are harder to predict.",
            "Coverage within a group. Some groups may be covered less often, and others more often.",
            OTHER_SOURCE,
            "Narrow intervals or accurate predictions.",
        ]
        if self.targets > 1:
            out.insert(0, "Exactly the level for one target. Each target alone is inside at least as often as all are.")
        if self.shared_by > 1:
            together = f"{_all_of(self.shared_by)} together"
            out.insert(0, f"Exactly the level for this target. It is inside at least as often as {together}.")
        if self.entity == DISTINCT_ROW:
            out.insert(2, "Coverage for new rows that repeat a row of the table.")
        elif self.entity is not None:
            out.insert(2, f"Coverage for further rows of any {self.entity} that is already in the table.")
            out.insert(3, f"A share of all rows. Each {self.entity} counts the same, however many rows it has.")
        if self.on_average:
            out.append(
                "The level for every calibration set. For the set used here, coverage is at least "
                f"{at_least(self.coverage_bound(DELTA)[0])} with 90% confidence, if the rows are independent."
            )
        else:
            unlucky = level_name(self._delta)
            out.append(f"Certainty. Up to {unlucky} of possible calibration sets give intervals that cover fewer rows.")
        return out

    @property
    def _delta(self) -> float:
        return DELTA if self.delta is None else self.delta

    def new_rows(self, every: str = "", source: str = "") -> str:
        """Return which new rows a share is of: entities count alike, however many rows they have.

        Parameters
        ----------
        every : str, default ""
            What to say before the rows, such as "all ".
        source : str, default ""
            What to say behind them, such as " from the same source".
        """
        if self.entity is None:
            return f"{every}new rows{source}"
        if self.entity == DISTINCT_ROW:
            return f"{every}new rows{source} that repeat no row of the table"
        return f"rows drawn at random, one from each new {self.entity}{source},"

    def assumptions(self) -> str:
        """Return what must hold of the rows, in sentences."""
        source, units = self.assumption, "rows"
        on_average = self.assumption == EXCHANGEABLE
        if self.entity not in (None, DISTINCT_ROW):
            order = "in no particular order (exchangeable)" if on_average else f"each independently {INDEPENDENT}"
            source = f"each new {self.entity} comes from the same source as those of the calibration rows, {order}"
            units = "entities"
        needs = f" The figure for these calibration rows also needs independent {units}." if on_average else ""
        return f"{source}.{needs}"

    def note_on_levels(self) -> str:
        """Return what becomes of a level that was chosen after calibration."""
        if not self.chosen_after:
            return ""
        return (
            "you chose this level after calibration. If you looked at intervals to choose it, only the figure for "
            "these calibration rows is valid. It holds for all levels at once."
        )


def least_in_words(shares: tuple[float, ...]) -> str:
    """Return what coverage is at least, for each level; of all rows it is no more than that."""
    return f"{'' if min(shares) >= 1 else 'at least '}{joined(map(at_least, shares))}"


@dataclass(frozen=True, kw_only=True)
class MarginalPromise(RankPromise):
    """On average over calibration sets, at least the level's share of new rows falls inside (Theorem 1).

    ``shared`` says that the rows of an entity share one weight, and that some entities are inside in part.

    Parameters
    ----------
    shared : bool, default False
        Whether the rows of an entity share one weight, and some entities are inside in part.
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
        if self.entity in (None, DISTINCT_ROW):
            return super().drawn()
        return f" All rows of one {self.entity} together count once ({self.n_rows:,} rows in all)."

    def _weight(self, i: int) -> int:
        return math.floor(Fraction(str(self.confidence_level[i])) * (self.n_calibration + 1))


@dataclass(frozen=True, kw_only=True)
class OverlapPromise(MarginalPromise):
    """The promise on average for one of several groups that overlap (Gibbs, Cherian & Candès 2023).

    Coverage is at least the level on average. Given the calibration rows no bound is known, and the law of the rank
    describes the count only approximately.
    """

    kind = "overlap"
    is_bound_known = False

    @property
    def guarantee(self) -> str:
        """On average, as for groups that do not overlap."""
        return MarginalPromise.kind

    def law(self, i: int) -> Law:
        """Return about what to expect of the count."""
        return Law((self.rank[i], self.n_calibration), open=True)

    def assumptions(self) -> str:
        """Return what must hold of the rows: there is no figure that needs more."""
        return super().assumptions().partition(" The figure for")[0]

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the level, and 1 where there are too few rows."""
        pairs = zip(self.confidence_level, self.rank, strict=True)
        return tuple(level if k <= self.n_calibration else 1.0 for level, k in pairs)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return 0, and 1 where there are too few rows: no other bound is known."""
        return tuple(0.0 if k <= self.n_calibration else 1.0 for k in self.rank)


@dataclass(frozen=True, kw_only=True)
class PacPromise(RankPromise):
    """With probability 1 - delta over calibration rows, at least the level's share of new rows falls inside.

    Of several ``candidates`` that were calibrated on the same rows, each with its share of delta, this holds for
    whichever is chosen, by these rows or otherwise.

    Parameters
    ----------
    candidates : int, default 1
        How many candidates this one was chosen from.
    """

    kind = "pac"
    on_average = False
    candidates: int = 1

    @property
    def chosen_from(self) -> int:
        """How many candidates this one was chosen from."""
        return self.candidates

    def chosen_among(self, candidates: int, delta: float) -> PacPromise:
        """Return the promise for one of several candidates that its own calibration rows chose."""
        return replace(self, candidates=candidates, delta=delta)

    def law(self, i: int) -> Law:
        """Return the law of the rank; for one of several candidates, what bounds the count from below."""
        law = super().law(i)
        return law if self.candidates == 1 else replace(law, candidates=self.candidates, open=True)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return what coverage is at least on average, whichever candidate is chosen."""
        return tuple(average_coverage(k, self.n_calibration, self.candidates) for k in self.rank)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the bound that holds for all candidates at once."""
        return super().coverage_bound(delta / self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON; that there was no choice is not said."""
        out = super().to_dict()
        return {name: value for name, value in out.items() if name != "candidates" or value != 1}

    def chosen(self) -> str:
        """Return that there were other candidates, and that the promise allows for the choice."""
        if self.candidates == 1:
            return ""
        return (
            f" This is one of {self.candidates:,} candidates, chosen by these calibration rows. The promise holds for "
            "whichever you choose."
        )

    def note_on_levels(self) -> str:
        """Return that other levels may be asked for, if all hold at once."""
        if not self.joint:
            return super().note_on_levels()
        return "the promise holds for all levels at once. You may ask for other levels later and choose among them."


def _all_of(targets: int) -> str:
    return "both targets" if targets == 2 else f"all {targets} targets"
