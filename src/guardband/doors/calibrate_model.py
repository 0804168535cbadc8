"""A fitted model of any library, calibrated on rows that did not train it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from guardband.bands.predicted import Context, Predicted
from guardband.calibration.rule import Rule
from guardband.data.encoder import TableEncoder
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.grouping import group_columns
from guardband.data.labelled_rows import Belonging, LabelledRows, column_target, pair_of
from guardband.data.table import Table, is_frame, read_table, take_columns
from guardband.data.tree_groups import AUTO
from guardband.data.unlike import Seen
from guardband.data.used_rows import used_rows
from guardband.doors.calibrated_rows import calibrated_rows
from guardband.doors.groups import AnyGroups, GroupOptions, grouped, search_groups
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.model_bands import ModelBands, asked, read_model, tau_of
from guardband.doors.model_mistakes import refuse_shared_rows, refuse_swapped_bounds, warn_of_one_quantile
from guardband.doors.model_places import model_places
from guardband.doors.weights import (
    Weighting,
    refuse_entities,
    weighted,
    with_weights,
)
from guardband.learning.shift import KnownRows, kept_source


def calibrate_model(
    model: Any,
    data: Any,
    arguments: Mapping[str, Any],
    *,
    residuals: Any = None,
    training: Any = None,
    entities: Any = None,
    split_by: Any = None,
    weights: Any = None,
    max_weight: float | None = None,
) -> GuardedModel:
    """Return a model calibrated on ``data``, rows and outcomes that no training has seen.

    ``arguments`` are those of ``calibrate`` for the rule; the others are as there.
    """
    X, y = pair_of(data, "data")
    belonging, table = Belonging(split_by), read_table(X).settled()
    weighting = Weighting.of(weights, max_weight)
    if weighting is not None:
        own = weighting.of_calibration(X, table.n_rows, weights)
        table = replace(table, context=with_weights(table.context, own))
    rows = LabelledRows.of(X, table, y, entities=belonging.labelled(entities, table.n_rows))
    trained, taught = _prints(training, "training"), _prints(residuals, "residuals")
    refuse_shared_rows(rows.prints, trained, taught)
    known: Prints = np.concatenate([rows.prints[:0], *(own for own in (trained, taught) if own is not None)])
    rows = rows.grouped(belonging)
    predictor = asked(model, arguments["outputs"], residuals)
    if arguments["outputs"] is None and not isinstance(model, list | tuple):
        warn_of_one_quantile(model, arguments["side"])
    bands, method, request, columns, outputs = read_model(predictor, rows, arguments)
    refuse_swapped_bounds(columns, outputs, isinstance(model, list | tuple))
    rule, on_insufficient = method.rule(request), request.on_insufficient
    grouping = _grouping(rule, rows, training, arguments)
    if arguments["groups"] == AUTO:
        grouping = _searched(rule, bands, rows, residuals, training)
    if grouping is not None:
        context = replace(rows.table.context, group=grouping.of_rows(rows.table, rows.X))
        rule, rows = grouped(rule, grouping), rows.known(context)
    refuse_entities(rows.entities, weighting)
    plain, rule = rule, weighted(rule, weighting)
    block = (bands.read(columns), rows.y, rows.table.context)
    calibrated = calibrated_rows(rule, block, rows.entities, on_insufficient=on_insufficient)
    used = used_rows(rows, known)
    names = rows.table.names if is_frame(X) else None
    encoder = TableEncoder.learn(rows.table, robust=True)
    belonging = replace(belonging, rule=used.repeat_rule)
    found = {**arguments, "method": method, "outputs": outputs, "tau": request.tau, "taus": request.taus}
    return GuardedModel(
        model,
        bands,
        calibrated,
        used,
        encoder,
        names,
        belonging,
        found,
        residuals is not None,
        arguments["outputs"],
        grouping,
        weighting,
        plain,
        _known(training, rows, block[0]),
        None
        if grouping is not None or weighting is not None
        else model_places(method.name, bands, columns, tau_of(found), rows.y, rows.entities),
    )


def _known(training: Any, rows: LabelledRows, predicted: Predicted) -> KnownRows | None:
    """Return what ``for_target`` needs of the rows, if the training rows are there: columns are as they say."""
    if training is None:
        return None
    X, _ = pair_of(training, "training")
    table = _like(rows, X)
    encoder = TableEncoder.learn(table, robust=True)
    source = kept_source(encoder.encode(table))
    seen = Seen.learn(table)
    return KnownRows(encoder, source, encoder.encode(rows.table), predicted, rows.y, rows.entities, seen)


def _like(rows: LabelledRows, X: Any) -> Table:
    """Return other rows with the columns of these, as what they are here."""
    return read_table(X, rows.table.names if is_frame(X) else None).read_as([c.kind for c in rows.table.columns])


def _grouping(rule: Rule, rows: LabelledRows, training: Any, arguments: Mapping[str, Any]) -> AnyGroups | None:
    """Return the groups that have a promise of their own, fixed by the training rows if they are there."""
    by = arguments["groups"]
    if by is None or by == AUTO:
        return None
    table, X = rows.table, rows.X
    if training is not None:
        X, _ = pair_of(training, "training")
        table = _like(rows, X)
    columns = group_columns(by, table, X)
    return GroupOptions.of(arguments).learn(rule, columns, by, rows.n, are_training_rows=training is not None)


def _searched(rule: Rule, bands: ModelBands, rows: LabelledRows, residuals: Any, training: Any) -> AnyGroups | None:
    """Return groups that the model treats unequally, looked for on rows apart from the calibration rows."""
    apart = residuals if residuals is not None else training
    if apart is None:
        raise ValueError(
            'groups="auto" looks for groups on rows that are not calibration rows. Pass training=(X, y), best with '
            "rows that did not train the model, or name the groups."
        )
    X, y = pair_of(apart, "training")
    table = _like(rows, X)
    predicted = bands.predict(take_columns(X, table.names) if is_frame(X) else X, table.n_rows)
    scores = rule.scores(predicted, column_target(y, table.n_rows), Context())
    return search_groups(rule, table, scores, rows.n)


def _prints(data: Any, name: str) -> Prints | None:
    if data is None:
        return None
    X, y = pair_of(data, name)
    table = read_table(X).settled()
    return fingerprints(table, column_target(y, table.n_rows))
