"""D2 as a selection set: it chooses among candidate networks, and is then spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted, PredictedGaussian, PredictedInterval
from guardband.calibration.rule import Calibration, Ends, Remark, Rule, chosen_ends, picked_ends, promised_nothing
from guardband.calibration.summary import Array, Summary
from guardband.exceptions import DegenerateBandWarning

REASON = "the calibration rows selected the network, so they cannot also check it"
FURTHEST = 100.0
"""An outcome so many deviations away is absurd, and how far it is no longer tells candidates apart."""


@dataclass(frozen=True)
class ShortestCovering(Rule):
    """Takes the candidate with the shortest intervals of those that cover enough of D2: high-q's choice.

    Enough is the level. If none does, the one that covers most. Each level of ``trained`` has as many candidates,
    which stand together.
    """

    takes = PredictedInterval
    trained: Levels

    @property
    def possible(self) -> Levels:
        """Those that networks were trained for."""
        return self.trained

    def check(self, predicted: Predicted, context: Context, is_new: bool = False) -> None:
        """Raise unless there are intervals, as many for each level."""
        super().check(predicted, context, is_new)
        if predicted.candidates % len(self.trained):
            raise ValueError(
                f"{self.method} takes as many candidates for each of {len(self.trained)} levels, found "
                f"{predicted.candidates}."
            )

    def summarise(self, predicted: PredictedInterval, y: Array, context: Context) -> Summary:
        """Return how many intervals of each candidate contain y, and the sum of their lengths."""
        finite = predicted.finite()[0]
        lower, _, upper = (part[0] for part in predicted.parts)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.where(finite, upper - lower, np.inf).sum(-1)
        return Summary(len(y), {"covered": ((lower <= y) & (y <= upper) & finite).sum(-1), "length": lengths})

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the candidate of each level."""
        covered, lengths = (summary.totals[name] / summary.n for name in ("covered", "length"))
        each = len(covered) // len(self.trained)
        chosen = []
        for level in self.levels.values:
            first = each * self.trained.values.index(level)
            own = slice(first, first + each)
            enough = covered[own] >= float(level)
            best = np.where(enough, lengths[own], np.inf).argmin() if enough.any() else covered[own].argmax()
            chosen.append(first + int(best))
        return Calibration({"chosen": np.array(chosen)}, promised_nothing(self, summary, REASON))

    def ends(self, predicted: PredictedInterval, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals of the candidates chosen."""
        return chosen_ends(predicted, arrays["chosen"], xp)


@dataclass(frozen=True)
class MostLikely(Rule):
    """Takes the Gaussian under which D2 is most likely, and its central interval: neg-ll's choice."""

    takes = PredictedGaussian
    possible = None  # a Gaussian has all levels

    def summarise(self, predicted: PredictedGaussian, y: Array, context: Context) -> Summary:
        """Return each candidate's summed negative log-likelihood but for a constant.

        A row that no candidate gives a likelihood does not count.
        """
        mean, deviation = (part[0] for part in predicted.parts)
        with np.errstate(all="ignore"):
            squares = ((y - mean) / deviation) ** 2
            near = np.where(np.isfinite(squares), np.minimum(squares, FURTHEST**2), squares)
            values = np.log(deviation) + near / 2
        usable = np.isfinite(values)
        counts = usable.any(axis=0)
        sums = np.where(usable, values, np.inf)[:, counts].sum(-1)
        return Summary(len(y), {"loss": sums, "counted": np.array(counts.sum())})

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the candidate, ``(1,)``, and how many deviations each level reaches, ``(L,)``."""
        with np.errstate(invalid="ignore"):
            means = np.nan_to_num(summary.totals["loss"] / summary.totals["counted"], nan=np.inf, posinf=np.inf)
        chosen, remarks = int(means.argmin()), []
        if not np.isfinite(means[chosen]):
            why = f"{self.method}: no candidate gives all rows a likelihood; the first is taken."
            remarks.append(Remark(why, DegenerateBandWarning, infinite=False))
        arrays = {"chosen": np.array([chosen]), "deviations": ndtri((1 + np.array(self.levels.floats)) / 2)}
        return Calibration(arrays, promised_nothing(self, summary, REASON), tuple(remarks))

    def ends(self, predicted: PredictedGaussian, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the central intervals of the Gaussian chosen."""
        mean, deviation = (part[0][arrays["chosen"]] for part in predicted.parts)
        # entry by entry: torch would take the precision of an array, but takes that of the prediction from a number
        half = xp.concatenate([deviation * arrays["deviations"][i] for i in range(len(self.levels))])
        return picked_ends(mean - half, mean, mean + half, predicted.finite(xp)[0][arrays["chosen"]], xp)
