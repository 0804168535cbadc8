"""What is promised of quantiles, of probabilities to lie above a value, and of rows that are selected for that."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DELTA, DISTINCT_ROW, EXCHANGEABLE, Promise
from guardband.bands.rank_promise import ON_AVERAGE
from guardband.bands.ranks import average_coverage, coverage_bound, marginal_rank, simultaneous_bound
from guardband.words import at_least, at_most, level_name

INSTEAD = "An audit judges intervals. Judge probabilities with gb.metrics.pit and gb.metrics.pit_band."


@dataclass(frozen=True, kw_only=True)
class _Placed(Promise):
    """What follows from places of calibration rows; no interval belongs to it, so an audit has nothing to judge."""

    assumption = EXCHANGEABLE
    is_testable = False
    not_about: ClassVar[tuple[str, ...]] = ()

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return INSTEAD

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the levels as a yardstick; no count of covered rows contradicts the promise."""
        out = [Law(share=level, open=True) for level in self.confidence_level]
        return tuple(Expectation(law.share, law, (Law(share=0.0, open=True),), None) for law in out)

    def lines(self, method: str) -> list[str]:
        """Return promise, how, figures, assumption, and what is not promised."""
        return [
            f"Promise: {self.sentence()}",
            f"How: {self.how(method)}",
            *self.figures(),
            f"Assumes: {self.assumption}{self._of_entities()}.",
            f"Not promised: {'; '.join(self.not_about)}.",
        ]

    def headline(self, method: str) -> str:
        """Return the promise in one sentence."""
        words = self.sentence()
        return words[0].upper() + words[1:]

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        return [f"{words[0].upper()}{words[1:]}." for words in self.not_about]

    @abstractmethod
    def sentence(self) -> str:
        """Return the promise."""

    def how(self, method: str) -> str:
        """Return where the numbers come from.

        Parameters
        ----------
        method : str
            The name of the method.
        """
        compared = f"{method} looked where the true values of {self.counted} lie within their predictions."
        return compared + self.drawn()

    def drawn(self) -> str:
        """Return how many calibration rows there were if only one of each entity counts."""
        if self.entity is None:
            return ""
        if self.entity == DISTINCT_ROW:
            return f" Repeated rows count once ({self.n_rows:,} rows in all)."
        return f" guardband drew one row from each {self.entity} ({self.n_rows:,} rows in all)."

    def new_rows(self) -> str:
        """Return which new rows a share is of."""
        if self.entity is None:
            return "new rows"
        if self.entity == DISTINCT_ROW:
            return "new rows that repeat no row of the table"
        return f"rows drawn at random, one from each new {self.entity},"

    def _of_entities(self) -> str:
        """Return that the same is assumed of what rows belong to."""
        return "" if self.entity in (None, DISTINCT_ROW) else f". The same holds of each {self.entity}"

    def figures(self) -> list[str]:
        """Return what else is known."""
        return []


@dataclass(frozen=True, kw_only=True)
class DistributionPromise(_Placed):
    """At every level p, at least p of new rows lie at or below their quantile, and at most p + 1 / (n + 1) of them.

    The first holds on average over calibration sets, the second too if no two rows have the same place. At the k-th
    place the share given the data is Beta(k, n + 1 - k). ``confidence_level`` holds some levels, as examples.

    Parameters
    ----------
    rank : tuple of int
        At each of these levels, which of the places is the quantile's.
    """

    kind = "distribution"
    not_about = (
        "the probabilities of a single row or of a group",
        "the shape between neighbouring quantiles, the mean or the tails beyond the last quantile",
        "rows from another source or a later time if the data have changed",
    )
    rank: tuple[int, ...]

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the share of new rows at or below each quantile, on average: rank / (n + 1)."""
        return tuple(average_coverage(k, self.n_calibration) for k in self.rank)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what that share is at least, for all levels at once, with probability 1 - delta."""
        return tuple(simultaneous_bound(delta, k, self.n_calibration) for k in self.rank)

    def sentence(self) -> str:
        """Return the promise."""
        return (
            f"{ON_AVERAGE}, at least the stated share of {self.new_rows()} lies at or below each quantile, such as "
            f"{level_name(self.confidence_level[-1])} for the quantile {self.confidence_level[-1]:g}. It is larger by "
            f"at most {at_most(100 / (self.n_calibration + 1))}% unless rows tie."
        )

    def how(self, method: str) -> str:
        """Return where the quantiles come from, and which are infinite."""
        n = self.n_calibration
        return f"{super().how(method)} Quantiles above {n:,} / {n + 1:,} are infinite."

    def figures(self) -> list[str]:
        """Return what holds of the calibration rows at hand, for some levels."""
        pairs = zip(self.confidence_level, self.coverage_bound(DELTA), strict=True)
        each = ", ".join(f"{level:g}: {at_least(bound)}" for level, bound in pairs)
        return [
            "For these calibration rows: at least this share lies at or below the quantile, for all levels "
            f"at once with 90% confidence if the rows are independent: {each}."
        ]


@dataclass(frozen=True, kw_only=True)
class ProbabilityPromise(_Placed):
    """For every u, at most u of new rows have a stated probability of 1 - u or more and yet lie on the other side.

    The stated probability is one minus a conformal p-value of the other side. ``confidence_level`` holds 1 - u for one
    u, as an example.

    Parameters
    ----------
    event : str
        What is probable, such as "above 300000".
    """

    kind = "probability"
    not_about = (
        "that 80% of the rows with a stated probability of 80% do so",
        "the probability of a single row or of a group",
        "rows from another source or a later time if the data have changed",
    )
    event: str

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the share of new rows that do not have such a probability wrongly, on average."""
        return self.confidence_level

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what that share is at least with probability 1 - delta, at this u: a quantile of a Beta law."""
        n = self.n_calibration
        ranks = (marginal_rank(Fraction(str(level)), n) for level in self.confidence_level)
        return tuple(coverage_bound(delta, k, n) for k in ranks)

    def sentence(self) -> str:
        """Return the promise."""
        level = self.confidence_level[0]
        return (
            f"{ON_AVERAGE}, at most {level_name(1 - level)} of {self.new_rows()} have a stated probability of "
            f"{level_name(level)} or more to lie {self.event} and do not. The same holds for every other share."
        )

    def figures(self) -> list[str]:
        """Return what holds of the calibration rows at hand."""
        most = math.ceil(1000 * (1 - self.coverage_bound(DELTA)[0])) / 1000
        return [
            f"For these calibration rows: that share is at most {level_name(most)}, with 90% confidence if the "
            "rows are independent."
        ]


@dataclass(frozen=True, kw_only=True)
class FdrPromise(_Placed):
    """Of the selected rows, on average at most a share q is not as selected for (Jin & Candès 2023).

    ``confidence_level`` is 1 - q.

    Parameters
    ----------
    event : str
        What rows were selected for, such as "above 300000".
    n_asked : int
        From how many rows.
    n_selected : int
        How many rows were selected.
    """

    kind = "fdr"
    assumption = (
        "calibration rows and the rows to select from come from the same source, in no particular order (exchangeable)"
    )
    is_bound_known = False
    not_about = (
        "that each selected row is so",
        "the share for these very rows: it holds on average over calibration sets and rows",
        "that rows which were not selected are not so",
        "rows from another source or a later time if the data have changed",
    )
    event: str
    n_asked: int
    n_selected: int

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the share of selected rows that are as selected for, on average."""
        return self.confidence_level

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return 1 - q / delta, or 0: the share of wrong rows is q on average, and never negative (Markov)."""
        return tuple(max(0.0, 1 - (1 - level) / delta) for level in self.confidence_level)

    def sentence(self) -> str:
        """Return the promise."""
        q = level_name(1 - self.confidence_level[0])
        return (
            f"on average over possible calibration sets and rows, at most {q} of the selected rows do not lie "
            f"{self.event}. guardband selected {self.n_selected:,} of {self.n_asked:,} rows."
        )

    def how(self, method: str) -> str:
        """Return where the selection comes from."""
        rule = "took the rows that the rule of Benjamini and Hochberg allows"
        return f"{method} compared each row with {self.counted}, and {rule}.{self.drawn()}"
