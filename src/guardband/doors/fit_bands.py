"""Steps of ``BandCalibrator.fit``: from predictions with true values to a calibrated rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.predicted import Context, Predicted
from guardband.calibration.calibrated import Block, Calibrated
from guardband.calibration.cross import BROUGHT, crossed, refusal
from guardband.data.entities import Entities, entities_of_labels
from guardband.data.group_labels import columns_of_labels, different_labels
from guardband.data.grouping import Codes, Grouping, group_names, named_columns
from guardband.data.target import read_target
from guardband.doors.band_columns import BandColumns, Form
from guardband.doors.band_options import BandOptions
from guardband.doors.band_rows import FittedBands, GivenRows
from guardband.doors.bounds_in_order import SORT, SWAP
from guardband.doors.fold_labels import fold_numbers, refuse_folds
from guardband.doors.several_bands import known_rows, labelled_rows
from guardband.doors.weights import Weighting, refuse_entities

Array = NDArray[np.float64]

ROWS_AT_A_TIME = 2**15


def fit_arrays(
    options: BandOptions,
    form: Form | None,
    predicted: Predicted,
    y: ArrayLike,
    *,
    context: Context | None,
    entities: Any,
    folds: Any,
    groups: Any,
    training_groups: Any,
    weights: Any,
    max_weight: float | None,
) -> FittedBands:
    """Return what predictions with all of their axes teach; ``form`` is None if no table can hold them."""
    if options.calibration != "split":
        idle = {"entities": entities, "groups": groups, "context": context}
        idle |= {"training_groups": training_groups, "weights": weights, "max_weight": max_weight}
        for name, value in idle.items():
            if value is not None:
                raise ValueError(refusal(options.calibration, name))
        return _fit_crossed(options, form, predicted, y, folds)
    refuse_folds(folds)
    n = len(predicted)
    found = _groups_of_labels(options, groups, training_groups, n)
    weighting = Weighting.of(weights, max_weight)
    context = _with_weights(context or Context(), weighting, None, weights, n)
    return _fit(options, form, predicted, y, context, entities, found, weighting)


def fit_columns(
    options: BandOptions,
    X: Any,
    y: ArrayLike,
    columns: BandColumns,
    *,
    entities: Any,
    split_by: Sequence[str] | None,
    groups: str | Sequence[str] | Grouping | None,
    training: Any,
    weights: str | None,
    max_weight: float | None,
) -> FittedBands:
    """Return what a table teaches whose columns hold predictions."""
    if options.calibration != "split":
        raise ValueError(refusal(options.calibration, "a table of predictions, which has no folds"))
    matrix = columns.numbers_in(X)
    found = _groups_of_columns(options, X, groups, training, len(matrix))
    weighting = Weighting.of(weights, max_weight)
    context = _with_weights(Context(), weighting, X, weights, len(matrix))
    predicted = columns.predicted(matrix)
    return _fit(options, columns.form, predicted, y, context, entities, found, weighting, columns, split_by)


def _fit(
    options: BandOptions,
    form: Form | None,
    predicted: Predicted,
    y: ArrayLike,
    context: Context,
    entities: Any,
    groups: tuple[Grouping, Codes] | None,
    weighting: Weighting | None,
    columns: BandColumns | None = None,
    split_by: Sequence[str] | None = None,
) -> FittedBands:
    """Return what predictions teach; ``columns`` are None if they came as arrays."""
    grouping, codes = groups or (None, None)
    context = context if codes is None else replace(context, group=codes)
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if options.targets is None:
        response = read_target(y, len(predicted))
    else:
        rows, response, names, notes = known_rows(y, len(predicted), options.targets, columns)
        predicted, context = predicted.rows(rows), context.rows(rows)
        entities = None if entities is None else labelled_rows(entities, rows)
    rule = options.rule_for(names, grouping, weighting)
    context.check(rule.uses, len(predicted), rule.method)
    on_insufficient, together = options.request.on_insufficient, None
    hint = SWAP if columns is None else SORT
    if entities is None:
        blocks = _blocks(options, predicted, response, context, hint)
        calibrated = Calibrated.from_blocks(rule, blocks, notes, on_insufficient)
    else:
        together = entities if isinstance(entities, Entities) else entities_of_labels(entities, len(response))
        refuse_entities(together, weighting)
        block = (options.ordered(predicted, 0, hint), response, context)
        calibrated = Calibrated.from_entities(rule, block, together, notes, on_insufficient)
    if form is not None and columns is None:
        columns = BandColumns.default(form, predicted.candidates, rule.target_names)
    given = GivenRows(columns, predicted, response, together, split_by)
    return FittedBands(calibrated, predicted.candidates, given, grouping, weighting)


def _fit_crossed(
    options: BandOptions, form: Form | None, predicted: Predicted, y: ArrayLike, folds: Any
) -> FittedBands:
    """Calibrate on each row's prediction by the model of its fold; columns are those of new rows, of all models."""
    response = read_target(y, len(predicted))
    number, count = fold_numbers(folds, len(response), options.calibration)
    rule = crossed(options.rule, options.calibration, count)
    blocks = _blocks(options, predicted, response, Context(fold=number), SWAP)
    calibrated = Calibrated.from_blocks(rule, blocks, (BROUGHT,), options.request.on_insufficient)
    columns = None if form is None else BandColumns.default(form, count)
    every = predicted.map(lambda part: np.broadcast_to(part, (1, count, part.shape[-1])))
    return FittedBands(calibrated, count, GivenRows(columns, every, response))


def _groups_of_labels(options: BandOptions, groups: Any, training: Any, n: int) -> tuple[Grouping, Codes] | None:
    """Return the groups that labels name, of training rows if there are any, and those of the n rows."""
    if groups is None:
        if training is not None:
            raise ValueError("training_groups says nothing of the calibration rows. Pass groups= too.")
        return None
    first = different_labels(groups, n) if training is None else columns_of_labels(training, len(training))
    learnt = options.groups.learn(options.rule, first, None, n, are_training_rows=training is not None)
    return learnt, learnt.of_labels(groups, n)


def _groups_of_columns(
    options: BandOptions, X: Any, groups: str | Sequence[str] | Grouping | None, training: Any, n: int
) -> tuple[Grouping, Codes] | None:
    """Return the groups that columns name, of training rows if there are any, and those of the n rows."""
    if groups is None:
        return None
    if isinstance(groups, Grouping):
        return groups, groups.of(named_columns(X, groups.column_names))
    names = group_names(groups)
    first = named_columns(X if training is None else training, names)
    learnt = options.groups.learn(options.rule, first, tuple(names), n, are_training_rows=training is not None)
    return learnt, learnt.of(named_columns(X, names))


def _with_weights(context: Context, weighting: Weighting | None, X: Any, weights: Any, n: int) -> Context:
    """Return what is known of n calibration rows, with their weights."""
    return context if weighting is None else replace(context, weight=weighting.of_calibration(X, n, weights))


def _blocks(options: BandOptions, predicted: Predicted, y: Array, context: Context, hint: str) -> Iterator[Block]:
    """Give a part at a time, which stays in the cache: only the scores of all rows are in memory."""
    for start in range(0, len(y), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        yield options.ordered(predicted.rows(rows), start, hint), y[rows], context.rows(rows)
