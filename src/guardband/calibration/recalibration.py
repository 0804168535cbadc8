"""Recalibrated distributions (Kuleshov, Fenner & Ermon, 2018): the rule of bayes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
        """Return how many deviations y lies above the mean, NaN without a finite band, ``(1, n, 3), (n,) -> (n,)``."""
        mean, deviation = bands[0, :, 1], (bands[0, :, 2] - bands[0, :, 0]) / 2
        with np.errstate(all="ignore"):
            z = np.where(y == mean, 0.0, (y - mean) / deviation)
        return np.where(np.isfinite(bands[0]).all(axis=1), z, np.nan)

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the distances, sorted, NaN last."""
        return np.sort(np.concatenate(list(statistics)))

    def calibrate(self, summary: Array) -> Calibration:
        """Return lower end, median and upper end of each level in deviations, ``(L, 3)``, and the certificate."""
        usable = summary[~np.isnan(summary)]
        sides = [[(1 - level) / 2, Fraction(1, 2), (1 + level) / 2] for level in self.levels.values]
        setting = np.array([[_quantile(usable, side) for side in own] for own in sides])
        whole = tuple(bool(np.isinf(own[[0, 2]]).any()) for own in setting)
        if any(whole):
            needed = math.ceil(2 / min(self.levels.alphas))
            self.whole_line(f"{self.method} needs at least {needed} calibration rows that tell, found {len(usable)}.")
        certificate = Certificate.of_nothing(self.method, self.levels.confidence_level, len(summary), REASON)
        return Calibration(setting, replace(certificate, whole_line=self.levels.unpack(whole)))

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the quantiles, ``(1, n, 3), (L, 3) -> (n, L), (n,), (n, L)``."""
        mean, deviation = bands[0, :, 1], (bands[0, :, 2] - bands[0, :, 0]) / 2
        # entry by entry: torch would take the precision of an array, but takes that of the bands from a number
        quantiles = [xp.stack([mean + deviation * side for side in own], -1) for own in setting]
        return picked_ends(xp.stack(quantiles), xp)

    def at(self, levels: Levels) -> Recalibration:
        """Return the rule for other levels: a distribution has them all."""
        return replace(self, levels=levels)


def _quantile(ordered: Array, level: Fraction) -> float:
    """Return the quantile, interpolated between the neighbours i/n and (i+1)/n; infinite beyond the first or last.

    Nothing is interpolated towards an infinite distance, that of a band without width.
    """
    n = len(ordered)
    place = level * n - 1
    below = math.floor(place)
    if n == 0 or below < 0:
        return -math.inf if level < Fraction(1, 2) else math.inf if n == 0 else float(ordered[0])
    low, high = float(ordered[below]), float(ordered[min(below + 1, n - 1)])
    if math.isinf(low) or math.isinf(high):
        return low if level < Fraction(1, 2) else high
    return low + float(place - below) * (high - low)
