"""The pav selection: one network of a grid of levels, picked on the calibration rows (paper, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from guardband.bands.pav_promise import PavAim, PavPromise, PavRule
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.promise import DELTA
from guardband.bands.ranks import average_rank, pac_rank, selection_rank
from guardband.calibration.rule import Calibration, Ends, Remark, Rule, chosen_ends
from guardband.calibration.summary import Array, Summary
from guardband.planning import average_fewest_rows, corollary_epsilon, corollary_fewest_rows, pac_rows
from guardband.words import level_name

Average = Literal["corollary", "sharp"]

WHOLE_LINE = -1


@dataclass(frozen=True)
class PavSelection(Rule):
    """Picks the shortest bands of a grid that contain enough calibration rows.

    ``taus`` runs from the narrowest intervals to the widest, and the candidates stand in that order.

    - ``rule="paper"``: the largest tau whose bands contain k rows. Any of K networks may be picked, so its
      bound is divided by K; for networks of any kind that factor is needed.
    - ``"fixed-sequence"``: from the widest on, until the first that fails (Learn then Test, Angelopoulos et
      al. 2021). The order is fixed beforehand, so that K does not enter.
    - ``"nested"``: bands are first widened to contain all narrower ones; the paper's scan and the fixed
      sequence then agree, and K does not enter.

    ``aim`` sets k: ``"selection"`` is the paper's ceil(level n); ``"pac"`` makes coverage given the data at
    least the level, with probability 1 - delta; ``"average"`` makes average coverage at least the level, by
    the paper's corollary or by its sharp form. If no bands contain enough, tau is 0: the whole line. With ``shares``,
    delta is divided among so many levels, which then hold at once.
    """

    takes = PredictedInterval
    taus: tuple[float, ...]
    rule: PavRule = "fixed-sequence"
    aim: PavAim = "selection"
    average: Average = "sharp"
    delta: float = DELTA
    shares: int = 1

    @property
    def candidates(self) -> int:
        """One for each tau."""
        return len(self.taus)

    @property
    def _chosen_among(self) -> int:
        return len(self.taus) if self.rule == "paper" else 1

    @property
    def _delta_each(self) -> float:
        return self.delta / self._chosen_among / self.shares

    def summarise(self, predicted: PredictedInterval, y: Array, context: Context) -> Summary:
        """Return how many rows each of the K intervals contains; those that are not finite contain none."""
        shaped = self._shaped(predicted, np)
        inside = (shaped.lower <= y) & (y <= shaped.upper) & shaped.finite()
        return Summary(len(y), {"covered": inside[0].sum(-1, dtype=np.int64)})

    def calibrate(self, summary: Summary) -> Calibration:
        """Return which interval each level takes, and the promise."""
        n, counts = summary.n, summary.totals["covered"]
        ranks = tuple(self._rank(level, n) for level in self.levels.values)
        chosen = np.array([self._choose(counts, k) for k in ranks], dtype=np.int64)
        promise = PavPromise(
            confidence_level=self.levels.floats,
            n_calibration=n,
            rank=ranks,
            delta=self.delta,
            joint=self.shares > 1,
            shares=self.shares,
            rule=self.rule,
            aim=self.aim,
            candidates=len(self.taus),
            tau=tuple(0.0 if j == WHOLE_LINE else self.taus[j] for j in chosen),
            covered=tuple(n if j == WHOLE_LINE else int(counts[j]) for j in chosen),
            whole_line=tuple(bool(j == WHOLE_LINE) for j in chosen),
        )
        remarks = [
            Remark(partial(self._why_none, level, n, k, counts))
            for level, k, whole in zip(self.levels.values, ranks, promise.whole_line, strict=True)
            if whole
        ]
        return Calibration({"chosen": chosen}, promise, tuple(remarks))

    def ends(self, predicted: PredictedInterval, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals that were chosen."""
        chosen = arrays["chosen"]
        return chosen_ends(self._shaped(predicted, xp), chosen.clip(0), xp, (chosen != WHOLE_LINE)[:, None])

    def _shaped(self, predicted: PredictedInterval, xp: Any) -> PredictedInterval:
        """Return the intervals, for the nested rule widened to contain all narrower ones."""
        if self.rule != "nested":
            return predicted
        lower, upper = [predicted.lower[:, 0]], [predicted.upper[:, 0]]
        for k in range(1, predicted.candidates):
            lower.append(xp.minimum(lower[-1], predicted.lower[:, k]))
            upper.append(xp.maximum(upper[-1], predicted.upper[:, k]))
        return PredictedInterval(xp.stack(lower, 1), predicted.point, xp.stack(upper, 1))

    def _rank(self, level: Fraction, n: int) -> int:
        if self.aim == "pac":
            return pac_rank(level, n, self._delta_each)
        if self.aim == "selection":
            return selection_rank(level, n)
        if self.average == "sharp":
            return average_rank(level, n, self._chosen_among)
        epsilon = corollary_epsilon(level, n, self._chosen_among)
        return n + 1 if epsilon is None else selection_rank(level + Fraction(epsilon), n)

    def _fewest_rows(self, level: Fraction) -> int:
        if self.aim == "pac":
            return pac_rows(level, self._delta_each)
        if self.average == "sharp":
            return average_fewest_rows(level, self._chosen_among)
        return corollary_fewest_rows(level, self._chosen_among)

    def _choose(self, counts: Array, k: int) -> int:
        passed = counts >= k
        if self.rule == "paper":
            return int(passed.argmax()) if passed.any() else WHOLE_LINE
        failed = np.flatnonzero(~passed)
        narrowest = int(failed[-1]) + 1 if len(failed) else 0
        return narrowest if narrowest < len(counts) else WHOLE_LINE

    def _why_none(self, level: Fraction, n: int, k: int, counts: Array) -> str:
        if k > n:
            needed = self._fewest_rows(level)
            return (
                f"pav at {level_name(float(level))} needs at least {needed:,} calibration rows, but there "
                f"{'is' if n == 1 else 'are'} {n:,}. Add calibration rows or choose a lower confidence level."
            )
        return (
            f"pav needs intervals that contain {k:,} of the {n:,} calibration rows. The widest ones, for tau = "
            f"{self.taus[-1]:g}, contain {counts[-1]:,}. Add smaller taus or train longer, and calibrate on fresh rows."
        )
