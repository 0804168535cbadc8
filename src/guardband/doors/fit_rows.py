"""From labelled rows to a fitted model: split, train, choose, look for rows that depend on each other, calibrate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from guardband.bands.placement import Placement
from guardband.bands.predicted import Context
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.rule import Rule
from guardband.data.absurd import absurd, warn_of_absurd
from guardband.data.encoder import PlainNumbers
from guardband.data.grouping import group_columns
from guardband.data.labelled_rows import Belonging, LabelledRows, Rows
from guardband.data.several_targets import SeveralTargets, without_absurd
from guardband.data.split import split_rows
from guardband.data.table import Column, SomeRows, refuse_huge
from guardband.data.target import Target
from guardband.data.tree_groups import AUTO, TreeGroups
from guardband.doors.cross_checks import standing_alone
from guardband.doors.fit_crossed import fit_crossed
from guardband.doors.fitted import Fitted
from guardband.doors.groups import NO_GROUPS, AnyGroups, GroupOptions, grouped, search_groups
from guardband.doors.progress import FitProgress
from guardband.doors.training_set import TrainingSet
from guardband.exceptions import DependentRowsWarning, warn
from guardband.learning.category_trial import Trial
from guardband.learning.choice import sharpest
from guardband.learning.dependence import MOST_ERRORS, doubts_of
from guardband.learning.distill import distill
from guardband.learning.learn import MOST_HELD_OUT, Trainer, learn
from guardband.learning.learned import Learned
from guardband.learning.optimisers import Way, learn_by_better
from guardband.learning.options import FitOptions
from guardband.learning.placed import learn_placement, placement_of
from guardband.learning.several import several_rule, sharpest_for_all, with_scales
from guardband.learning.shift import kept_source
from guardband.methods.method import Method
from guardband.progress import step
from guardband.training.deadline import NEVER, Deadline
from guardband.training.job import Job

MOST_TO_CHOOSE = 20_000
"""Training rows that choose a score: more would say no more."""
PREPARED_OUTSIDE = "If you fitted a scaler or tuned settings on the rows given to fit, recalibrate on fresh rows."


def fit_rows(
    given: LabelledRows,
    params: Mapping[str, Any],
    options: FitOptions,
    belonging: Belonging,
    deadline: Deadline = NEVER,
    trainer: Trainer = Job.train,
) -> Fitted:
    """Return what rows teach, calibrated on those that are held out, if any are.

    ``params`` are the arguments of the model, ``options`` what they ask for. Training ends soon enough for all of this
    to be done before the ``deadline``. The ``trainer`` says where networks are trained.
    """
    refuse_huge(given.table)
    if given.targets:
        options = options.for_targets(given.targets)
    target = options.target.decided(given.y)
    if options.architecture.builder is not None:
        PlainNumbers().reader(given.table)(slice(0, 1))  # refuses what it cannot take
    if params["calibration"] != "split":
        return fit_crossed(
            standing_alone(given, belonging, params["calibration"]), params, options, belonging, deadline, trainer
        )
    how, by = GroupOptions.of(params), params["groups"]
    columns = None if by is None or by == AUTO else group_columns(by, given.table, given.X)
    random = check_random_state(params["random_state"])
    given = given.grouped(belonging)
    split = _split(given, params["calibration_size"], random, bool(params["split_by_time"]))
    seed = int(random.randint(2**31 - 1))
    fitted, held_out, notes = _trained(
        given, split, seed, target, columns, how, params, options, belonging, deadline, trainer
    )
    if not held_out.n:
        return fitted
    step("Calibrating")
    warn_of_absurd_rows(target, held_out, split[1])
    return fitted.calibrated_on(held_out, params["on_insufficient"], *notes)


def _trained(
    given: LabelledRows,
    split: tuple[Rows, Rows],
    seed: int,
    target: Target,
    columns: Sequence[Column] | None,
    how: GroupOptions,
    params: Mapping[str, Any],
    options: FitOptions,
    belonging: Belonging,
    deadline: Deadline,
    trainer: Trainer,
) -> tuple[Fitted, LabelledRows, tuple[str, ...]]:
    """Return what the training rows teach, the calibration rows, and what is to be said of both.

    ``columns`` make groups. The training rows as networks see them, which may be large, are gone afterwards.
    """
    (to_train, to_calibrate), by, keys = split, params["groups"], belonging.keys
    known_to_belong = belonging.split_by is not None or (given.entities is not None and given.entities.rule is None)
    with FitProgress(params["verbose"], deadline.left) as progress:
        training = TrainingSet.of(given, to_train, seed, options.architecture, target, keys, not known_to_belong)
        n, long_tail = training.n, training.rows.target.has_long_tail
        base, steps, _ = options.training_for(n, muon=not long_tail)
        rows = Trial(options, base, steps, progress).better(training.rows, deadline)

        def learnt(ways: Mapping[int, Way]) -> dict[int, Learned]:
            ((i, (shape, recipe, effort)),) = ways.items()
            (own,) = learn(
                [rows],
                options.specs,
                shape.for_table(rows.encoder),
                recipe,
                effort,
                device=options.device,
                progress=progress,
                deadline=deadline,
                predicted_later=(1 + options.distribution) * len(to_calibrate)
                + _left_out_later(options, by, n, effort.copies),
                trainer=trainer,
            )
            return {i: own}

        (learned,) = learn_by_better(learnt, options, n, [long_tail], limited=deadline.is_set)
        rows = rows.as_new(learned.left_out)  # from here on they are only predicted
        training, together = replace(training, rows=rows), training.entities
        progress.step("Looking for rows that depend on each other")
        method, learned = _with_score(options, learned, training)
        at_random = len(to_calibrate) > 0 and not params["split_by_time"]
        doubts = _doubts(options, learned, training, given, at_random)
        held_out = given.take(to_calibrate)
        rule = _rule(method, options, learned, training, options.targets)
        grouping: AnyGroups | None = None
        notes: tuple[str, ...] = (PREPARED_OUTSIDE,)
        if columns is not None:
            named = how.learn(rule, [own.take(to_train) for own in columns], by, len(to_calibrate) or None)
            grouping, codes = named, named.of([own.take(to_calibrate) for own in columns])
            held_out = held_out.known(Context(group=codes))
        elif by == AUTO:
            grouping = _search(rule, learned, training, given, len(to_calibrate) or None, belonging)
            if grouping is None:
                notes += (NO_GROUPS,)
            else:
                held_out = held_out.known(Context(group=grouping.of_rows(held_out.table)))
        placement = _placement(options, learned, training)
        if options.distills:
            table, places = given.table, training.places[rows.kept]
            learned = distill(learned, table, places, len(rows.y), rows.seed, progress)
        fitted = Fitted(
            learned=learned,
            rule=grouped(rule, grouping),
            calibrated=None,
            training_prints=training.prints,
            held_out_prints=held_out.prints,
            calibration_prints=held_out.prints,
            reference=training.reference,
            params=params,
            training_entities=None if together is None else together.every,
            repeat_rule=None if together is None else together.rule,
            doubts=doubts,
            seen=training.seen,
            grouping=grouping,
            source=kept_source(rows.x),
            trained_until=_last(given, to_train) if params["split_by_time"] else None,
            placement=placement,
        )
    return fitted, held_out, notes


def warn_of_absurd_rows(target: Target, rows: LabelledRows, numbers: Rows) -> None:
    """Warn of calibration rows with absurd targets, by the numbers that the user knows them by."""
    if isinstance(target, SeveralTargets):
        without_absurd(target, rows.y, numbers, trains=False)
        return
    wrong = np.flatnonzero(absurd(target.to_work(rows.y)))
    warn_of_absurd(rows.y, wrong, numbers, trains=False)


def _split(
    given: LabelledRows, calibration_size: Any, random: np.random.RandomState, by_time: bool
) -> tuple[Rows, Rows]:
    """Return training rows, those of positive weight, and calibration rows, the latest if the split is by time."""
    times = given.times if by_time else None
    if times is not None:
        times.need_known()
    to_train, to_calibrate = split_rows(given.n, calibration_size, random, given.entities, times=times)
    if given.weight is not None:
        to_train = to_train[given.weight[to_train] > 0]
        if len(to_train) < 2:
            raise ValueError(
                f"Only {len(to_train)} training rows have a positive sample_weight. At least 2 are needed."
            )
    return to_train, to_calibrate


def _last(given: LabelledRows, rows: Rows) -> float:
    """Return when the last of some rows came."""
    assert given.times is not None
    return float(given.times.values[rows].max())


def _search(
    rule: Rule, learned: Learned, training: TrainingSet, given: LabelledRows, n: int | None, belonging: Belonging
) -> TreeGroups | None:
    """Return groups that one promise would treat unequally, by copies that did not train on the rows if there are."""
    rows = training.rows
    if learned.left_out is not None:
        predicted, seen = learned.predict_left_out(rows.x)
    else:
        predicted, seen = learned.predict_encoded(rows.x), np.arange(len(rows.x))
    own = given.take(training.places[rows.kept[seen]])
    scores = rule.scores(predicted, learned.target.to_work(own.y), Context())
    return search_groups(rule, own.table, scores, n, belonging.keys)


def _left_out_later(options: FitOptions, groups: Any, n: int, copies: int) -> int:
    """Return how many rows take as long by all copies as what is predicted of n training rows, each by one copy."""
    left_out = min(n, copies * MOST_HELD_OUT)
    every = bool(groups == AUTO) + options.distribution
    some = min(n, MOST_ERRORS) + options.chooses_score * min(left_out, MOST_TO_CHOOSE)
    return -(-(some + every * left_out) // copies)


def _with_score(options: FitOptions, learned: Learned, training: TrainingSet) -> tuple[Method, Learned]:
    """Return the method, whose score the training rows may choose, and what was learnt, with that choice in words."""
    if not options.chooses_score or learned.left_out is None:
        return options.method, learned
    rows = training.rows
    some = slice(None, None, -(-len(rows.x) // MOST_TO_CHOOSE))
    predicted, seen = replace(learned, left_out=learned.left_out[some]).predict_left_out(rows.x[some])
    where = rows.kept[some][seen]
    target, y = learned.target, learned.target.to_work(training.y[where])
    if isinstance(predicted, PredictedSeveral):
        method = sharpest_for_all(options.request, predicted, y)
    else:
        method = sharpest(options.request, predicted, y, target.to_units)
    return method, replace(learned, choices=f"{learned.choices}, the score {method.name}")


def _placement(options: FitOptions, learned: Learned, training: TrainingSet) -> Placement | None:
    """Return where outcomes lie within predictions; with distribution=True the training rows fit its tails."""
    if not options.distribution:
        return placement_of(learned.heads)
    rows = training.rows
    return learn_placement(learned, rows.x, learned.target.to_work(training.y[rows.kept]))


def _rule(method: Method, options: FitOptions, learned: Learned, training: TrainingSet, targets: Any) -> Rule:
    """Return the rule; scales of several targets are learnt by copies that did not train on a row if there are any."""
    if not options.names:
        return method.rule(options.request)
    rule, rows = several_rule(method, options.request, targets, options.names), training.rows
    some = slice(None, None, -(-len(rows.x) // MOST_TO_CHOOSE))
    if learned.left_out is not None:
        predicted, seen = replace(learned, left_out=learned.left_out[some]).predict_left_out(rows.x[some])
    else:
        predicted = learned.predict_encoded(rows.x[some])
        seen = np.arange(len(predicted))
    y = learned.target.to_work(training.y[rows.kept[some][seen]])
    return with_scales(rule, cast(PredictedSeveral, predicted), y)


def _doubts(
    options: FitOptions, learned: Learned, training: TrainingSet, given: LabelledRows, at_random: bool
) -> tuple[str, ...]:
    """Return why rows may depend on each other, in sentences that are told too, unless the user said what they are."""
    if training.suspects is None:
        return ()
    table = SomeRows(given.table, training.places)
    levels, alone = options.request.levels, training.alone
    of_coverage = options.request.risk is None
    every = doubts_of(training.suspects, training.rows, learned, table, training.y, levels, alone, of_coverage)
    # Of rows that were not drawn at random, the user has chosen when they came.
    found = [doubt for doubt in every if at_random or doubt.kind == "cluster"]
    for doubt in found:
        warn(doubt.sentence, DependentRowsWarning)
    return tuple(doubt.sentence for doubt in found)
