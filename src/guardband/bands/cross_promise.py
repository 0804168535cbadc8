"""What follows from cross-validation: every row calibrates, and less is proved than what is typical."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from guardband.bands.cross_bounds import minmax_missed, missed_given_data, plus_missed
from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DELTA, INDEPENDENT, Promise, infinite_in_words, joined, levels_in_words
from guardband.bands.rank_promise import least_in_words
from guardband.words import at_least, confidence_name, level_name

ON_AVERAGE = "on average over possible tables"
USEFUL = 0.1
"""A smaller share that is proved is of no use."""
USE_SPLIT = 'calibration="split" (--calibration split)'


@dataclass(frozen=True, kw_only=True)
class CrossPromise(Promise):
    """What intervals by cross-validation promise: a share that is proved, which is below the level.

    Parameters
    ----------
    rank : tuple of int
        At each level, the rank among the scores of all rows.
    fold_sizes : tuple of int
        How many rows each fold has.
    chosen_after : bool, default False
        Whether the levels were chosen after calibration.
    left_over : int, default 0
        How many further rows trained all networks and calibrated none, to make folds of equal size.
    """

    assumption = f"the rows of the table and new rows are independent draws from the same source {INDEPENDENT}"
    is_testable = False
    counts_rows_inside = False
    typical: ClassVar[str]
    """What to say before the level, of what is typical."""
    rank: tuple[int, ...]
    fold_sizes: tuple[int, ...]
    chosen_after: bool = False
    left_over: int = 0

    @abstractmethod
    def missed(self, k: int) -> float:
        """Return what is missed at most at a rank, on average over possible tables.

        Parameters
        ----------
        k : int
            The rank.
        """

    @abstractmethod
    def missed_here(self, k: int, delta: float) -> float:
        """Return what is missed at most given the rows at hand, with probability 1 - delta.

        Parameters
        ----------
        k : int
            The rank.
        delta : float
            How often the bound may fail over possible tables.
        """

    def expected_coverage(self) -> tuple[float, ...]:
        """Return what is proved of coverage, on average over possible tables."""
        return tuple(1 - self.missed(k) for k in self.rank)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what is proved given the rows at hand, for all levels at once: often little."""
        return tuple(1 - self.missed_here(k, delta) for k in self.rank)

    def unproved(self) -> tuple[float, ...]:
        """Return the levels at which nothing useful is proved, such as 50% with cv+."""
        pairs = zip(self.confidence_level, self.expected_coverage(), strict=True)
        return tuple(level for level, proved in pairs if proved < USEFUL)

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the level as a yardstick; no law is known, so no count contradicts the promise."""
        anything, pairs = Law(share=0.0, open=True), zip(self.confidence_level, self.whole_line, strict=True)
        return tuple(
            Expectation(level, Law() if whole else Law(share=level, open=True), (anything,), None)
            for level, whole in pairs
        )

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return (
            "With cross-validation, nobody knows how far the coverage of one table may fall below the average. For a "
            f"promise that an audit can test, fit with {USE_SPLIT}."
        )

    @property
    def counted(self) -> str:
        """How many calibration rows there are, and in how many folds."""
        return f"{super().counted} in {len(self.fold_sizes):,} folds"

    def lines(self, method: str) -> list[str]:
        """Return promise and what is typical, how, coverage given the rows, assumption, and what is not promised."""
        out = [
            f"Promise: {self._sentence(self.expected_coverage(), ' new rows')}{self._typical(levels_in_words(self))}",
            f"How: {method} used {self._rows()} for calibration, in {len(self.fold_sizes):,} folds. "
            f"Each row was predicted without its fold.{self._left_over()}{infinite_in_words(self)}",
            f"Coverage: for the rows at hand, it is {least_in_words(self.coverage_bound(DELTA))}, with "
            f"{confidence_name(DELTA)} confidence.",
            f"Assumes: {self.assumption}.",
            f"Not promised: {'' if self._is_level_proved else f'{self._level()} itself, '}coverage for a single row or "
            "for a group, or for rows from another source or a later time if the data have changed.",
        ]
        if self.chosen_after:
            out.append(
                "Note: you chose this level after calibration. If you looked at intervals to choose it, only the "
                "coverage for the rows at hand is proved. It holds for all levels at once."
            )
        return out

    def headline(self, method: str) -> str:
        """Return the promise of the first level in two plain sentences."""
        words = self._sentence(self.expected_coverage()[:1], " new rows from the same source")
        return f"O{words[1:]}{self._typical(level_name(self.confidence_level[0]), 1)}"

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        proved, here = (joined(map(at_least, own)) for own in (self.expected_coverage(), self.coverage_bound(DELTA)))
        level = f"The level itself. {levels_in_words(self)} is typical, and {proved} is proved."
        return [
            *([] if self._is_level_proved else [level]),
            f"A high coverage for this table. Only {here} is proved, with {confidence_name(DELTA)} confidence.",
            "Coverage for a single row. The promise is about all rows together, and some rows are harder to predict.",
            "Coverage within a group. Some groups may be covered less often, and others more often.",
            "Coverage for rows from another source, or from a later time if the data have changed.",
            "Narrow intervals or accurate predictions.",
        ]

    def _sentence(self, shares: Sequence[float], rows: str) -> str:
        return f"{ON_AVERAGE}, {least_in_words(tuple(shares))} of{rows} fall inside their intervals."

    def _level(self) -> str:
        return level_name(self.confidence_level[0]) if len(self.confidence_level) == 1 else "the level"

    @property
    def _is_level_proved(self) -> bool:
        """Whether as much as was asked for is proved, on average: with folds of one row, or of infinite intervals."""
        return all(
            proved >= level for proved, level in zip(self.expected_coverage(), self.confidence_level, strict=True)
        )

    def _typical(self, levels: str, count: int | None = None) -> str:
        """Return what is typical, of all levels or so many of them, and where nothing useful is proved."""
        if self._is_level_proved:
            return ""
        useless = [level for level in self.unproved() if level in self.confidence_level[:count]]
        at = "this level" if len(self.confidence_level) == 1 else joined(map(level_name, useless))
        nothing = f" Nothing useful is proved at {at}." if useless else ""
        return f" Typical is {self.typical} {levels}, which is what you asked for, but that is not proved.{nothing}"

    def _rows(self) -> str:
        rows = self.n_calibration
        return f"{rows:,} of the {rows + self.left_over:,} rows" if self.left_over else f"all {rows:,} rows"

    def _left_over(self) -> str:
        if not self.left_over:
            return ""
        return f" The other {'row' if self.left_over == 1 else f'{self.left_over:,}'} only trained."


@dataclass(frozen=True, kw_only=True)
class CvPlusPromise(CrossPromise):
    """At least 1 - 2 alpha, less a little, of new rows falls inside on average (Barber et al. 2021, Theorem 4)."""

    kind = "cv+"
    typical = "about"

    def missed(self, k: int) -> float:
        """Return what cv+ misses at most."""
        return plus_missed(k, self.fold_sizes)

    def missed_here(self, k: int, delta: float) -> float:
        """Return what cv+ misses at most given the rows at hand (Bian & Barber 2023)."""
        return missed_given_data(k, self.fold_sizes, delta, 2)


@dataclass(frozen=True, kw_only=True)
class CvMinmaxPromise(CrossPromise):
    """Intervals that contain those of cv+, for a larger share that is proved."""

    kind = "cv-minmax"
    typical = "at least"

    def missed(self, k: int) -> float:
        """Return what cv-minmax misses at most."""
        return minmax_missed(k, self.fold_sizes)

    def missed_here(self, k: int, delta: float) -> float:
        """Return what cv-minmax misses at most given the rows at hand."""
        return missed_given_data(k, self.fold_sizes, delta, 1)
