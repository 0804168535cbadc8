"""A trial of how to read columns of many categories: by a vector that is learnt for each, or by the target there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from guardband.learning.architecture import Architecture
from guardband.learning.choice import SCORES, interval_score_of
from guardband.learning.learn import learn
from guardband.learning.learned import read_outputs
from guardband.learning.options import FitOptions
from guardband.learning.presets import FEW_ROWS
from guardband.learning.training_rows import Array, TrainingRows
from guardband.methods.registry import method_named
from guardband.training.deadline import Deadline
from guardband.training.epochs import FEWEST_TO_HOLD_OUT
from guardband.training.job import Progress
from guardband.training.predict import predict
from guardband.training.recipe import Recipe

SHARE = 0.1
"""The share of the time left that each of both may take if time is limited."""
SMALL, LEARNING_RATE = (64, 64), 0.01
"""The network of a short trial, and how fast it learns."""
LARGER = 2
"""Its batches have so many times as many rows as those of the fit."""
MOST_EPOCHS = 10
"""By then it shows which way is better, though a network with vectors may go on learning."""
FOLDS = 5
"""One part of so many judges a short trial."""


@dataclass(frozen=True)
class Trial:
    """Networks learn from rows in both ways. Rows that none of them saw say which is better.

    In a short trial that is one small network each way. Few rows are quickly learnt, and a small network misjudges
    them. There two copies of the network that is fitted learn each way. The average of copies is what counts, and
    copies with vectors gain more by it: one has an error that is its own, of which the average of k keeps a share of
    1 / k. How large it is, two copies and their average tell.
    """

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
        is_short = len(rows.x) >= FEW_ROWS
        trial, copies = (self._short(), 1) if is_short else (self, 2)
        folds = FOLDS if is_short else max(self.options.effort.folds, self.options.effort.copies)
        scores = [trial._score(own, copies, folds, deadline) for own in (rows, described)]
        is_better = scores[1] < scores[0]
        how = "categories described by the target" if is_better else "a vector for each category"
        return replace(described if is_better else rows, choice=how)

    def _short(self) -> Trial:
        """Return a trial by a small network that stops as soon as an epoch brings nothing."""
        recipe = replace(
            self.recipe,
            learning_rate=LEARNING_RATE,
            muon=0.0,
            batch_size=LARGER * self.recipe.batch_size,
            max_epochs=min(MOST_EPOCHS, self.recipe.max_epochs),
            patience=1,
        )
        return replace(self, architecture=replace(self.architecture, hidden=SMALL, dropout=0.0), recipe=recipe)

    def _score(self, rows: TrainingRows, copies: int, folds: int, deadline: Deadline) -> float:
        """Return the interval score to expect of all copies, by one or two that learn the target as it is."""
        options, (spec,), (plain, *_) = self.options, self.options.specs, rows.target.scales
        every = options.training_for(len(rows.x), muon=not rows.target.has_long_tail)[2].copies
        rows = replace(rows, target=replace(rows.target, scales=(plain,)), y=rows.y[:1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is said of the copies that are kept
            (learned,) = learn(
                [rows],
                [replace(spec, copy=copy) for copy in range(copies)],
                self.architecture.for_table(rows.encoder),
                self.recipe,
                replace(options.effort, copies=1, restarts=0, folds=folds),
                device=options.device,
                progress=self.progress,
                deadline=deadline.share(SHARE),
            )
        assert learned.left_out is not None
        seen = np.flatnonzero(learned.left_out >= 0)
        outputs = predict(learned.members, rows.as_new(learned.left_out).x[seen], options.device).astype(np.float64)
        y = plain.center + plain.scale * rows.y[0, seen]
        methods = [method_named(name) for name in SCORES] if options.chooses_score else [options.method]

        def score(own: Array) -> float:
            predicted, to_units = read_outputs((spec.head,), own, rows.target, False, np), rows.target.to_units
            return min(interval_score_of(method, options.request, predicted, y, to_units) for method in methods)

        alone, together = float(np.mean([score(own[None]) for own in outputs])), score(outputs)
        return alone - 2 * (1 - 1 / every) * (alone - together)
