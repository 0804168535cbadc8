"""A rule together with what it found on the calibration rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level, Levels
from guardband.calibration.rule import Array, Rule


@dataclass(frozen=True)
class Calibrated:
    """A calibrated rule; the summary it was found from lets other levels and model files start from it."""

    rule: Rule
    summary: Array
    notes: tuple[str, ...]
    setting: Array
    certificate: Certificate

    @classmethod
    def by(cls, rule: Rule, summary: Array, notes: tuple[str, ...] = ()) -> Calibrated:
        """Return what the rule finds from a summary of the calibration rows."""
        found = rule.calibrate(summary)
        return cls(rule, summary, notes, found.setting, found.certificate.with_notes(*notes))

    def at(self, confidence_level: Level | Sequence[Level] | None, alpha: Level | Sequence[Level] | None) -> Calibrated:
        """Return the same at other levels, if any are given that differ."""
        if confidence_level is None and alpha is None:
            return self
        levels = Levels.of(confidence_level, alpha)
        return self if levels == self.rule.levels else Calibrated.by(self.rule.at(levels), self.summary, self.notes)

    def ends(self, bands: Array) -> tuple[Array, Array, Array]:
        """Return lower ``(n, L)``, point ``(n,)`` and upper ``(n, L)`` of bands ``(K, n, 3)``."""
        return self.rule.ends(bands, self.setting)

    def intervals(
        self,
        lower: NDArray[np.float64],
        point: NDArray[np.float64],
        upper: NDArray[np.float64],
        index: Any = None,
        input_names: tuple[str, ...] = (),
    ) -> Intervals:
        """Return ends ``(n, L)`` as ``Intervals``, ``(n,)`` where there is one level."""
        levels = self.rule.levels
        if levels.scalar:
            lower, upper = lower[:, 0], upper[:, 0]
        return Intervals(lower, point, upper, levels.confidence_level, self.certificate, index, input_names)
