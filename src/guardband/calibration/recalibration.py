"""Recalibrated distributions (Kuleshov, Fenner & Ermon, 2018): the rule of bayes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from guardband.bands.predicted import Context, PredictedGaussian
from guardband.calibration.rule import Calibration, Ends, Remark, Rule, picked_ends, promised_nothing
from guardband.calibration.summary import Array, Summary

REASON = "a recalibrated distribution reaches its level only with an unlimited number of calibration rows"


@dataclass(frozen=True)
class Recalibration(Rule):
    """Takes the quantiles of the distribution R(F(y)), F the network's Gaussian and R learnt on D2.

    R is the isotonic regression of the share of rows with F(y_j) <= F(y_i) on F(y_i) (their Algorithm 1). These
    points increase already, so that R passes through them: it is the empirical distribution function of the
    F(y_i), and the q-quantile of R(F) lies where the q n-th smallest of them does, interpolated between
    neighbours. It is kept in units of deviations, z = (y - mean) / deviation, in which F is increasing.
    The point is the recalibrated median.
    """

    takes = PredictedGaussian
    possible = None  # a distribution has all levels

    @property
    def candidates(self) -> int:
        """One Gaussian."""
        return 1

    def summarise(self, predicted: PredictedGaussian, y: Array, context: Context) -> Summary:
        """Return how many deviations y lies above the mean, NaN without a finite prediction."""
        mean, deviation = (part[0, 0] for part in predicted.parts)
        with np.errstate(all="ignore"):
            z = np.where(y == mean, 0.0, (y - mean) / deviation)
        return Summary(len(y), {}, ({"distance": np.where(predicted.finite()[0, 0], z, np.nan)},))

    def calibrate(self, summary: Summary) -> Calibration:
        """Return lower end, median and upper end of each level in deviations, ``(L, 3)``."""
        distances = np.sort(summary.rows("distance"))  # NaN last
        usable = distances[~np.isnan(distances)]
        sides = [[(1 - level) / 2, Fraction(1, 2), (1 + level) / 2] for level in self.levels.values]
        quantiles = np.array([[_quantile(usable, side) for side in own] for own in sides])
        remarks = []
        if np.isinf(quantiles[:, ::2]).any():
            needed = math.ceil(2 / min(self.levels.alphas))
            why = (
                f"{self.method} needs at least {needed} calibration rows with a usable prediction, but has "
                f"{len(usable)}. Add calibration rows or choose a lower confidence level."
            )
            remarks.append(Remark(why))
        whole = tuple(bool(both) for both in np.isinf(quantiles[:, ::2]).all(axis=1))
        promise = replace(promised_nothing(self, summary, REASON), whole_line=whole)
        return Calibration({"quantiles": quantiles}, promise, tuple(remarks))

    def ends(self, predicted: PredictedGaussian, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the quantiles; a side beyond the first or last calibration row is infinite."""
        mean, deviation = (part[0, 0] for part in predicted.parts)
        # entry by entry: torch would take the precision of an array, but takes that of the prediction from a number
        lower, point, upper = (
            xp.stack([mean + deviation * own[side] for own in arrays["quantiles"]]) for side in range(3)
        )
        return picked_ends(lower, point, upper, predicted.finite(xp)[0, 0], xp)


def _quantile(ordered: Array, level: Fraction) -> float:
    """Return the quantile, interpolated between the neighbours i/n and (i+1)/n; infinite beyond the first or last.

    Nothing is interpolated towards an infinite distance, that of a band without width.
    """
    n = len(ordered)
    place = level * n - 1
    below = math.floor(place)
    if below < 0:
        return -math.inf if level < Fraction(1, 2) else math.inf if n == 0 else float(ordered[0])
    low, high = float(ordered[below]), float(ordered[min(below + 1, n - 1)])
    if math.isinf(low) or math.isinf(high):
        return low if level < Fraction(1, 2) else high
    return low + float(place - below) * (high - low)
