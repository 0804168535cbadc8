"""Conformal intervals: all outcomes whose score is no larger than a threshold (paper, Theorem 1).

A score says how far an outcome lies from its prediction, a cut which score is far enough: any score with any cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.counted import CountedSummary
from guardband.calibration.cut import Cut, RankCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rejection_cut import RejectionCut, weighted
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.score import Score
from guardband.calibration.summary import Array, Summary
from guardband.calibration.weighted_cut import WeightedCut
from guardband.data.entities import Entities

ROWS_AT_A_TIME = 2**14


@dataclass(frozen=True)
class Conformal(Rule):
    """A score and a cut, for one candidate. ``asked`` are the levels that were asked for before calibration.

    Parameters
    ----------
    score : Score
        How far a true value lies from its prediction.
    cut : Cut
        Which score is far enough, and what that promises.
    asked : Levels, default None
        The levels that were asked for before calibration.
    """

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
    def uses_of_new(self) -> frozenset[str]:
        """What the cut must know of a new row."""
        return self.cut.uses_of_new

    @property
    def possible(self) -> None:
        """Every level has its rank."""
        return None

    @property
    def candidates(self) -> int:
        """One: ranks of several would need a correction."""
        return 1

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return the score of each row, ``(n,)``."""
        blocks = (slice(first, first + ROWS_AT_A_TIME) for first in range(0, max(1, len(y)), ROWS_AT_A_TIME))
        # A block stays in the cache, and only the scores are as many as the rows.
        return np.concatenate([self.score.of(predicted.rows(rows), y[rows])[0, 0] for rows in blocks])

    def calibration_scores(self, summary: Summary) -> Array | None:
        """Return the scores of the calibration rows, of one row each if they belong together; None if only counted."""
        if isinstance(summary, CountedSummary):
            return None
        scores: Array = summary.rows("score")
        if "entity" not in self.uses:
            return scores
        return scores[Entities(summary.rows("entity"), "").one_row_each(scores)]

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the scores, and what the cut must know of the rows."""
        return Summary(len(y), {}, ({"score": self.scores(predicted, y, context)} | context.given(),))

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the thresholds and the promise of the cut."""
        return self._calibrated(self.cut.calibrate, summary)

    def calibrate_complete(self, summary: Summary) -> Calibration:
        """Return the same with whatever rows like the calibration rows need."""
        return self._calibrated(self.cut.calibrate_complete, summary)

    def _calibrated(self, calibrate: Callable[..., Calibration], summary: Summary) -> Calibration:
        after = self.asked is not None and not self.asked.include(self.levels)
        if isinstance(summary, CountedSummary):
            found = self.cut.calibrate_counted(summary.counted["score"], self.levels, after)
        else:
            found = calibrate(summary.rows("score"), self._known(summary), self.levels, after)
        return replace(found, promise=found.promise.widened()) if self.score.extends else found

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals."""
        if xp is not np:
            return self._block(predicted, context, arrays, xp)
        arrays = self.cut.prepared(arrays, context)
        if len(predicted) <= ROWS_AT_A_TIME:
            return self._block(predicted, context, arrays)
        lower, upper = np.empty((2, len(predicted), len(self.levels)))
        for first in range(0, len(predicted), ROWS_AT_A_TIME):  # a block stays in the cache
            rows = slice(first, first + ROWS_AT_A_TIME)
            lower[rows], _, upper[rows] = self._block(predicted.rows(rows), context.rows(rows), arrays)
        return lower, predicted.point[0, 0], upper

    def _block(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        thresholds = self.cut.thresholds(arrays, context, xp)
        if xp is not np and thresholds.ndim > 1:  # one for all rows is a number, which takes their precision by itself
            thresholds = thresholds.to(predicted.point.dtype)
        both = [self.score.interval(predicted, thresholds[..., i], xp) for i in range(len(self.levels))]
        lower, upper = (xp.stack([ends[0, 0] for ends in own], -1) for own in zip(*both, strict=True))
        return lower, predicted.point[0, 0], upper

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Conformal:
        """Return the same with a promise for each group."""
        if not isinstance(self.cut, RankCut):
            raise ValueError(f'groups need guarantee="marginal" or "pac", found {self.cut!r}.')
        return replace(self, cut=GroupedCut(self.cut, names, by, columns))

    @property
    def group_columns(self) -> int:
        """How many columns make groups, none without groups."""
        cut = self.cut.base if isinstance(self.cut, RejectionCut) else self.cut
        return cut.columns if isinstance(cut, GroupedCut) else 0

    @property
    def has_quick_levels(self) -> bool:
        """Whether no thresholds are solved for, and none depend on weights."""
        solves = isinstance(self.cut, GroupedCut) and self.cut.solves_patterns
        return not (solves or isinstance(self.cut, WeightedCut))

    def rows_for_a_group(self, groups: int) -> int:
        """Return how many calibration rows the cut needs for the highest level."""
        cut = self.for_groups(("",) * groups).cut
        assert isinstance(cut, GroupedCut)
        return cut.of_each.rows_needed(max(self.levels.values))

    def without_groups(self) -> Conformal:
        """Return the same with one promise for all rows."""
        cut = self.cut
        if isinstance(cut, RejectionCut) and isinstance(cut.base, GroupedCut):
            return replace(self, cut=replace(cut, base=cut.base.base))
        return replace(self, cut=cut.base) if isinstance(cut, GroupedCut) else self

    def for_weights(self, max_weight: float | None = None) -> Conformal:
        """Return the same for rows that count by their weights."""
        return replace(self, cut=weighted(self.cut, max_weight))

    def complete(self, calibration: Calibration, summary: Summary, context: Context) -> None:
        """Let the cut add what new rows need; a cut that only counted its rows knows all by then."""
        if isinstance(summary, CountedSummary):
            return
        self.cut.completed(calibration.arrays, summary.rows("score"), self._known(summary), context, self.levels)

    def _known(self, summary: Summary) -> Context:
        """Return what the cut must know of the calibration rows."""
        return Context(**{name: summary.rows(name) for name in self.uses})

    def for_entities(self) -> Conformal | None:
        """Return the same with the cut for entities, if it has one."""
        cut = self.cut.for_entities()
        return None if cut is None else replace(self, cut=cut)

    def at(self, levels: Levels) -> Conformal:
        """Return the rule for other levels, marked as chosen after calibration unless they were asked for before."""
        return replace(self, levels=levels, asked=self.asked or self.levels)
