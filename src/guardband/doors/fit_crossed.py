"""From labelled rows to a fitted model by cross-validation: every row trains, and every row calibrates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from guardband.bands.cross_promise import USE_SPLIT
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import crossed
from guardband.data.labelled_rows import Belonging, LabelledRows, Rows
from guardband.data.reference import Reference
from guardband.data.table import SomeRows
from guardband.data.target import Target
from guardband.data.unlike import Seen
from guardband.doors.fitted import Fitted
from guardband.doors.progress import FitProgress
from guardband.exceptions import DependentRowsWarning, warn
from guardband.learning.category_trial import Trial
from guardband.learning.crossed import Crossed
from guardband.learning.dependence import Suspects
from guardband.learning.learn import Trainer, learn
from guardband.learning.learned import Learned
from guardband.learning.optimisers import Way, learn_by_better
from guardband.learning.options import FitOptions
from guardband.learning.training_rows import TrainingRows
from guardband.training.deadline import NEVER, Deadline
from guardband.training.job import Job, Progress

TUNED_OUTSIDE = "If you fitted a scaler or tuned settings on these rows, coverage may be lower than stated."
FEWEST_ROWS = 4


def fit_crossed(
    given: LabelledRows,
    params: Mapping[str, Any],
    options: FitOptions,
    belonging: Belonging,
    deadline: Deadline = NEVER,
    trainer: Trainer = Job.train,
) -> Fitted:
    """Return what the folds of rows teach, calibrated on all of them.

    Folds are of equal size, as the bound asks for: a few rows may be left over,
    which train the networks of every fold and calibrate none. The ``trainer`` says where networks are trained.
    """
    kind, folds = params["calibration"], params["folds"]
    if given.n < max(FEWEST_ROWS, folds):
        raise ValueError(
            f"{folds} folds need at least {max(FEWEST_ROWS, folds)} rows, found n_samples={given.n}. Add rows, or use "
            "fewer folds (--folds)."
        )
    target, random = options.target.decided(given.y), check_random_state(params["random_state"])
    held_out = random.permutation(given.n)[: folds * (given.n // folds)].reshape(folds, -1)
    seeds = random.randint(2**31 - 1, size=folds).tolist()
    rule = crossed(options.method.rule(options.request), kind, folds, given.n - held_out.size)
    with FitProgress(params["verbose"], deadline.left) as progress:
        with _told_once():
            sets = [_training(given, fold, seed, options, target) for fold, seed in zip(held_out, seeds, strict=True)]
        suspects = None
        if belonging.split_by is None:
            suspects = Suspects.of(given.table, given.y, None if given.times is None else given.times.values)
        each = _learnt(sets, given.n, options, progress, deadline, trainer)
        with _told_once():
            target = target.learn(given.y)
        progress.step("Calibrating")
        predicted = [own.predict(given.table.take(fold)) for own, fold in zip(each, held_out, strict=True)]
        rows, parts = held_out.ravel(), zip(*(own.parts for own in predicted), strict=True)
        out_of_fold = type(predicted[0])(*(np.concatenate(part, -1) for part in parts))
        y = target.to_work(given.y)
        doubts = _doubts(suspects, given, y, rows, out_of_fold, options, seeds[0])
        block = (out_of_fold, y[rows], Context(fold=np.repeat(np.arange(folds), held_out.shape[1])))
        notes = (TUNED_OUTSIDE, *target.notes, *doubts)
        calibrated = Calibrated.from_blocks(rule, [block], notes, params["on_insufficient"], to_units=target.to_units)
    return Fitted(
        learned=Crossed(tuple(each), target),
        rule=rule,
        calibrated=calibrated,
        training_prints=given.prints,
        held_out_prints=given.prints[:0],
        calibration_prints=given.prints[rows],
        reference=Reference.learn(given.table, given.y),
        params=params,
        doubts=doubts,
        seen=Seen.learn(given.table, ()),
    )


def _training(given: LabelledRows, fold: Rows, seed: int, options: FitOptions, target: Target) -> TrainingRows:
    """Return all rows but those of a fold, as its networks see them."""
    rows = np.setdiff1d(np.arange(given.n), fold)
    return TrainingRows.of(given.table.take(rows), given.y[rows], None, seed, options.architecture, target, rows)


def _learnt(
    sets: Sequence[TrainingRows],
    n: int,
    options: FitOptions,
    progress: Progress,
    deadline: Deadline,
    trainer: Trainer,
) -> list[Learned]:
    """Return what each fold's rows teach, of n in all; folds whose networks have one shape train as one fleet.

    Shapes differ if a category occurs in few rows, which may all be in one fold, and if Muon trains some folds and Adam
    others. Folds also differ if an absurd target does not train: then the networks of one fold have fewer rows.
    """
    count = n - n // len(sets)  # not how many rows of a fold can train: that depends on its targets
    long_tails = [own.target.has_long_tail for own in sets]
    read = []
    for own, has_one in zip(sets, long_tails, strict=True):
        base, steps, _ = options.training_for(count, muon=not has_one)
        read.append(Trial(options, base, steps, progress).better(own, deadline.share(1 / len(sets))))

    def learnt(ways: Mapping[int, Way]) -> dict[int, Learned]:
        shapes = {
            i: (shape.for_table(read[i].encoder), recipe.muon, *read[i].x.shape)
            for i, (shape, recipe, _) in ways.items()
        }
        learned: dict[int, Learned] = {}
        different = list(dict.fromkeys(shapes.values()))
        for done, shape in enumerate(different):
            which = [i for i, own in shapes.items() if own == shape]
            _, recipe, effort = ways[which[0]]
            found = learn(
                [read[i] for i in which],
                options.specs,
                shape[0],
                recipe,
                effort,
                device=options.device,
                progress=progress,
                deadline=deadline.share(1 / (len(different) - done)),
                predicted_later=n,
                trainer=trainer,
            )
            learned |= zip(which, found, strict=True)
        return learned

    return learn_by_better(learnt, options, count, long_tails, limited=deadline.is_set)


def _doubts(
    suspects: Suspects | None,
    given: LabelledRows,
    y: Any,
    rows: Rows,
    predicted: Predicted,
    options: FitOptions,
    seed: int,
) -> tuple[str, ...]:
    """Return why rows may depend on each other, in sentences that are told too; none if the user says they do not."""
    if suspects is None:
        return ()
    errors = np.full(given.n, np.nan)
    errors[rows] = y[rows] - predicted.point[0, 0]
    every = np.arange(given.n)
    found = suspects.doubts(SomeRows(given.table, every), given.y, errors, options.request.levels.floats[0], seed)
    told = tuple(f"{doubt.sentence} Also use {USE_SPLIT}." for doubt in found)
    for sentence in told:
        warn(sentence, DependentRowsWarning)
    return told


@contextmanager
def _told_once() -> Iterator[None]:
    """Give each warning once, however many folds give it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    for text, category in dict.fromkeys((str(own.message), own.category) for own in told):
        warn(text, category)
