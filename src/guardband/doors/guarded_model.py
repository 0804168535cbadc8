"""A fitted model of any library, calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.predicted import Context, OneDeviation, Predicted, PredictedInterval
from guardband.bands.units import Units
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import need_held_out
from guardband.calibration.places import CalibratedPlaces
from guardband.calibration.rule import Rule
from guardband.data.encoder import TableEncoder
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.grouping import group_columns
from guardband.data.labelled_rows import Belonging, LabelledRows, column_target
from guardband.data.mixed_rows import Mixer, mix_rows, mixed_groups
from guardband.data.reference import Reference
from guardband.data.table import Table, is_frame, read_table, take_columns
from guardband.data.target import Target
from guardband.data.tree_groups import AUTO
from guardband.data.unlike import Seen
from guardband.data.used_rows import UsedRows
from guardband.doors.bands import refuse_faults
from guardband.doors.distributed import Distributed, need_places
from guardband.doors.for_target import for_target
from guardband.doors.groups import AnyGroups, GroupOptions, grouped, request_of, search_groups
from guardband.doors.judged import Judged, refuse_several
from guardband.doors.model_method import INTERVAL, POINT, check_method, other_columns
from guardband.doors.model_mistakes import refuse_shared_rows, refuse_swapped_bounds, warn_of_one_quantile
from guardband.doors.model_places import model_places, placed_columns
from guardband.doors.outputs import Declared, Outputs, declared
from guardband.doors.predictors import BY_COLUMNS, Columns, Predictor, model_in_words, predictor_of
from guardband.doors.residual_widths import ResidualWidths
from guardband.doors.weights import (
    Weighting,
    mixed_weights,
    refuse_entities,
    weighed,
    weighted,
    with_weights,
)
from guardband.learning.shift import KnownRows, kept_source
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named
from guardband.nn.heads import Triple
from guardband.words import rows_named

if TYPE_CHECKING:
    from guardband.doors.crossed_model import FoldBands

Array = NDArray[np.float64]


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
            bands = np.stack(predicted.parts)
            predicted = PredictedInterval(*np.where(np.isnan(bands).any(0), bands, np.sort(bands, axis=0)))
        refuse_faults(predicted)
        return predicted


class GuardedModel(Distributed, Judged):
    """A calibrated model of any library: intervals, the certificate, and an audit of its promise.

    ``gb.calibrate`` makes one. ``model`` is the model as it was given: if you change it, the promise no longer holds.
    ``arguments`` are those of ``calibrate``, with what was found out about the model.
    """

    python_only = True

    def __init__(
        self,
        model: Any,
        bands: ModelBands | FoldBands,
        calibrated: Calibrated,
        used: UsedRows,
        encoder: TableEncoder,
        names: tuple[str, ...] | None,
        belonging: Belonging,
        arguments: Mapping[str, Any],
        has_residuals: bool,
        declared_outputs: Any,
        grouping: AnyGroups | None = None,
        weighting: Weighting | None = None,
        rule: Rule | None = None,
        known: KnownRows | None = None,
        places: CalibratedPlaces | None = None,
    ) -> None:
        self.model = model
        self.arguments, self.has_residuals, self.declared_outputs = arguments, has_residuals, declared_outputs
        self.calibration_ = calibrated
        self.fitted_ = used
        self.target_ = Target(None, None, None)
        self.belonging = belonging
        self.bands, self.encoder, self.names, self.grouping = bands, encoder, names, grouping
        self.weighting, self._rule, self._known = weighting, rule or calibrated.rule, known
        self.places = places

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy in a file may hold: no rows."""
        return vars(self) | {"_known": None}

    @property
    def certificate(self) -> Certificate:
        """What is promised of the intervals."""
        return self.calibration_.certificate

    def _repr_html_(self) -> str:
        from guardband.doors.shown import guarded_model_html

        return guarded_model_html(self)

    def predict(self, X: Any) -> Array:
        """Return the point predictions, ``(n,)``.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        """
        if self.weighting is None:
            return self.predict_interval(X).point
        point: Array = self._predicted(X, self._read(X)).point[0, 0]
        return point

    def for_target(self, X_target: Any) -> GuardedModel:
        """Return this model for the population of other rows, whose true values nobody needs to know.

        guardband estimates how much likelier each row is in that population than among the training rows, which
        ``gb.calibrate`` must have been given as ``training``. The calibration rows then count by these weights. Because
        weights are estimated, the promise is no longer exact: the certificate says so.

        Parameters
        ----------
        X_target : table or array of shape (n, d)
            Rows like those that you will predict. A few hundred rows are enough for large differences, and more give
            better weights.

        Returns
        -------
        GuardedModel
            A calibration of its own for the same model. This one does not change.

        Raises
        ------
        InsufficientCalibrationError
            If the weights leave too few calibration rows for the confidence level.
        ValueError
            If the training rows are not known, if the guarantee is not "marginal", if there are groups or entities, or
            if most rows of ``X_target`` are unlike anything that was calibrated.
        """
        need_held_out(self._rule, "use for_target")
        refuse_several(len(self._rule.target_names), "for_target")
        if self._known is None:
            raise ValueError(
                "for_target needs training rows and calibration rows, which a file does not hold. Calibrate again with "
                "gb.calibrate(model, (X, y), training=(X_train, y_train))."
            )
        out = copy(self)
        target = self._read(X_target)
        out._known, out._rule = self._known, self._rule
        out.calibration_, out.weighting = for_target(self._known, self._rule, target, self.calibration_)
        return out

    def predict_interval(
        self,
        X: Any,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        weights: Any = None,
    ) -> Intervals:
        """Return the ``Intervals`` of new rows, at other levels if asked for.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        confidence_level : float or sequence of float, default None
            The share of new rows that should fall inside their intervals, or several such shares. None means 0.9,
            or the model's own level. Raise it if a miss is expensive; intervals become wider.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        weights : array of shape (n,), default None
            The weight of each row, if the model was calibrated with weights as numbers and the guarantee is "marginal".
        """
        calibrated, table = self.calibration_.at(confidence_level, alpha), self.read_rows(X, weights=weights)
        ends = calibrated.ends(self._predicted(X, table), table.context)
        return calibrated.intervals(ends, index=table.index, input_names=(*table.names, *table.extra))

    def _placed(self, X: Any) -> tuple[CalibratedPlaces, Array, Units, Table]:
        """Return what quantiles of new rows are made of; a model that has no such places is refused."""
        refuse_several(len(self._rule.target_names), "A distribution")
        need_held_out(self._rule, "predict distributions")
        places = need_places(self.places, self.calibration_, self.grouping is not None)
        table, bands = self._read(X), self.bands
        assert isinstance(bands, ModelBands)
        own = X if self.names is None else take_columns(X, self.names)
        found = placed_columns(bands, bands.predictor.columns(own, table.n_rows, bands.levels), tau_of(self.arguments))
        assert found is not None
        if not np.isfinite(found[0]).all():
            wrong = np.flatnonzero(~np.isfinite(found[0]).all(axis=1))
            raise ValueError(f"The model predicts no finite numbers for {rows_named(wrong)}. Remove these rows.")
        return places, found[0], Units(), table

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to one file; ``gb.load(path, model=...)`` puts it together with your model again.

        The model itself is not in the file, and neither are the widths learnt from residuals: bring both again.

        Parameters
        ----------
        path : str or path
            The file to write. The model itself is not saved: keep it as you always do.
        """
        from guardband.doors.model_file import save

        save(self, path)

    def made_by(self) -> list[tuple[str, str]]:
        """Return what the model is, for the page."""
        return [("Model", self.bands.in_words(self.model)), ("Columns", f"{len(self.encoder.codes):,}")]

    def settings(self) -> list[tuple[str, str]]:
        """Return the settings of the model itself that guardband knows of: none."""
        return []

    def read_rows(self, X: Any, *, weights: Any = None) -> Table:
        """Return rows with the columns of the calibration rows, as what they were then.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as the model takes them.
        weights : array of shape (n,), default None
            The weight of each row, if the model needs them.
        """
        return weighed(self._read(X), X, weights, self.weighting, self.calibration_.rule)

    def _read(self, X: Any) -> Table:
        """Return rows without their weights."""
        table = read_table(X, self.names if is_frame(X) else None)
        if len(table.columns) != len(self.encoder.codes):
            raise ValueError(
                f"X must have {len(self.encoder.codes)} columns, as the calibration rows have, found "
                f"{len(table.columns)}."
            )
        table = table.read_as(self.encoder.kinds)
        if self.grouping is None:
            return table
        return replace(table, context=Context(group=self.grouping.of_rows(table, X)))

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the model predicts for rows that ``read_rows`` returned, and their columns as numbers.

        Parameters
        ----------
        X : table or array of shape (n, d)
            The same rows, as the model takes them.
        table : Table
            Rows that ``read_rows`` returned.
        """
        inputs = self.encoder.encode(table)
        return self._predicted(X, table), inputs[:, : inputs.shape[1] - len(self.encoder.sizes)]

    @property
    def is_quick(self) -> bool:
        """Whether the model may be asked for many rows: one that is a function may be a service."""
        every = self.model.values() if isinstance(self.model, Mapping) else [self.model]
        parts = [part for own in every for part in (own if isinstance(own, list | tuple) else [own])]
        return all(hasattr(part, "predict") for part in parts)

    def mixer(self, X: Any) -> Mixer:
        """Return rows as the model reads them, and what it predicts for rows mixed from them.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as the model takes them.
        """
        table, own = self.read_rows(X), X if self.names is None else take_columns(X, self.names)
        players = np.arange(len(table.columns))
        groups = mixed_weights(mixed_groups(self.grouping, table, own), self.weighting, table, own)
        return Mixer(table, lambda sources: self.bands.predict(mix_rows(own, sources), len(sources)), players, groups)

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
        grouping,
        weighting,
        plain,
        _known(training, rows, block[0]),
        None
        if grouping is not None or weighting is not None
        else model_places(method.name, bands, columns, tau_of(found), rows.y, rows.entities),
    )


def tau_of(arguments: Mapping[str, Any]) -> float:
    """Return the level of a model's bounds: that of its arguments, or the smallest alpha."""
    return float(arguments["tau"] or min(request_of(arguments).levels.alphas))


def _known(training: Any, rows: LabelledRows, predicted: Predicted) -> KnownRows | None:
    """Return what ``for_target`` needs of the rows, if the training rows are there: columns are as they say."""
    if training is None:
        return None
    X, _ = pair_of(training, "training")
    table = read_table(X, rows.table.names if is_frame(X) else None).read_as([c.kind for c in rows.table.columns])
    encoder = TableEncoder.learn(table, robust=True)
    source = kept_source(encoder.encode(table))
    seen = Seen.learn(table)
    return KnownRows(encoder, source, encoder.encode(rows.table), predicted, rows.y, rows.entities, seen)


def _grouping(rule: Rule, rows: LabelledRows, training: Any, arguments: Mapping[str, Any]) -> AnyGroups | None:
    """Return the groups that have a promise of their own, fixed by the training rows if they are there."""
    by = arguments["groups"]
    if by is None or by == AUTO:
        return None
    table, X = rows.table, rows.X
    if training is not None:
        X, _ = pair_of(training, "training")
        table = read_table(X, rows.table.names if is_frame(X) else None).read_as([c.kind for c in rows.table.columns])
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
    table = read_table(X, rows.table.names if is_frame(X) else None).read_as([c.kind for c in rows.table.columns])
    predicted = bands.predict(take_columns(X, table.names) if is_frame(X) else X, table.n_rows)
    scores = rule.scores(predicted, column_target(y, table.n_rows), Context())
    return search_groups(rule, table, scores, rows.n)


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


def pair_of(data: Any, name: str) -> tuple[Any, Any]:
    """Return rows and their true values; what is no pair is refused."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"{name} must be a pair (X, y) of rows and their true values, found {type(data).__name__}.")
    X, y = data
    return X, y


def _prints(data: Any, name: str) -> Prints | None:
    if data is None:
        return None
    X, y = pair_of(data, name)
    table = read_table(X).settled()
    return fingerprints(table, column_target(y, table.n_rows))
