"""A fitted model of any library, calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.predicted import OneDeviation, Predicted, PredictedInterval
from guardband.calibration.calibrated import Calibrated
from guardband.data.context import context_of
from guardband.data.encoder import TableEncoder
from guardband.data.fingerprint import Prints, fingerprints, refuse_overlap
from guardband.data.labelled_rows import Belonging, LabelledRows, column_target
from guardband.data.reference import Reference
from guardband.data.table import Table, is_frame, read_table, take_columns
from guardband.data.target import Target
from guardband.data.used_rows import UsedRows
from guardband.doors.bands import refuse_faults
from guardband.doors.judged import Judged
from guardband.doors.outputs import Declared, Outputs, declared
from guardband.doors.predictors import BY_COLUMNS, Columns, Predictor, predictor_of
from guardband.doors.residual_widths import ResidualWidths
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named
from guardband.nn.heads import Triple

Array = NDArray[np.float64]

POINT, INTERVAL = "conf-fw", "conf-nn"
"""The methods for a model that predicts a point alone, and for one that predicts more."""


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

    def read(self, columns: Columns) -> Predicted:
        """Return what columns say."""
        reading = self.declared.reading
        if columns.shape[1] != reading.columns:
            raise ValueError(
                f"The model must predict {reading.columns} columns, {self.declared.what}, found {columns.shape[1]}. "
                "Say what they are by outputs=..."
            )
        predicted: Predicted = reading.read(columns[None, None], np)
        if isinstance(predicted, PredictedInterval) and not isinstance(predicted, OneDeviation):
            bands = np.stack(predicted.parts)
            predicted = PredictedInterval(*np.where(np.isnan(bands).any(0), bands, np.sort(bands, axis=0)))
        refuse_faults(predicted)
        return predicted


class GuardedModel(Judged):
    """A calibrated model of any library: intervals, the certificate, and an audit of its promise.

    ``gb.calibrate`` makes one. ``model`` is the model as it was given: whoever changes it voids the promise.
    ``arguments`` are those of ``calibrate``, with what was found out about the model.
    """

    def __init__(
        self,
        model: Any,
        bands: ModelBands,
        calibrated: Calibrated,
        used: UsedRows,
        encoder: TableEncoder,
        names: tuple[str, ...] | None,
        belonging: Belonging,
        arguments: Mapping[str, Any],
        has_residuals: bool,
        declared_outputs: Any,
    ) -> None:
        self.model = model
        self.arguments, self.has_residuals, self.declared_outputs = arguments, has_residuals, declared_outputs
        self.calibration_ = calibrated
        self.fitted_ = used
        self.target_ = Target(None, None, None)
        self.belonging = belonging
        self.bands, self.encoder, self.names = bands, encoder, names

    @property
    def certificate(self) -> Certificate:
        """What is promised of the intervals."""
        return self.calibration_.certificate

    def predict(self, X: Any) -> Array:
        """Return the point predictions, ``(n,)``."""
        return self.predict_interval(X).point

    def predict_interval(
        self,
        X: Any,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
    ) -> Intervals:
        """Return the ``Intervals`` of new rows, at other levels if asked for."""
        calibrated, table = self.calibration_.at(confidence_level, alpha), self.read_rows(X)
        ends = calibrated.ends(self._predicted(X, table), context_of(table))
        return calibrated.intervals(ends, index=table.index, input_names=(*table.names, *table.extra))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to one file; ``gb.load(path, model=...)`` puts it together with your model again.

        The model itself is not in the file, and neither are the widths learnt from residuals: bring both again.
        """
        from guardband.doors.model_file import save

        save(self, path)

    def made_by(self) -> list[tuple[str, str]]:
        """Return what the model is, for the page."""
        return [("Model", type(self.model).__name__), ("Columns", f"{len(self.encoder.codes):,}")]

    def settings(self) -> list[tuple[str, str]]:
        """Return the settings of the model itself that guardband knows of: none."""
        return []

    def read_rows(self, X: Any) -> Table:
        """Return rows with the columns of the calibration rows, as what they were then."""
        table = read_table(X, self.names if is_frame(X) else None)
        if len(table.columns) != len(self.encoder.codes):
            raise ValueError(
                f"X must have {len(self.encoder.codes)} columns, as the calibration rows have, found "
                f"{len(table.columns)}."
            )
        return table.read_as(self.encoder.kinds)

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the model predicts for rows that ``read_rows`` returned, and their columns as numbers."""
        inputs = self.encoder.encode(table)
        return self._predicted(X, table), inputs[:, : inputs.shape[1] - len(self.encoder.sizes)]

    def _predicted(self, X: Any, table: Table) -> Predicted:
        """Ask the model, which may find columns by their place, with those of the calibration rows in their order."""
        return self.bands.predict(X if self.names is None else take_columns(X, self.names), table.n_rows)


def calibrate_model(
    model: Any,
    data: Any,
    arguments: Mapping[str, Any],
    *,
    residuals: Any = None,
    training: Any = None,
    entities: Any = None,
    split_by: Any = None,
) -> GuardedModel:
    """Return a model calibrated on ``data``, rows and outcomes that no training has seen.

    ``arguments`` are those of ``calibrate`` for the rule; the others are as there.
    """
    X, y = _pair(data, "data")
    belonging, table = Belonging(split_by), read_table(X).settled()
    rows = LabelledRows.of(X, table, y, entities=belonging.labelled(entities, table.n_rows))
    trained = [
        _prints(own, name) for own, name in ((training, "training"), (residuals, "residuals")) if own is not None
    ]
    known: Prints = np.concatenate(trained) if trained else rows.prints[:0]
    if trained:
        refuse_overlap(rows.prints, known)
    rows = rows.grouped(belonging)
    predictor = asked(model, arguments["outputs"], residuals)
    bands, method, request, columns, outputs = _read(predictor, rows, arguments)
    block = (bands.read(columns), rows.y, context_of(rows.table))
    rule, on_insufficient = method.rule(request), request.on_insufficient
    if rows.entities is None:
        calibrated = Calibrated.from_blocks(rule, [block], on_insufficient=on_insufficient)
    else:
        calibrated = Calibrated.from_entities(rule, block, rows.entities, on_insufficient=on_insufficient)
    alone = rows.one_of_each_entity()
    labels = None if rows.entities is None else rows.entities.every
    used = UsedRows(
        training_prints=known,
        calibration_prints=rows.prints,
        reference=Reference.learn(rows.table.take(alone), rows.y[alone]),
        calibration_entities=labels,
        repeat_rule=None if rows.entities is None else rows.entities.rule,
    )
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
    )


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
    return ResidualWidths.learn(predictor, *_pair(residuals, "residuals")).predictor


def _read(
    predictor: Predictor, rows: LabelledRows, arguments: Mapping[str, Any]
) -> tuple[ModelBands, Method, Request, Columns, Outputs]:
    """Return how the model is read, the method, the request, its columns for the calibration rows, and their kind."""
    options = {name: value for name, value in arguments.items() if name not in ("method", "outputs")}
    request, columns, outputs = Request.of(**options), None, predictor.outputs
    if predictor.by_columns:
        columns = predictor.columns(rows.X, rows.n, ())
        outputs = BY_COLUMNS.get(columns.shape[1])
        if outputs is None:
            raise ValueError(f"The function returns {columns.shape[1]} columns: say what they are by outputs=...")
    name = arguments["method"]
    method = method_named((POINT if outputs == "point" else INTERVAL) if name is None else name)
    method.check(request)
    if outputs == "point" and method.rule(request).takes is not Predicted:
        raise ValueError(
            f'method="{method.name}" needs more than the point that this model predicts. Use method="{POINT}", or pass '
            "residuals=(X, y), rows on which guardband learns how far off the model is."
        )
    method.check_networks(request)
    levels: tuple[float, ...] = ()
    if outputs is None:
        outputs = levels = _levels_for(method, request)
    elif isinstance(outputs, tuple) and "tau" in method.options and request.tau is None:
        request = replace(request, tau=_nearest(outputs, request))
    read, request = declared(outputs, method, request)
    bands = ModelBands(predictor, read, levels)
    columns = predictor.columns(rows.X, rows.n, levels) if columns is None else columns
    return bands, method, request, columns, outputs


def _levels_for(method: Method, request: Request) -> tuple[float, ...]:
    """Return the quantiles to ask a model for that predicts any: the median, and a pair for each candidate."""
    heads = [spec.head for spec in method.networks(request)]
    taus = {head.tau for head in heads if isinstance(head, Triple)} or {min(request.levels.alphas)}
    below = sorted(tau / 2 for tau in taus)
    return (*below, 0.5, *(1 - q for q in reversed(below)))


def _nearest(quantiles: tuple[float, ...], request: Request) -> float:
    """Return which pair of quantiles comes nearest to the level, by its tau."""
    pairs = [2 * q for q in quantiles if q < 0.5 and np.isclose(1 - q, quantiles, rtol=0, atol=1e-9).any()]
    wanted = min(request.levels.alphas)
    return min(pairs, key=lambda tau: abs(tau - wanted), default=wanted)


def _pair(data: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"{name} must be a pair (X, y) of rows and their true values, found {type(data).__name__}.")
    X, y = data
    return X, y


def _prints(data: Any, name: str) -> Prints:
    X, y = _pair(data, name)
    table = read_table(X).settled()
    return fingerprints(table, column_target(y, table.n_rows))
