"""Recalibrated distributions (Kuleshov, Fenner & Ermon, 2018): the rule of bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Levels
from guardband.calibration.rule import Array, Calibration, OnInsufficient, Rule, picked_ends

REASON = "a recalibrated distribution meets its level only as the number of calibration rows grows"


@dataclass(frozen=True)
class Recalibration(Rule):
    """Takes the quantiles of the distribution R(F(y)), F the network's Gaussian and R learnt on D2.

    R is the isotonic regression of the share of rows with F(y_j) <= F(y_i) on F(y_i) (their Algorithm 1). These
    points increase already, so that R passes through them: it is the empirical distribution function of the
    F(y_i), and the q-quantile of R(F) lies where the q n-th smallest of them does, interpolated between
    neighbours. It is kept in units of deviations, z = (y - mean) / deviation, in which F is increasing.
    Bands are mean - deviation, mean, mean + deviation. The point is the recalibrated median.
    """

    method: str
    levels: Levels
    on_insufficient: OnInsufficient = "inf"

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return how many deviations y lies above the mean, ``(1, n, 3), (n,) -> (n,)``."""
        mean, deviation = bands[0, :, 1], (bands[0, :, 2] - bands[0, :, 0]) / 2
        with np.errstate(all="ignore"):
            z = np.where(y == mean, 0.0, (y - mean) / deviation)
        largest = np.finfo(np.float64).max
        kept: Array = np.clip(z[np.isfinite(bands[0]).all(axis=1)], -largest, largest)
        return kept

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the distances, sorted."""
        return np.sort(np.concatenate(list(statistics)))

    def calibrate(self, summary: Array) -> Calibration:
        """Return lower end, median and upper end of each level in deviations, ``(L, 3)``, and the certificate."""
        n = len(summary)
        if not n:
            raise ValueError(f"{self.method} needs calibration rows with finite bands, found none.")
        sides = np.array([[(1 - float(level)) / 2, 0.5, (1 + float(level)) / 2] for level in self.levels.values])
        setting = np.interp(sides, np.arange(1, n + 1) / n, summary)
        return Calibration(setting, Certificate.of_nothing(self.method, self.levels.confidence_level, n, REASON))

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the quantiles, ``(1, n, 3), (L, 3) -> (n, L), (n,), (n, L)``."""
        mean, deviation = bands[0, :, 1], (bands[0, :, 2] - bands[0, :, 0]) / 2
        # entry by entry: torch would take the precision of an array, but takes that of the bands from a number
        quantiles = [xp.stack([mean + deviation * side for side in own], -1) for own in setting]
        return picked_ends(xp.stack(quantiles), xp)

    def at(self, levels: Levels) -> Recalibration:
        """Return the rule for other levels: a distribution has them all."""
        return replace(self, levels=levels)
