"""What follows from a network that was picked by its count on the calibration rows (paper, Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from guardband.bands.law import Law
from guardband.bands.promise import infinite_in_words, joined
from guardband.bands.rank_promise import RankPromise
from guardband.bands.ranks import average_coverage, coverage_bound

PavRule = Literal["paper", "fixed-sequence", "nested"]
PavAim = Literal["selection", "pac", "average"]


@dataclass(frozen=True, kw_only=True)
class PavPromise(RankPromise):
    """What follows from a network picked by its count on the calibration rows.

    ``tau`` is the level of the network that was picked (0 if none was, and the interval is infinite), ``covered`` its
    count, ``candidates`` the size of the grid, ``rule`` how it was picked and ``aim`` what ``rank`` was set for. The
    K-free rules make coverage stochastically larger than Beta(rank, n + 1 - rank), the paper's own up to a factor K.
    ``shares`` is the number of levels that hold at once.
    """

    kind = "pav"
    rule: PavRule
    aim: PavAim
    candidates: int
    tau: tuple[float, ...]
    covered: tuple[int, ...]
    shares: int = 1

    @property
    def on_average(self) -> bool:
        """Whether average coverage was asked for."""
        return self.aim == "average"

    @property
    def _among(self) -> int:
        return self.candidates if self.rule == "paper" else 1

    def promised(self) -> tuple[float, ...]:
        """Return the level if it was asked for, otherwise what follows for the network that was picked."""
        return self.coverage_bound(self._delta) if self.aim == "selection" else self.confidence_level

    def law(self, i: int) -> Law:
        """Return what bounds the number of covered rows from below."""
        return Law((self.rank[i], self.n_calibration), candidates=self._among, open=True)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the integral of ``ranks.average_coverage``."""
        return tuple(average_coverage(k, self.n_calibration, self._among) for k in self.rank)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the bound of the rank; for the paper's rule Clopper-Pearson's of the chosen network at delta / K.

        The latter holds for all networks at once, and so for all levels; the former is divided among joint levels. Both
        stay below 1 where all rows are covered, since the interval is finite. Where no network passed, it is 1.
        """
        if self.rule == "paper":
            share, counts = delta / self.candidates, self.covered
        else:
            share, counts = delta / self.shares, self.rank
        found = zip(counts, self.whole_line, strict=True)
        return tuple(1.0 if whole else coverage_bound(share, count, self.n_calibration) for count, whole in found)

    def how(self, method: str) -> str:
        """Return which network was picked, and by what count."""
        return (
            f"How: {method} chose the network for tau = {joined(f'{t:g}' for t in self.tau)} out of {self.candidates}, "
            f"by the rule {self.rule!r}. Its intervals had to contain {joined(f'{k:,}' for k in self.rank)} of the "
            f"{self.counted}. They contain {joined(f'{s:,}' for s in self.covered)}.{self.drawn()}"
            + (" tau = 0 means that no network was good enough." if 0 in self.tau else "")
            + infinite_in_words(self)
        )
