"""What follows from intervals by recent rows: the level as long as rows do not change, and nothing if they do."""

from __future__ import annotations

from dataclasses import dataclass

from guardband.bands.law import Expectation, Law
from guardband.bands.long_run_promise import MISSED_ROWS
from guardband.bands.parted_promise import LIES
from guardband.bands.promise import Promise, Side
from guardband.words import level_name, number, percent


@dataclass(frozen=True, kw_only=True)
class RecentPromise(Promise):
    """If rows do not change, a new row falls inside with the level's probability (Barber et al. 2023).

    If they change, coverage may be lower by up to the weighted sum of how far each past row differs in distribution
    from the new one, which nobody knows.

    Parameters
    ----------
    judged : int
        How many rows were judged.
    misses : int
        How many of them were misses.
    half_life : float
        After how many rows a past row counts half.
    of_side : {"both", "lower", "upper"}, default "both"
        Which bound it is about.
    """

    kind = "recent"
    assumption = "rows come from one source that does not change, in no particular order (exchangeable)"
    is_bound_known = False
    is_testable = False
    judged: int
    misses: int
    half_life: float
    of_side: Side = "both"

    @property
    def side(self) -> Side:
        """Which bound it is about, if intervals have only one."""
        return self.of_side

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the level, and 1 where intervals are infinite."""
        return (1.0 if self.whole_line[0] else self.confidence_level[0],)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return 1 - (1 - level) / delta, or 0: misses are 1 - level on average, and never negative (Markov)."""
        return tuple(max(0.0, 1 - (1 - share) / delta) for share in self.expected_coverage())

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the level as a yardstick; no law is known, so no count contradicts the promise."""
        level = self.confidence_level[0]
        return (Expectation(level, Law(share=level, open=True), (Law(share=0.0, open=True),), None),)

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do."""
        return (
            "Intervals by recent rows change with every row, and nobody knows the law of their coverage. For a promise "
            'in the long run, use the rule "aci".'
        )

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        count = f"of {self.judged:,} judged rows, {self.misses:,} were misses"
        share = f", which is {percent(self.misses / self.judged)}" if self.judged else ""
        return [
            f"Promise: {self._sentence()}",
            f"How: {method} counts past rows by their age. A row counts half after {number(self.half_life)} further "
            f"rows. It started from {self.counted}.",
            f"Coverage: {count}{share}.",
            f"Assumes: {self.assumption}.",
            "Not promised: coverage if rows change, neither now nor in the long run. For that, use the rule 'aci'.",
        ]

    def headline(self, method: str) -> str:
        """Return the promise in one sentence."""
        words = self._sentence()
        return words[0].upper() + words[1:]

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        return [
            'Any coverage if rows change, neither now nor in the long run. For that, use the rule "aci".',
            *MISSED_ROWS,
            "Narrow intervals or accurate predictions.",
        ]

    def _sentence(self) -> str:
        return (
            f"as long as rows do not change, at least {level_name(self.confidence_level[0])} of new rows "
            f"{LIES[self.side]}, on average."
        )
