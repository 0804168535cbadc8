"""Conformal intervals: all outcomes whose score is no larger than a threshold (paper, Theorem 1).

A score says how far an outcome lies from its prediction, a cut which score is far enough: any score with any cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.cut import Cut
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.score import Score
from guardband.calibration.summary import Array, Summary
from guardband.data.entities import Entities


@dataclass(frozen=True)
class Conformal(Rule):
    """A score and a cut, for one candidate. ``asked`` are the levels that were asked for before calibration."""

    score: Score
    cut: Cut
    asked: Levels | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.score, Score) or not isinstance(self.cut, Cut):
            raise TypeError(f"Conformal takes a Score and a Cut, as objects, found {self.score!r} and {self.cut!r}.")
        if not hasattr(self.score, "takes"):
            name = type(self.score).__name__
            raise TypeError(f"{name} must say what kind of prediction it takes, such as takes = Predicted.")

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the score needs."""
        return self.score.takes

    @property
    def uses(self) -> frozenset[str]:
        """What the cut must know of a row."""
        return self.cut.uses

    @property
    def candidates(self) -> int:
        """One: ranks of several would need a correction."""
        return 1

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return the score of each row, ``(n,)``."""
        scores: Array = self.score.of(predicted, y)[0, 0]
        return scores

    def calibration_scores(self, summary: Summary) -> Array:
        """Return the scores of the calibration rows, of one row each if they belong together."""
        scores: Array = summary.rows("score")
        if "entity" not in self.uses:
            return scores
        return scores[Entities(summary.rows("entity"), "").one_row_each(scores)]

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the scores, and what the cut must know of the rows."""
        return Summary(len(y), {}, ({"score": self.scores(predicted, y, context)} | context.given(),))

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the thresholds and the promise of the cut."""
        context = Context(**{name: summary.rows(name) for name in self.uses})
        after = self.asked is not None and not self.asked.include(self.levels)
        found = self.cut.calibrate(summary.rows("score"), context, self.levels, after)
        return replace(found, promise=found.promise.widened()) if self.score.extends else found

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals."""
        thresholds = self.cut.thresholds(arrays, context, xp)
        both = [self.score.interval(predicted, thresholds[..., i], xp) for i in range(len(self.levels))]
        lower, upper = (xp.stack([ends[0, 0] for ends in own], -1) for own in zip(*both, strict=True))
        return lower, predicted.point[0, 0], upper

    def for_entities(self) -> Conformal | None:
        """Return the same with the cut for entities, if it has one."""
        cut = self.cut.for_entities()
        return None if cut is None else replace(self, cut=cut)

    def at(self, levels: Levels) -> Conformal:
        """Return the rule for other levels, marked as chosen after calibration unless they were asked for before."""
        return replace(self, levels=levels, asked=self.asked or self.levels)
