"""No calibration: the bands as they are, which promise nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Levels
from guardband.calibration.rule import Array, Calibration, OnInsufficient, Rule, picked_ends, refuse_other_levels

REASON = "the bands are the network's own, which no held-out row has corrected"


@dataclass(frozen=True)
class Unadjusted(Rule):
    """Takes the bands as they are, one for each level of ``trained``; the calibration rows are only counted."""

    method: str
    levels: Levels
    trained: Levels
    on_insufficient: OnInsufficient = "inf"

    def statistic(self, bands: Array, y: Array) -> Array:
        """Return nothing of each row, ``(K, n, 3), (n,) -> (n, 0)``."""
        return np.empty((len(y), 0))

    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return the number of rows."""
        return np.array([sum(len(part) for part in statistics)])

    def calibrate(self, summary: Array) -> Calibration:
        """Return which bands each level takes, and a certificate that promises nothing."""
        setting = np.array([self.trained.values.index(level) for level in self.levels.values])
        certificate = Certificate.of_nothing(self.method, self.levels.confidence_level, int(summary[0]), REASON)
        return Calibration(setting, certificate)

    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return the bands, ``(K, n, 3), (L,) -> (n, L), (n,), (n, L)``."""
        return picked_ends(bands[setting], xp)

    def at(self, levels: Levels) -> Unadjusted:
        """Return the rule for some of its levels."""
        refuse_other_levels(self.method, self.trained, levels)
        return replace(self, levels=levels)
