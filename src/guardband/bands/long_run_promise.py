"""What follows from an online rule: the share of misses in the long run, on any sequence of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from guardband.bands.law import Expectation, Law
from guardband.bands.parted_promise import LIES
from guardband.bands.promise import Promise, Side
from guardband.words import at_least, level_name, no_more_than, percent

MISSED_ROWS = [
    "Coverage of the next row, or of any stretch of rows. Some stretches may be covered less often.",
    "Coverage within a group. Some groups may be covered less often, and others more often.",
]


@dataclass(frozen=True, kw_only=True)
class LongRunPromise(Promise):
    """On any sequence of rows, the share of misses among the rows judged so far lies within fixed limits.

    The limits shrink as rows are judged. They hold for certain: nothing is assumed of the rows, and so nothing is
    promised of a single row, however likely. A miss is counted by its score; intervals contain all rows that are none.

    Parameters
    ----------
    rule : str
        The word of the online rule.
    judged : int
        How many rows were judged.
    misses : int
        How many of them were misses.
    most_waiting : int
        How many rows waited for their true values at the same time, at most.
    most_short : float
        By how many rows misses can fall short of their share, at most.
    most_over : float
        By how many rows misses can exceed their share, at most.
    of_side : {"both", "lower", "upper"}, default "both"
        Which bound it is about.
    """

    kind = "long-run"
    assumption = "nothing about the rows. Only rows whose true value has arrived are counted"
    is_bound_known = False
    is_testable = False
    is_of_new_rows = False
    rule: str
    judged: int
    misses: int
    most_waiting: int
    most_short: float
    most_over: float
    of_side: Side = "both"

    @property
    def side(self) -> Side:
        """Which bound it is about, if intervals have only one."""
        return self.of_side

    @property
    def counted(self) -> str:
        """How many calibration rows it started from, and how many rows were judged, in words."""
        return f"{super().counted}, {self.judged:,} judged row{'' if self.judged == 1 else 's'}"

    def miss_limits(self) -> tuple[float, float]:
        """Return the least and the largest share of misses among the judged rows that there can be."""
        alpha, n = float(1 - Fraction(str(self.confidence_level[0]))), max(1, self.judged)
        return max(0.0, alpha - self.most_short / n), min(1.0, alpha + self.most_over / n)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the least coverage that the judged rows can have, on any sequence."""
        return (1 - self.miss_limits()[1] if self.judged else 0.0,)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the same: it holds for certain, whatever delta is."""
        return self.expected_coverage()

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the level as a yardstick; no count of other rows contradicts the promise."""
        level = self.confidence_level[0]
        return (Expectation(level, Law(share=level, open=True), (Law(share=0.0, open=True),), None),)

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return (
            "An online rule promises coverage of the rows that it judged itself, in the long run, and no coverage of "
            "other rows. Look at its certificate after each update."
        )

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        return [
            f"Promise: {self._sentence()}",
            f"How: the rule {self.rule!r} widens the intervals of {method} after a miss, and narrows them after other "
            f"rows. It started from {super().counted}.{self._waiting()}",
            f"Coverage: {self._coverage()}",
            f"Assumes: {self.assumption}.",
            "Not promised: coverage of the next row, of any stretch of rows or of a group, or narrow intervals.",
        ]

    def headline(self, method: str) -> str:
        """Return the promise in one sentence."""
        words = self._sentence()
        return words[0].upper() + words[1:]

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        return [
            *MISSED_ROWS,
            "Coverage of rows whose true value never arrives.",
            "Narrow intervals or accurate predictions.",
        ]

    def _sentence(self) -> str:
        return (
            f"in the long run, at least {level_name(self.confidence_level[0])} of rows {LIES[self.side]}, whatever "
            "rows come and however they change."
        )

    def _waiting(self) -> str:
        if self.most_waiting == 1:
            return ""
        return f" Up to {self.most_waiting:,} rows waited for their true values at once, which weakens the limits."

    def _coverage(self) -> str:
        if not self.judged:
            return "no row was judged yet, so nothing follows yet."
        least, most = self.miss_limits()
        return (
            f"of {self.judged:,} judged rows, {self.misses:,} were misses, which is "
            f"{percent(self.misses / self.judged)}. So far this share cannot be below {at_least(least)} or above "
            f"{no_more_than(most)}, so coverage of the judged rows is at least {at_least(1 - most)}."
        )
