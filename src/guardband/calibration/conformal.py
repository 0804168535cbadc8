"""Split conformal: the interval of all responses whose score is no larger than most of D2 (paper, Theorem 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Levels
from guardband.bands.ranks import marginal_rank, order_statistic, pac_rank
from guardband.calibration.rule import Array, Calibration, OnInsufficient, Rule
from guardband.calibration.score import Scaled, Score
from guardband.exceptions import DegenerateBandWarning
from guardband.planning import marginal_rows, pac_rows

Guarantee = Literal["marginal", "pac"]


@dataclass(frozen=True)
class SplitConformal(Rule):
    """Takes the k-th smallest score of the calibration rows as threshold for every new row.

    ``guarantee="marginal"`` takes k = ceil(level (n + 1)); ``"pac"`` the least k for which coverage given the
    data is at least the level with probability 1 - delta, or 1 - delta / ``shares`` where several levels are
    to hold at once. k > n gives the whole line.
    """

    method: str
    levels: Levels
    guarantee: Guarantee = "marginal"
    delta: float = 0.1
    shares: int = 1
    on_insufficient: OnInsufficient = "inf"
    chosen_after: bool = False
    score: Score = field(default_factory=Scaled)

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return the score of each row, ``(1, n, 3), (n,) -> (n,)``."""
        return self.score.of(bands[0], y)

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the scores."""
        return np.concatenate(list(statistics))

    def calibrate(self, summary: Array) -> Calibration:
        """Return the threshold of each level and the certificate."""
        n = len(summary)
        ranks = tuple(self._rank(i, n) for i in range(len(self.levels)))
        thresholds = np.array([order_statistic(summary, k) for k in ranks])
        if any(k <= n and threshold == np.inf for k, threshold in zip(ranks, thresholds, strict=True)):
            self.whole_line(
                f"{int(np.isinf(summary).sum())} of {n} calibration rows lie beyond a side of no width or have a band "
                "that is not finite, more than the level leaves out.",
                DegenerateBandWarning,
            )
        certificate = Certificate(
            kind=self.guarantee,
            method=self.method,
            confidence_level=self.levels.confidence_level,
            n_calibration=n,
            rank=self.levels.unpack(ranks),
            delta=self.delta if self.guarantee == "pac" else None,
            joint=self.shares > 1,
            whole_line=self.levels.unpack(tuple(bool(np.isinf(threshold)) for threshold in thresholds)),
            chosen_after=self.chosen_after,
        )
        return Calibration(thresholds, certificate)

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the intervals, ``(1, n, 3), (L,) -> (n, L), (n,), (n, L)``."""
        both = [self.score.interval(bands[0], setting[i], xp) for i in range(len(self.levels))]
        return xp.stack([low for low, _ in both], -1), bands[0, :, 1], xp.stack([high for _, high in both], -1)

    def at(self, levels: Levels) -> SplitConformal:
        """Return the rule for other levels, marked as chosen after calibration unless they were asked for before."""
        return replace(self, levels=levels, chosen_after=not self.levels.include(levels))

    def _rank(self, i: int, n: int) -> int:
        level = self.levels.values[i]
        if self.guarantee == "marginal":
            k, needed = marginal_rank(level, n), marginal_rows(level)
        else:
            delta = self.delta / self.shares
            k, needed = pac_rank(level, n, delta), pac_rows(level, delta)
        if k > n:
            self.whole_line(
                f"A {float(level):g} interval with guarantee {self.guarantee!r} needs at least {needed} calibration "
                f"rows, found {n}."
            )
        return k
