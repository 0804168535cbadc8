"""D2 as a selection set: it chooses among candidate networks, and is then spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Levels
from guardband.calibration.rule import Array, Calibration, OnInsufficient, Rule, picked_ends, refuse_other_levels
from guardband.exceptions import DegenerateBandWarning, warn

REASON = "the calibration rows chose the network, so that they can no longer vouch for it"


@dataclass(frozen=True)
class ShortestCovering(Rule):
    """Takes the candidate with the shortest bands of those that cover enough of D2: high-q's choice.

    Enough is the level. If none does, the one that covers most. Each level of ``trained`` has as many candidates,
    which stand together.
    """

    method: str
    levels: Levels
    trained: Levels
    on_insufficient: OnInsufficient = "inf"

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return whether each band contains y, and its length, ``(K, n, 3), (n,) -> (n, 2 K)``."""
        finite = np.isfinite(bands).all(axis=2)
        inside = (bands[:, :, 0] <= y) & (y <= bands[:, :, 2]) & finite
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate([inside, np.where(finite, bands[:, :, 2] - bands[:, :, 0], np.inf)]).T

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the number of rows and the means."""
        return _means(statistics)

    def calibrate(self, summary: Array) -> Calibration:
        """Return the candidate of each level, and a certificate that promises nothing."""
        covered, lengths = summary[1:].reshape(2, -1)
        each = len(covered) // len(self.trained)
        setting = []
        for level in self.levels.values:
            first = each * self.trained.values.index(level)
            own = slice(first, first + each)
            enough = covered[own] >= float(level)
            best = np.where(enough, lengths[own], np.inf).argmin() if enough.any() else covered[own].argmax()
            setting.append(first + int(best))
        return Calibration(np.array(setting), _certificate(self, summary))

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the chosen bands, ``(K, n, 3), (L,) -> (n, L), (n,), (n, L)``."""
        return picked_ends(bands[setting], xp)

    def at(self, levels: Levels) -> ShortestCovering:
        """Return the rule for some of its levels."""
        refuse_other_levels(self.method, self.trained, levels)
        return replace(self, levels=levels)


@dataclass(frozen=True)
class MostLikely(Rule):
    """Takes the Gaussian under which D2 is most likely, and its central interval: neg-ll's choice.

    Bands are mean - deviation, mean, mean + deviation, one for each candidate.
    """

    method: str
    levels: Levels
    on_insufficient: OnInsufficient = "inf"

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return the negative log-likelihoods but for a constant, ``(K, n, 3), (n,) -> (n, K)``.

        A row that no candidate gives a likelihood is NaN, and does not count.
        """
        mean, deviation = bands[:, :, 1], (bands[:, :, 2] - bands[:, :, 0]) / 2
        with np.errstate(all="ignore"):
            values = (np.log(deviation) + ((y - mean) / deviation) ** 2 / 2).T
        usable = np.isfinite(values)
        return np.where(usable, values, np.where(usable.any(axis=1, keepdims=True), np.inf, np.nan))

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the number of rows and the means."""
        return _means(statistics)

    def calibrate(self, summary: Array) -> Calibration:
        """Return the candidate and how many deviations a level reaches, ``(L, 2)``, and a certificate of nothing."""
        chosen = int(np.nan_to_num(summary[1:], nan=np.inf, posinf=np.inf).argmin())
        if not np.isfinite(summary[1 + chosen]):
            warn(f"{self.method}: no candidate gives all rows a likelihood; the first is taken.", DegenerateBandWarning)
        setting = [(chosen, ndtri((1 + float(level)) / 2)) for level in self.levels.values]
        return Calibration(np.array(setting), _certificate(self, summary))

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the central intervals of the chosen Gaussian, ``(K, n, 3), (L, 2) -> (n, L), (n,), (n, L)``."""
        chosen = setting[:, 0].astype(np.int64) if xp is np else setting[:, 0].long()
        own = bands[chosen]
        mean, deviation = own[:, :, 1], (own[:, :, 2] - own[:, :, 0]) / 2
        # entry by entry: torch would take the precision of an array, but takes that of the bands from a number
        half = xp.stack([deviation[i] * setting[i, 1] for i in range(len(self.levels))])
        return picked_ends(xp.stack([mean - half, mean, mean + half], -1), xp)

    def at(self, levels: Levels) -> MostLikely:
        """Return the rule for other levels: a Gaussian has them all."""
        return replace(self, levels=levels)


def _means(statistics: Sequence[Array]) -> Array:
    """Return the number of rows, and the mean of each column over rows that are numbers."""
    n = sum(len(part) for part in statistics)
    total = sum(np.nansum(part, axis=0, dtype=np.float64) for part in statistics)
    with np.errstate(invalid="ignore"):
        return np.concatenate([[n], total / sum((~np.isnan(part)).sum(axis=0) for part in statistics)])


def _certificate(rule: ShortestCovering | MostLikely, summary: Array) -> Certificate:
    return Certificate.of_nothing(rule.method, rule.levels.confidence_level, int(summary[0]), REASON)
