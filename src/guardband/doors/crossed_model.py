"""Models of any library, one for each fold of a table, calibrated by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.predicted import Context, Predicted
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import BROUGHT, crossed, refusal
from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging, LabelledRows, column_target, pair_of
from guardband.data.table import is_frame, read_table, take_rows
from guardband.data.used_rows import used_rows
from guardband.doors.cross_checks import standing_alone
from guardband.doors.fold_labels import fold_numbers
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.model_bands import ModelBands, asked, read_model
from guardband.doors.predictors import Predictor, model_in_words, side_by_side


@dataclass(frozen=True, eq=False)
class FoldBands:
    """What the models of all folds predict, read for a rule: one candidate each."""

    each: tuple[ModelBands, ...]

    @property
    def levels(self) -> tuple[float, ...]:
        """The quantiles that models are asked for which predict any."""
        return self.each[0].levels

    @property
    def predictor(self) -> Predictor:
        """All models as one, with their columns side by side."""
        return side_by_side([own.predictor for own in self.each])

    def predict(self, X: Any, n_rows: int) -> Predicted:
        """Return what the models predict for rows, a candidate for each."""
        return Predicted.side_by_side([own.predict(X, n_rows) for own in self.each])

    def in_words(self, models: Any) -> str:
        """Return what the models are by name."""
        return f"{len(models):,} models, one for each fold, such as {model_in_words(models[0])}"

    def read(self, columns: Any) -> Predicted:
        """Return what the columns of one model say."""
        return self.each[0].read(columns)


def fold_models(models: Any, folds: int, kind: str) -> Sequence[Any]:
    """Return the models, one for each fold; another number of them is refused."""
    if not isinstance(models, list | tuple) or len(models) != folds:
        found = f"{len(models)} models" if isinstance(models, list | tuple) else type(models).__name__
        raise ValueError(
            f'calibration="{kind}" with {folds} folds needs a list of {folds} models, each trained without one fold, '
            f"in the order of the sorted labels of folds. Found {found}."
        )
    return models


def calibrate_crossed(
    models: Any, data: Any, folds: Any, arguments: Mapping[str, Any], split_by: Any, idle: Mapping[str, Any]
) -> GuardedModel:
    """Return models, each trained without one fold, calibrated on all rows; ``idle`` are arguments with no use here."""
    kind = arguments["calibration"]
    for name, value in {"groups": arguments["groups"], **idle}.items():
        if value is not None:
            raise ValueError(refusal(kind, name))
    if callable(split_by) or (split_by is not None and len(split_by)):
        raise ValueError(refusal(kind, "split_by"))
    X, y = pair_of(data, "data")
    table, belonging = read_table(X).settled(), Belonging(split_by)
    number, count = fold_numbers(folds, table.n_rows, kind)
    models = fold_models(models, count, kind)
    number = number[~np.isnan(column_target(y, table.n_rows, may_miss=True))]
    rows = standing_alone(LabelledRows.of(X, table, y), belonging, kind)
    each, places, parts = [], [], []
    for k, model in enumerate(models):
        where = np.flatnonzero(number == k)
        own = replace(rows.take(where), X=take_rows(rows.X, where))
        bands, method, request, columns, outputs = read_model(asked(model, arguments["outputs"], None), own, arguments)
        each.append((bands, method, request, outputs))
        places.append(where)
        parts.append(bands.read(columns))
    bands, method, request, outputs = each[0]
    if any(own[3] != outputs for own in each):
        raise ValueError("The models of all folds must predict the same kind of numbers. Use models of one kind.")
    rule, where = crossed(method.rule(request), kind, count), np.concatenate(places)
    joined = type(parts[0])(*(np.concatenate(own, -1) for own in zip(*(one.parts for one in parts), strict=True)))
    block = (joined, rows.y[where], Context(fold=number[where]))
    calibrated = Calibrated.from_blocks(rule, [block], (BROUGHT,), request.on_insufficient)
    used = used_rows(rows, rows.prints[:0])
    found = {**arguments, "method": method, "outputs": outputs, "tau": request.tau, "taus": request.taus}
    return GuardedModel(
        models,
        FoldBands(tuple(own[0] for own in each)),
        calibrated,
        used,
        TableEncoder.learn(rows.table, robust=True),
        rows.table.names if is_frame(X) else None,
        belonging,
        found,
        False,
        arguments["outputs"],
    )
