"""Models of any library for several targets: one that predicts all of them, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.joint import JointConformal
from guardband.calibration.several import SeveralRule
from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging, LabelledRows, pair_of
from guardband.data.table import is_frame, read_table
from guardband.data.used_rows import used_rows
from guardband.doors.calibrated_rows import calibrated_rows
from guardband.doors.fitted import complete_rows
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.model_bands import ModelBands, asked, read_model
from guardband.doors.model_mistakes import refuse_shared_rows
from guardband.doors.outputs import Outputs
from guardband.doors.predictors import Columns, Predictor, model_in_words, side_by_side
from guardband.learning.several import ONE_AT_A_TIME, check_targets, several_rule, with_scales
from guardband.methods.method import Method, Request
from guardband.words import listed

IDLE = ("groups", "weights", "max_weight", "residuals")
"""What models of several targets cannot use."""


@dataclass(frozen=True, eq=False)
class SeveralBands(ModelBands):
    """What models predict of several targets: the columns of the first, then those of the second, and so on."""

    targets: tuple[str, ...]

    def in_words(self, model: Any) -> str:
        """Return what the model is by name; of a model for each target, what each of them is."""
        if not isinstance(model, Mapping):
            return super().in_words(model)
        return "; ".join(f"{name}: {model_in_words(own)}" for name, own in model.items())

    def read(self, columns: Columns) -> PredictedSeveral:
        """Return what columns say of each target."""
        count, width = len(self.targets), self.declared.reading.columns
        if columns.shape[1] != count * width:
            raise ValueError(
                f"The model must predict {'one column' if width == 1 else f'{width} columns'} for each of {count} "
                f"targets, found the shape {columns.shape}. Pass a mapping with a model for each target otherwise."
            )
        return PredictedSeveral(tuple(super(SeveralBands, self).read(own) for own in np.split(columns, count, axis=1)))


def asked_of_each(model: Any, targets: Sequence[str], outputs: Any) -> list[Predictor]:
    """Return how to ask a model that predicts all targets, or each of a mapping, in the order of the targets."""
    if not isinstance(model, Mapping):
        return [asked(model, "point" if outputs is None else outputs, None)]
    named = {str(name): own for name, own in model.items()}
    if set(named) != set(targets):
        raise ValueError(f"There must be one model for each of {listed(targets)}, found {listed(list(named))}.")
    return [asked(named[name], outputs, None) for name in targets]


def calibrate_several(
    model: Any,
    data: Any,
    arguments: Mapping[str, Any],
    *,
    targets: Any,
    scales: Sequence[float] | None,
    training: Any = None,
    entities: Any = None,
    split_by: Any = None,
    **idle: Any,
) -> GuardedModel:
    """Return models calibrated on ``data``, rows and several outcomes, as ``calibrate`` says."""
    given = [name for name in IDLE if {**arguments, **idle}.get(name) is not None]
    if given:
        raise ValueError(f"Several targets cannot use {given[0]}. Remove {given[0]}, {ONE_AT_A_TIME}.")
    X, y = pair_of(data, "data")
    belonging, table = Belonging(split_by), read_table(X).settled()
    order = tuple(map(str, model)) if isinstance(model, Mapping) else ()
    labels = belonging.labelled(entities, table.n_rows)
    rows = LabelledRows.of(X, table, y, entities=labels, several=order)
    trained = None if training is None else _training(training, rows.targets)
    if trained is not None:
        refuse_shared_rows(rows.prints, trained.prints, None)
    rows = rows.grouped(belonging)
    notes: tuple[str, ...] = ()
    bands, method, request, columns, outputs = _bands(model, rows, arguments, targets)
    rule, predicted = several_rule(method, request, targets, rows.targets), bands.read(columns)
    if isinstance(rule, JointConformal):
        rule = _scaled(rule, bands, trained, scales)
        predicted = predicted.rows(rows.complete())
        rows, notes = complete_rows(rows, ())
    elif scales is not None:
        raise ValueError('scales are for targets="joint". Remove scales, or set targets="joint".')
    block = (predicted, rows.y, rows.table.context)
    on_insufficient = arguments["on_insufficient"]
    calibrated = calibrated_rows(rule, block, rows.entities, notes, on_insufficient)
    used = used_rows(rows, rows.prints[:0] if trained is None else trained.prints)
    found = {**arguments, "method": method, "outputs": outputs, "tau": request.tau, "taus": request.taus}
    found |= {"targets": targets, "scales": list(rule.scales) if isinstance(rule, JointConformal) else None}
    return GuardedModel(
        model,
        bands,
        calibrated,
        used,
        TableEncoder.learn(rows.table, robust=True),
        rows.table.names if is_frame(X) else None,
        Belonging(split_by, used.repeat_rule),
        found,
        False,
        arguments["outputs"],
    )


def _training(training: Any, names: Sequence[str]) -> LabelledRows:
    X, y = pair_of(training, "training")
    return LabelledRows.of(X, read_table(X).settled(), y, several=names)


def _bands(
    model: Any, rows: LabelledRows, arguments: Mapping[str, Any], targets: Any
) -> tuple[SeveralBands, Method, Request, Columns, Outputs]:
    """Return as ``read_model`` does how all models are read, which predict the same kind of thing."""
    predictors = asked_of_each(model, rows.targets, arguments["outputs"])
    every = [read_model(own, rows, arguments) for own in predictors]
    read, method, request, _, outputs = every[0]
    check_targets(targets, request, method)
    if any(own[-1] != outputs for own in every):
        found = listed([str(own[-1]) for own in every])
        raise ValueError(f"The models of all targets must predict the same kind of thing, found {found}.")
    bands = SeveralBands(side_by_side(predictors), read.declared, read.levels, rows.targets)
    return bands, method, request, np.hstack([own[3] for own in every]), outputs


def _scaled(
    rule: JointConformal, bands: SeveralBands, trained: LabelledRows | None, scales: Sequence[float] | None
) -> SeveralRule:
    """Return the rule with scales: as given, or learnt from the training rows."""
    if scales is not None:
        return JointConformal(rule.method, rule.levels, rule.targets, rule.score, rule.cut, scales=tuple(scales))
    if trained is not None:
        predicted = bands.predict(trained.X, trained.n)
        assert isinstance(predicted, PredictedSeveral)
        return with_scales(rule, predicted, trained.y)
    if rule.method in ("conf-fw", "cqr"):
        raise ValueError(
            "Errors of several targets are compared in units of their scales. Pass training=(X, Y), from which "
            "guardband learns them, or scales= with a typical error of each target."
        )
    return rule
