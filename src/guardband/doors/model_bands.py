"""What a fitted model of any library predicts, and how a rule reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.predicted import OneDeviation, Predicted, PredictedInterval
from guardband.data.labelled_rows import LabelledRows, pair_of
from guardband.doors.bounds_in_order import refuse_faults, with_sorted_bounds
from guardband.doors.groups import request_of
from guardband.doors.model_method import INTERVAL, POINT, check_method, other_columns
from guardband.doors.outputs import Declared, Outputs, declared
from guardband.doors.predictors import BY_COLUMNS, Columns, Predictor, model_in_words, predictor_of
from guardband.doors.residual_widths import ResidualWidths
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named
from guardband.nn.heads import Triple


@dataclass(frozen=True, eq=False)
class ModelBands:
    """What a model predicts, read for a rule: bounds that cross are put in order.

    ``levels`` are the quantiles that a model is asked for which predicts any.
    """

    predictor: Predictor
    declared: Declared
    levels: tuple[float, ...]

    def predict(self, X: Any, n_rows: int) -> Predicted:
        """Return what the model predicts for rows, as one copy."""
        return self.read(self.predictor.columns(X, n_rows, self.levels))

    def in_words(self, model: Any) -> str:
        """Return what the model is by name."""
        return model_in_words(model)

    def read(self, columns: Columns) -> Predicted:
        """Return what columns say."""
        reading = self.declared.reading
        if columns.shape[1] != reading.columns:
            raise ValueError(other_columns(reading.columns, self.declared.what, columns.shape[1]))
        predicted: Predicted = reading.read(columns[None, None], np)
        if isinstance(predicted, PredictedInterval) and not isinstance(predicted, OneDeviation):
            predicted = with_sorted_bounds(predicted)
        refuse_faults(predicted)
        return predicted


def asked(model: Any, outputs: Any, residuals: Any) -> Predictor:
    """Return how to ask a model, with widths by a model of its residuals if there are rows for one."""
    if callable(outputs):
        raise ValueError(
            "outputs as a function is for torch networks. Pass a function from rows to bands as the model."
        )
    predictor = predictor_of(model, outputs)
    if residuals is None:
        return predictor
    if predictor.outputs != "point" and not predictor.by_columns:
        raise ValueError("This model predicts more than a point, and needs no residuals. Remove residuals=...")
    return ResidualWidths.learn(predictor, *pair_of(residuals, "residuals")).predictor


def read_model(
    predictor: Predictor, rows: LabelledRows, arguments: Mapping[str, Any]
) -> tuple[ModelBands, Method, Request, Columns, Outputs]:
    """Return how the model is read, the method, the request, its columns for the calibration rows, and their kind."""
    request, columns, outputs = request_of(arguments), None, predictor.outputs
    if predictor.by_columns:
        columns = predictor.columns(rows.X, rows.n, ())
        outputs = BY_COLUMNS.get(columns.shape[1])
        if outputs is None:
            raise ValueError(
                f"The function returns {columns.shape[1]} columns, and guardband knows 1 (a point), 2 (bounds) or 3 "
                "(bounds and a point). Return as many, or pass the levels of quantiles as outputs=[...]."
            )
    name = arguments["method"]
    method = method_named((POINT if outputs == "point" else INTERVAL) if name is None else name)
    method.check(request)
    check_method(method, request, outputs)
    method.check_networks(request)
    levels: tuple[float, ...] = ()
    if outputs is None:
        outputs = levels = _levels_for(method, request)
    elif isinstance(outputs, tuple) and "tau" in method.options and request.tau is None and not request.is_sided:
        request = replace(request, tau=_nearest(outputs, request))
    read, request = declared(outputs, method, request)
    bands = ModelBands(predictor, read, levels)
    columns = predictor.columns(rows.X, rows.n, levels) if columns is None else columns
    return bands, method, request, columns, outputs


def _levels_for(method: Method, request: Request) -> tuple[float, ...]:
    """Return the quantiles to ask a model for that predicts any: the median, and a pair for each candidate."""
    heads = [spec.head for spec in method.networks(request)]
    tails = {head.tails for head in heads if isinstance(head, Triple)} or {request.shares_outside}
    return (*sorted({low for low, _ in tails}), 0.5, *sorted({1 - high for _, high in tails}))


def _nearest(quantiles: tuple[float, ...], request: Request) -> float:
    """Return which pair of quantiles comes nearest to the level, by its tau."""
    pairs = [2 * q for q in quantiles if q < 0.5 and np.isclose(1 - q, quantiles, rtol=0, atol=1e-9).any()]
    wanted = min(request.levels.alphas)
    return min(pairs, key=lambda tau: abs(tau - wanted), default=wanted)


def tau_of(arguments: Mapping[str, Any]) -> float:
    """Return the level of a model's bounds: that of its arguments, or the smallest alpha."""
    return float(arguments["tau"] or min(request_of(arguments).levels.alphas))
