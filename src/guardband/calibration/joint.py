"""All of several targets inside at once: the largest of a row's scores is ranked (Diquigiovanni et al. 2022).

Dividing a target's scores by a scale that the training rows teach makes targets comparable. The largest of them is one
score of the row, so that one rank of the calibration rows gives the law of one target to all of them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from guardband.bands.predicted import Context, Predicted
from guardband.bands.rank_promise import RankPromise
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary
from guardband.calibration.cut import RankCut
from guardband.calibration.rule import Calibration
from guardband.calibration.score import Score
from guardband.calibration.several import EACH, SeveralRule
from guardband.calibration.summary import Array, Arrays, Summary
from guardband.data.entities import Entities


@dataclass(frozen=True)
class InUnits(Score):
    """A score in units of ``scale``: y is inside at threshold c exactly if its own score is at most c times the scale.

    Parameters
    ----------
    score : Score
        How far an outcome lies from its prediction.
    scale : float
        The unit, positive.
    """

    score: Score
    scale: float

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the score needs."""
        return self.score.takes

    @property
    def extends(self) -> bool:  # type: ignore[override]
        """Whether an interval may hold more than the score asks for."""
        return self.score.extends

    def distance(self, predicted: Any, y: Array) -> Array:
        """Return how far each outcome lies, in units of the scale."""
        return self.score.distance(predicted, y) / self.scale

    def around(self, predicted: Any, threshold: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return the ends at the threshold times the scale.

        A quotient and its product with the scale may differ from the score by three units in the last place. The
        threshold is therefore raised by four: a row at the threshold lies in its own interval.
        """
        own = threshold * self.scale
        if self.scale != 1:
            own = own + abs(own) * (4 * float(np.finfo(np.float64).eps))
        return self.score.around(predicted, own, xp)


@dataclass(frozen=True)
class TargetOfJoint(Conformal):
    """The rule of one target, calibrated by the largest score of each row."""

    def calibration_scores(self, summary: Summary) -> Array | None:
        """Return the target's own scores: with these new rows are compared. None if rows were only counted."""
        if isinstance(summary, CountedSummary):
            return None
        own: Array = summary.rows("own")
        if "entity" not in self.uses:
            return own
        return own[Entities(summary.rows("entity"), "").one_row_each(own)]


@dataclass(frozen=True)
class JointConformal(SeveralRule):
    """The largest of a row's scores, each in units of its target's scale, with any cut.

    Parameters
    ----------
    scales : tuple of float, default ()
        A positive number for each target, learnt from rows that do not calibrate. None given means 1 for each.
    """

    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.cut, RankCut):
            raise ValueError(f'targets="joint" needs guarantee="marginal" or "pac", found {self.cut!r}.')
        if not self.scales:
            object.__setattr__(self, "scales", (1.0,) * len(self.targets))
        fine = all(math.isfinite(scale) and scale > 0 for scale in self.scales)
        if len(self.scales) != len(self.targets) or not fine:
            raise ValueError(
                f"scales must be one positive number for each of {len(self.targets)} targets, found "
                f"{list(self.scales)}. Learn them from rows that do not calibrate."
            )

    def of_target(self, j: int) -> TargetOfJoint:
        """Return the rule of one target."""
        score = InUnits(self.score, self.scales[j])
        return TargetOfJoint(self.method, self.levels, score, self.cut, self.asked)

    def target_summary(self, j: int, summary: Summary) -> Summary:
        """Return the largest score of each row, and the target's own."""
        if isinstance(summary, CountedSummary):
            return summary
        each: Array = summary.rows(EACH)
        return Summary(summary.n, {}, ({"score": each.max(axis=1), "own": each[:, j]} | self._kept(summary),))

    def countable(self, block: Arrays) -> Arrays:
        """Return the largest score of each row."""
        return {"score": block[EACH].max(axis=1)}

    def target_found(self, j: int, summary: Summary) -> Calibration:
        """Return the thresholds, and that the target alone is inside at least as often as all of them."""
        found = self.calibrate(summary)
        return replace(found, promise=cast(RankPromise, found.promise).of_target(j))

    def target_arrays(self, j: int, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the thresholds, which are those of all targets."""
        return arrays

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the thresholds, and what is promised of all targets at once."""
        if not isinstance(summary, CountedSummary) and np.isnan(summary.rows(EACH)).any():
            raise ValueError('targets="joint" needs all targets of every calibration row. Leave out the other rows.')
        found = self.of_target(0).calibrate(self.target_summary(0, summary))
        return replace(found, promise=cast(RankPromise, found.promise).of_targets(len(self.targets)))

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return the largest score of each row, ``(n,)``; NaN where a true value is missing."""
        largest: Array = self.scores_of_each(predicted, y, context).max(axis=1)
        return largest

    def calibration_scores(self, summary: Summary) -> Array | None:
        """Return the largest scores of the calibration rows, of one row each if they belong together."""
        own = self.target_summary(0, summary)
        return Conformal.calibration_scores(self.of_target(0), own)


def learnt_scale(scores: Array, level: float) -> float:
    """Return the scale of a target from scores of rows that do not calibrate: their quantile at the level.

    Scores that may be negative count from their median, which an additive shift does not change. Where that is no
    positive number the scale is 1.
    """
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return 1.0
    high, middle = np.quantile(finite, [level, 0.5])
    scale = float(high - min(0.0, middle))
    return scale if math.isfinite(scale) and scale > 0 else 1.0
