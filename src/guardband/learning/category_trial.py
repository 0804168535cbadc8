"""A trial of how to read columns of many categories: by a vector that is learnt for each, or by the target there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

from guardband.learning.architecture import Architecture
from guardband.learning.choice import interval_score_of
from guardband.learning.learn import learn
from guardband.learning.options import FitOptions
from guardband.learning.training_rows import TrainingRows
from guardband.training.deadline import Deadline
from guardband.training.epochs import FEWEST_TO_HOLD_OUT
from guardband.training.job import Progress
from guardband.training.recipe import Recipe

MARGIN = 0.98
"""Descriptions must be as much better: copies with vectors differ more from each other, and gain more when averaged."""
SHARE = 0.1
"""The share of the time left that each of both may take if time is limited."""


@dataclass(frozen=True)
class Trial:
    """One copy learns from rows in both ways. Rows that it did not see, the same for both, say which is better."""

    options: FitOptions
    architecture: Architecture
    recipe: Recipe
    progress: Progress

    def better(self, rows: TrainingRows, deadline: Deadline) -> TrainingRows:
        """Return rows in the way that gives shorter intervals; as they are if there is no other, or no rows to see."""
        if rows.described is None:
            return rows
        described, rows = rows.described, replace(rows, described=None)
        if self.recipe.epochs != "early" or len(rows.x) < FEWEST_TO_HOLD_OUT or len(self.options.specs) > 1:
            return rows
        scores = [self._score(own, deadline) for own in (rows, described)]
        is_better = scores[1] < MARGIN * scores[0]
        how = "categories described by the target" if is_better else "a vector for each category"
        return replace(described if is_better else rows, choice=how)

    def _score(self, rows: TrainingRows, deadline: Deadline) -> float:
        """Return the interval score of one copy, which learns the target as it is, on the rows that stop it."""
        options, effort, (plain, *_) = self.options, self.options.effort, rows.target.scales
        rows = replace(rows, target=replace(rows.target, scales=(plain,)), y=rows.y[:1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is said of the copies that are kept
            (learned,) = learn(
                [rows],
                options.specs,
                self.architecture.for_table(rows.encoder),
                self.recipe,
                replace(effort, copies=1, restarts=0, folds=max(effort.folds, effort.copies)),
                device=options.device,
                progress=self.progress,
                deadline=deadline.share(SHARE),
            )
        predicted, seen = learned.predict_left_out(rows.x)
        y = plain.center + plain.scale * rows.y[0, seen]
        return interval_score_of(options.method, options.request, predicted, y, rows.target.to_units)
