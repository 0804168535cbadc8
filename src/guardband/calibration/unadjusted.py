"""No calibration: the intervals as they are, which promise nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.promise import NoPromise
from guardband.calibration.rule import Calibration, Ends, Rule, picked_ends, refuse_other_levels
from guardband.calibration.summary import Array, Summary

REASON = "the bands are the network's own, which no held-out row has corrected"


@dataclass(frozen=True)
class Unadjusted(Rule):
    """Takes the intervals as they are, one for each level of ``trained``; the calibration rows are only counted."""

    takes = PredictedInterval
    trained: Levels

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

    def at(self, levels: Levels) -> Unadjusted:
        """Return the rule for some of its levels."""
        refuse_other_levels(self.method, self.trained, levels)
        return replace(self, levels=levels)


def chosen_ends(predicted: PredictedInterval, chosen: Any, xp: Any, usable: Any = True) -> Ends:
    """Return the ends of the candidate that was chosen for each level; those not ``usable`` are the whole line."""
    lower, point, upper = (part[0][chosen] for part in predicted.parts)
    return picked_ends(lower, point, upper, predicted.finite(xp)[0][chosen] & usable, xp)


def promised_nothing(rule: Rule, summary: Summary, reason: str) -> NoPromise:
    """Return a promise of nothing, with the reason."""
    return NoPromise(
        confidence_level=rule.levels.floats,
        n_calibration=summary.n,
        whole_line=(False,) * len(rule.levels),
        reason=reason,
    )
