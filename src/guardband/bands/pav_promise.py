"""What follows from a network that was picked by its count on the calibration rows (paper, Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from guardband.bands.law import Law
from guardband.bands.promise import joined
from guardband.bands.rank_promise import RankPromise
from guardband.bands.ranks import average_coverage, coverage_bound

PavRule = Literal["paper", "fixed-sequence", "nested"]
PavAim = Literal["selection", "pac", "average"]


@dataclass(frozen=True, kw_only=True)
class PavPromise(RankPromise):
    """What follows from a network picked by its count on the calibration rows.

    ``tau`` is the level of the network that was picked (0 is the whole line), ``covered`` its count, ``candidates`` the
    size of the grid, ``rule`` how it was picked and ``aim`` what ``rank`` was set for. The K-free rules make coverage
    stochastically larger than Beta(rank, n + 1 - rank), the paper's own up to a factor K.
    """

    kind = "pav"
    rule: PavRule
    aim: PavAim
    candidates: int
    tau: tuple[float, ...]
    covered: tuple[int, ...]

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
        """Return the integral of ``ranks.average_coverage``, and 1 for the whole line."""
        return self._unless_whole(lambda i: average_coverage(self.rank[i], self.n_calibration, self._among))

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the bound of the rank; for the paper's rule Clopper-Pearson's of the chosen network at delta / K.

        The latter stays below 1 where all rows are covered, since the interval is finite.
        """
        if self.rule != "paper":
            return super().coverage_bound(delta)
        share = delta / self.candidates
        return self._unless_whole(lambda i: coverage_bound(share, self.covered[i], self.n_calibration))

    def how(self, method: str) -> str:
        """Return which network was picked, and by what count."""
        return (
            f"How: {method} picked tau = {joined(f'{t:g}' for t in self.tau)} from a grid of {self.candidates} by the "
            f"rule {self.rule!r}; it had to contain {joined(f'{k:,}' for k in self.rank)} of {self.n_calibration:,} "
            f"held-out rows and contained {joined(f'{s:,}' for s in self.covered)}{self.drawn()}."
            + (" tau = 0 is the whole line." if 0 in self.tau else "")
        )
