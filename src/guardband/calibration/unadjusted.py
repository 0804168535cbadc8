"""No calibration: the intervals as they are, which promise nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.calibration.rule import Calibration, Ends, Rule, chosen_ends, promised_nothing
from guardband.calibration.summary import Array, Summary

REASON = "its intervals come straight from the network, and no calibration row corrected them"


@dataclass(frozen=True)
class Unadjusted(Rule):
    """Takes the intervals as they are, one for each level of ``trained``; the calibration rows are only counted."""

    takes = PredictedInterval
    trained: Levels

    @property
    def possible(self) -> Levels:
        """Those that networks were trained for."""
        return self.trained

    @property
    def candidates(self) -> int:
        """One for each level."""
        return len(self.trained)

    def summarise(self, predicted: PredictedInterval, y: Array, context: Context) -> Summary:
        """Return the number of rows."""
        return Summary(len(y), {})

    def calibrate(self, summary: Summary) -> Calibration:
        """Return which candidate each level takes."""
        chosen = np.array([self.trained.values.index(level) for level in self.levels.values])
        return Calibration({"chosen": chosen}, promised_nothing(self, summary, REASON))

    def ends(self, predicted: PredictedInterval, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals."""
        return chosen_ends(predicted, arrays["chosen"], xp)
