"""Rules for several targets: each has its own ordinary rule, and what calibrates them differs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import Cut
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.score import Score
from guardband.calibration.summary import Array, Summary

EACH = "each"
"""Under this name a summary keeps the scores of all targets, ``(n, q)``."""


@dataclass(frozen=True)
class SeveralRule(Rule):
    """One score for each target of a row, and intervals for each target by an ordinary rule.

    Parameters
    ----------
    targets : tuple of str
        The names of the targets.
    score : Score
        How far a true value lies from its prediction.
    cut : Cut
        Which score is far enough, and what that promises.
    asked : Levels, default None
        The levels that were asked for before calibration.
    """

    takes = PredictedSeveral
    targets: tuple[str, ...]
    score: Score
    cut: Cut
    asked: Levels | None = None

    def __post_init__(self) -> None:
        if len(self.targets) < 1 or len(set(self.targets)) < len(self.targets):
            raise ValueError(f"targets must have different names, found {list(self.targets)}. Rename a column.")

    @property
    def target_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the targets."""
        return self.targets

    @property
    def uses(self) -> frozenset[str]:
        """What the cut must know of a row."""
        return self.cut.uses

    @property
    def uses_of_new(self) -> frozenset[str]:
        """What the cut must know of a new row."""
        return self.cut.uses_of_new

    @property
    def candidates(self) -> int:
        """One for each target."""
        return 1

    @property
    def possible(self) -> None:
        """Every level has its rank."""
        return None

    @abstractmethod
    def of_target(self, j: int) -> Conformal:
        """Return the rule of one target.

        Parameters
        ----------
        j : int
            The position of the target.
        """

    @abstractmethod
    def target_summary(self, j: int, summary: Summary) -> Summary:
        """Return what the rule of one target is calibrated from.

        Parameters
        ----------
        j : int
            The position of the target.
        summary : Summary
            What was kept of the calibration rows.
        """

    @abstractmethod
    def target_found(self, j: int, summary: Summary) -> Calibration:
        """Return what the calibration rows settle for one target, with what is promised of it alone.

        Parameters
        ----------
        j : int
            The position of the target.
        summary : Summary
            What was kept of the calibration rows.
        """

    @abstractmethod
    def target_arrays(self, j: int, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays of one target.

        Parameters
        ----------
        j : int
            The position of the target.
        arrays : dict of arrays
            What calibration found, by name.
        """

    def scores_of_each(self, predicted: PredictedSeveral, y: Array, context: Context) -> Array:
        """Return the scores of all targets, ``(n, q)``; NaN where a true value is missing.

        Parameters
        ----------
        predicted : PredictedSeveral
            The predictions of each target.
        y : array of shape (n, q)
            The true values.
        context : Context
            What else is known of the rows.
        """
        pairs = zip(predicted.targets, y.T, strict=True)
        own = [self.of_target(j).scores(each, y_j, context) for j, (each, y_j) in enumerate(pairs)]
        return np.where(np.isnan(y), np.nan, np.stack(own, axis=1))

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the scores of all targets, and what the cut must know of the rows."""
        return Summary(len(y), {}, ({EACH: self.scores_of_each(predicted, y, context)} | context.given(),))

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return lower ``(n, q, L)``, point ``(n, q)`` and upper ``(n, q, L)``."""
        every = [
            self.of_target(j).ends(own, context, self.target_arrays(j, arrays), xp)
            for j, own in enumerate(predicted.targets)
        ]
        lower, point, upper = (xp.stack(same, 1) for same in zip(*every, strict=True))
        return lower, point, upper

    def at(self, levels: Levels) -> SeveralRule:
        """Return the rule for other levels, marked as chosen after calibration unless they were asked for before."""
        return replace(self, levels=levels, asked=self.asked or self.levels)

    def for_entities(self) -> SeveralRule | None:
        """Return the same with the cut for entities, if it has one."""
        cut = self.cut.for_entities()
        return None if cut is None else replace(self, cut=cut)

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Rule:
        """Raise: several targets have no promise for each group."""
        raise ValueError("Several targets have no promise for each group. Remove groups, or fit one target at a time.")

    def for_weights(self, max_weight: float | None = None) -> Rule:
        """Raise: several targets have no promise for another population."""
        raise ValueError("Several targets cannot use weights. Remove weights, or calibrate one target at a time.")

    def check(self, predicted: Predicted, context: Context, is_new: bool = False) -> None:
        """Raise if the rule cannot use what was predicted, or not what is known of the rows."""
        super().check(predicted, context, is_new)
        assert isinstance(predicted, PredictedSeveral)
        if len(predicted.targets) != len(self.targets):
            raise ValueError(
                f"Expected predictions of {len(self.targets)} targets, found {len(predicted.targets)}. Bring one "
                "column for each target."
            )
        for own in predicted.targets:
            self.of_target(0).check(own, context, is_new)

    def _kept(self, summary: Summary, rows: Any = slice(None)) -> dict[str, Array]:
        """Return what the cut must know of some of the calibration rows."""
        return {name: summary.rows(name)[rows] for name in self.uses}
