"""From labelled rows to a fitted model: split, train, choose, look for rows that depend on each other, calibrate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from guardband.bands.predicted import Context
from guardband.calibration.rule import Rule
from guardband.data.absurd import absurd, warn_of_absurd
from guardband.data.encoder import PlainNumbers
from guardband.data.grouping import group_columns
from guardband.data.labelled_rows import Belonging, LabelledRows, Rows
from guardband.data.reference import Reference
from guardband.data.split import split_rows
from guardband.data.table import refuse_huge
from guardband.data.target import Target
from guardband.data.tree_groups import AUTO, TreeGroups
from guardband.data.unlike import Seen
from guardband.doors.fitted import Fitted
from guardband.doors.groups import NO_GROUPS, AnyGroups, GroupOptions, grouped, search_groups
from guardband.doors.progress import FitProgress
from guardband.exceptions import DependentRowsWarning, warn
from guardband.learning.choice import sharpest
from guardband.learning.dependence import doubts_of
from guardband.learning.learn import learn
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions
from guardband.learning.shift import kept_source
from guardband.learning.training_rows import TrainingRows
from guardband.methods.method import Method
from guardband.progress import step

MOST_TO_CHOOSE = 20_000
"""Training rows that choose a score: more would say no more."""
PREPARED_OUTSIDE = "If you fitted a scaler or tuned settings on the rows given to fit, recalibrate on fresh rows."


def fit_rows(given: LabelledRows, params: Mapping[str, Any], options: FitOptions, belonging: Belonging) -> Fitted:
    """Return what rows teach, calibrated on those that are held out, if any are.

    ``params`` are the arguments of the model, ``options`` what they ask for.
    """
    refuse_huge(given.table)
    target = options.target.decided(given.y)
    if options.architecture.builder is not None:
        PlainNumbers().encode(given.table)
    how, by = GroupOptions.of(params), params["groups"]
    columns = None if by is None or by == AUTO else group_columns(by, given.table, given.X)
    random = check_random_state(params["random_state"])
    given = given.grouped(belonging)
    d1, d2 = _split(given, params["calibration_size"], random)
    training, held_out = given.take(d1), given.take(d2)
    with FitProgress(params["verbose"], options.effort.seconds) as progress:
        weight, together = training.weight, training.entities
        rows = TrainingRows.of(
            training.table,
            training.y,
            None if weight is None else weight / weight.max(),
            int(random.randint(2**31 - 1)),
            options.architecture,
            target,
            d1,
            None if together is None else together.number,
            belonging.keys,
        )
        shape = options.architecture_for(training.n).for_table(rows.encoder)
        recipe, device = options.recipe_for(training.n), options.device
        (learned,) = learn([rows], options.specs, shape, recipe, options.effort, device=device, progress=progress)
        progress.step("Looking for rows that depend on each other")
        method, learned = _with_score(options, learned, rows, training)
        rule = method.rule(options.request)
        grouping: AnyGroups | None = None
        notes: tuple[str, ...] = (PREPARED_OUTSIDE,)
        if columns is not None:
            named = how.learn(rule, [own.take(d1) for own in columns], by, len(d2) or None)
            grouping, codes = named, named.of([own.take(d2) for own in columns])
            held_out = held_out.known(Context(group=codes))
        elif by == AUTO:
            grouping = _search(rule, learned, rows, training, len(d2) or None, belonging)
            if grouping is None:
                notes += (NO_GROUPS,)
            else:
                held_out = held_out.known(Context(group=grouping.of_rows(held_out.table)))
        alone = training.one_of_each_entity()
        fitted = Fitted(
            learned=learned,
            rule=grouped(rule, grouping),
            calibrated=None,
            training_prints=training.prints,
            held_out_prints=held_out.prints,
            calibration_prints=held_out.prints,
            reference=Reference.learn(training.table.take(alone), training.y[alone]),
            params=params,
            training_entities=None if together is None else together.every,
            repeat_rule=None if together is None else together.rule,
            doubts=_doubts(options, learned, rows, training, alone, belonging, is_split=held_out.n > 0),
            seen=Seen.learn(training.table, belonging.keys),
            grouping=grouping,
            source=kept_source(rows.x),
        )
    if not held_out.n:
        return fitted
    step("Calibrating")
    warn_of_absurd_rows(target, held_out, d2)
    return fitted.calibrated_on(held_out, params["on_insufficient"], *notes)


def warn_of_absurd_rows(target: Target, rows: LabelledRows, numbers: Rows) -> None:
    """Warn of calibration rows with absurd targets, by the numbers that the user knows them by."""
    wrong = np.flatnonzero(absurd(target.to_work(rows.y)))
    warn_of_absurd(rows.y, wrong, numbers, trains=False)


def _split(given: LabelledRows, calibration_size: Any, random: np.random.RandomState) -> tuple[Rows, Rows]:
    """Return training rows, those of positive weight, and calibration rows."""
    d1, d2 = split_rows(given.n, calibration_size, random, given.entities)
    if given.weight is not None:
        d1 = d1[given.weight[d1] > 0]
        if len(d1) < 2:
            raise ValueError(f"Only {len(d1)} training rows have a positive sample_weight. At least 2 are needed.")
    return d1, d2


def _search(
    rule: Rule, learned: Learned, rows: TrainingRows, training: LabelledRows, n: int | None, belonging: Belonging
) -> TreeGroups | None:
    """Return groups that one promise would treat unequally, by copies that did not train on the rows if there are."""
    if learned.left_out is not None:
        predicted, seen = learned.predict_left_out(rows.x)
    else:
        predicted, seen = learned.predict_encoded(rows.x), np.arange(len(rows.x))
    own = training.take(rows.kept[seen])
    scores = rule.scores(predicted, learned.target.to_work(own.y), Context())
    return search_groups(rule, own.table, scores, n, belonging.keys)


def _with_score(
    options: FitOptions, learned: Learned, rows: TrainingRows, training: LabelledRows
) -> tuple[Method, Learned]:
    """Return the method, whose score the training rows may choose, and what was learnt, with that choice in words."""
    if not options.chooses_score or learned.left_out is None:
        return options.method, learned
    some = slice(None, None, -(-len(rows.x) // MOST_TO_CHOOSE))
    predicted, seen = replace(learned, left_out=learned.left_out[some]).predict_left_out(rows.x[some])
    method = sharpest(options.request, predicted, learned.target.to_work(training.y[rows.kept[seen]]))
    return method, replace(learned, choices=f"{learned.choices}, the score {method.name}")


def _doubts(
    options: FitOptions,
    learned: Learned,
    rows: TrainingRows,
    training: LabelledRows,
    alone: Rows,
    belonging: Belonging,
    is_split: bool,
) -> tuple[str, ...]:
    """Return why rows may depend on each other, in sentences that are told too, unless the user said what they are."""
    together = training.entities
    if belonging.split_by is not None or (together is not None and together.rule is None):
        return ()
    every = doubts_of(rows, learned, training.table, training.y, options.request.levels, alone)
    found = [doubt for doubt in every if is_split or doubt.kind == "cluster"]  # who brings D2 chose its time
    for doubt in found:
        warn(doubt.sentence, DependentRowsWarning)
    return tuple(doubt.sentence for doubt in found)
