"""Steps of ``IntervalRegressor``: the rows that a user gives to ``fit`` and ``calibrate`` are checked and learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from guardband.data.entities import refuse_seen
from guardband.data.fingerprint import count_overlap, refuse_overlap
from guardband.data.labelled_rows import Belonging, LabelledRows
from guardband.data.table import Table, read_table
from guardband.data.times import Times
from guardband.doors.cross_checks import check_crossing
from guardband.doors.fit_rows import PREPARED_OUTSIDE, fit_rows, warn_of_absurd_rows
from guardband.doors.fitted import Fitted
from guardband.doors.weights import Weighting, with_weights
from guardband.learning.learn import Trainer
from guardband.learning.options import FitOptions
from guardband.training.deadline import Deadline

Array = NDArray[np.float64]

PROMISED = (
    "method",
    "confidence_level",
    "alpha",
    "guarantee",
    "delta",
    "joint",
    "side",
    "tails",
    "risk",
    "targets",
    "taus",
    "rule",
    "average",
    "groups",
    "small_groups",
    "missing_groups",
    "group_bins",
)
"""What fit settles of the promise."""


def fit_table(
    params: Mapping[str, Any], X: Any, y: Any, sample_weight: Any, entities: Any, time: Any, trainer: Trainer
) -> tuple[Fitted, LabelledRows]:
    """Return what a table teaches, and the rows whose target is known; ``params`` are the arguments of the model."""
    options, belonging = FitOptions.of(params), Belonging(params["split_by"])
    check_crossing(params, options, {"sample_weight": sample_weight, "entities": entities})
    deadline = Deadline.after(options.effort.seconds)
    table = read_table(X).settled()
    validate_data(BaseEstimator(), X, skip_check_array=True)  # column names that cannot be kept are refused now
    labels = belonging.labelled(entities, table.n_rows)
    weight = None if sample_weight is None else _weights(sample_weight, table.n_rows)
    times = Times.of(params["split_by_time"], time, X, table.n_rows)
    if params["split_by_time"] and (labels is not None or belonging.names_entities):
        raise ValueError(
            "split_by_time and what rows belong to (split_by, entities) exclude each other. Remove one of them."
        )
    several = None if params["targets"] is None else ()
    given = LabelledRows.of(X, table, y, weight, labels, times, several)
    return fit_rows(given, params, options, belonging, deadline, trainer), given


def refuse_another_promise(params: Mapping[str, Any], fitted: Fitted) -> None:
    """Raise if arguments of the promise were changed after the fit."""
    for name in PROMISED:
        if repr(params[name]) != repr(fitted.params.get(name)):
            raise ValueError(f"{name} was changed after fit, and has no effect on a fitted model. Fit again.")


def calibrate_table(
    fitted: Fitted,
    params: Mapping[str, Any],
    belonging: Belonging,
    X: Any,
    table: Table,
    y: Any,
    *,
    entities: Any,
    weights: Any,
    max_weight: float | None,
) -> Fitted:
    """Return what was fitted, calibrated on rows that did not train; ``table`` is what was read of ``X``."""
    weighting = Weighting.of(weights, max_weight)
    if weighting is not None:
        own = weighting.of_calibration(X, table.n_rows, weights)
        table = replace(table, context=with_weights(table.context, own))
    by_time = params["split_by_time"] if isinstance(params["split_by_time"], str) else False
    times = Times.of(by_time, None, X, table.n_rows)
    labels = belonging.labelled(entities, table.n_rows)
    rows = LabelledRows.of(X, table, y, entities=labels, times=times, several=fitted.rule.target_names or None)
    refuse_overlap(rows.prints, fitted.training_prints, by_chance=fitted.training_entities is None)
    again = count_overlap(rows.prints, fitted.held_out_prints)
    notes = (f"{again} of {rows.n} calibration rows were also given to fit. {PREPARED_OUTSIDE}",) if again else ()
    rows = rows.grouped(belonging)
    if rows.entities is not None and fitted.training_entities is not None:
        refuse_seen(rows.entities, fitted.training_entities)
    warn_of_absurd_rows(fitted.learned.target, rows, np.arange(rows.n))
    return fitted.calibrated_on(rows, params["on_insufficient"], *notes, weighting=weighting)


def _weights(sample_weight: Any, n_rows: int) -> Array:
    try:
        weight: Array = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64)
    except ValueError as error:
        raise ValueError(str(error)) from None  # what is wrong with weights is said in scikit-learn's words
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative. Use 0 for rows that should not train.")
    return weight
