"""The pav selection: one network of a grid of levels, picked on the calibration rows (paper, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from guardband.bands.certificate import Certificate, PavAim
from guardband.bands.levels import Levels
from guardband.bands.ranks import average_rank, pac_rank, selection_rank
from guardband.calibration.rule import Array, Calibration, OnInsufficient, Rule, picked_ends, refuse_other_levels
from guardband.planning import average_fewest_rows, corollary_epsilon, corollary_fewest_rows, pac_rows

PavRule = Literal["paper", "fixed-sequence", "nested"]
Average = Literal["corollary", "sharp"]

WHOLE_LINE = -1


@dataclass(frozen=True)
class PavSelection(Rule):
    """Picks the shortest bands of a grid that contain enough calibration rows.

    ``taus`` runs from the narrowest bands to the widest, and bands ``(K, n, 3)`` stand in that order.

    - ``rule="paper"``: the largest tau whose bands contain k rows. Any of K networks may be picked, so its
      bound is divided by K; for networks of any kind that factor is needed.
    - ``"fixed-sequence"``: from the widest on, until the first that fails (Learn then Test, Angelopoulos et
      al. 2021). The order is fixed beforehand, so that K does not enter.
    - ``"nested"``: bands are first widened to contain all narrower ones; the paper's scan and the fixed
      sequence then agree, and K does not enter.

    ``aim`` sets k: ``"selection"`` is the paper's ceil(level n); ``"pac"`` makes coverage given the data at
    least the level, with probability 1 - delta; ``"average"`` makes average coverage at least the level, by
    the paper's corollary or by its sharp form. If no bands contain enough, tau is 0: the whole line.
    """

    method: str
    levels: Levels
    taus: tuple[float, ...]
    rule: PavRule = "fixed-sequence"
    aim: PavAim = "selection"
    average: Average = "sharp"
    delta: float = 0.1
    shares: int = 1
    on_insufficient: OnInsufficient = "inf"

    @property
    def _chosen_among(self) -> int:
        return len(self.taus) if self.rule == "paper" else 1

    @property
    def _delta_each(self) -> float:
        return self.delta / self._chosen_among / self.shares

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return which bands contain y, ``(K, n, 3), (n,) -> (n, K)``; bands that are not finite do not."""
        bands = self._shaped(bands, np)
        inside = (bands[:, :, 0] <= y) & (y <= bands[:, :, 2]) & np.isfinite(bands).all(axis=2)
        return inside.T

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the number of rows, then how many of them each of the K bands contains."""
        total = sum(part.sum(axis=0, dtype=np.int64) for part in statistics)
        return np.concatenate([[sum(len(part) for part in statistics)], np.asarray(total)])

    def calibrate(self, summary: Array) -> Calibration:
        """Return which bands each level takes, and the certificate."""
        n, counts = int(summary[0]), summary[1:]
        ranks = tuple(self._rank(level, n) for level in self.levels.values)
        chosen = np.array([self._choose(counts, k) for k in ranks], dtype=np.int64)
        for level, k, j in zip(self.levels.values, ranks, chosen, strict=True):
            if j == WHOLE_LINE:
                self.whole_line(self._why_none(level, n, k, counts))
        taus = tuple(0.0 if j == WHOLE_LINE else self.taus[j] for j in chosen)
        covered = tuple(n if j == WHOLE_LINE else int(counts[j]) for j in chosen)
        certificate = Certificate(
            kind="pav",
            method=self.method,
            confidence_level=self.levels.confidence_level,
            n_calibration=n,
            rank=self.levels.unpack(ranks),
            delta=self.delta,
            joint=self.shares > 1,
            rule=self.rule,
            aim=self.aim,
            candidates=len(self.taus),
            tau=self.levels.unpack(taus),
            covered=self.levels.unpack(covered),
            whole_line=self.levels.unpack(tuple(bool(j == WHOLE_LINE) for j in chosen)),
        )
        return Calibration(chosen, certificate)

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the chosen bands, ``(K, n, 3), (L,) -> (n, L), (n,), (n, L)``."""
        return picked_ends(self._shaped(bands, xp)[setting.clip(0)], xp, (setting != WHOLE_LINE)[:, None])

    def at(self, levels: Levels) -> PavSelection:
        """Return the rule for some of its levels; others are refused, since pav's grid is tied to them."""
        refuse_other_levels(self.method, self.levels, levels)
        return replace(self, levels=levels)

    def _shaped(self, bands: Any, xp: Any) -> Any:
        if self.rule != "nested":
            return bands
        lower, upper = [bands[0, :, 0]], [bands[0, :, 2]]
        for own in bands[1:]:
            lower.append(xp.minimum(lower[-1], own[:, 0]))
            upper.append(xp.maximum(upper[-1], own[:, 2]))
        return xp.stack([xp.stack(lower), bands[:, :, 1], xp.stack(upper)], -1)

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
            return f"pav at level {float(level):g} needs at least {needed} calibration rows for this, found {n}."
        return (
            f"pav needs bands that contain {k} of {n} calibration rows; the widest, tau = {self.taus[-1]:g}, contain "
            f"{counts[-1]}. Add smaller taus or train longer, and calibrate on fresh rows."
        )
