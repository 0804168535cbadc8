"""What an online rule takes from a calibrated model: its score, its scale, its calibration scores, its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Predicted
from guardband.bands.promise import Side
from guardband.calibration.conformal import Conformal
from guardband.calibration.cross import need_held_out
from guardband.calibration.rule import Rule
from guardband.calibration.score import Score
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Array
from guardband.data.target import Target
from guardband.doors.judged import refuse_several
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named

SCORED = '"conf-nn", "conf-fw", "cqr" or "cqr-r"'


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """A model whose predictions an online rule calibrates.

    ``scores`` are those of the calibration rows, none if the model does not keep them. ``predict`` returns what is
    predicted for rows, and the names of their columns; None if predictions are brought.
    """

    method: str
    score: Score
    levels: Levels
    target: Target
    scores: Array
    predict: Callable[[Any], tuple[Predicted, tuple[str, ...]]] | None


def online_model(model: Any) -> OnlineModel:
    """Return what is needed of a calibrated model of any kind: of a table, a network, another library, or a rule."""
    from guardband.doors.bands import BandCalibrator
    from guardband.doors.network import GuardedNetwork

    if isinstance(model, GuardedNetwork):
        rule, none = model.rule, np.empty(0)
        return OnlineModel(
            rule.method,
            score_of(rule),
            rule.levels,
            Target(None, None, None),
            none,
            lambda x: (model.predicted(x), ()),
        )
    if not hasattr(model, "calibration_"):
        raise TypeError(
            "model must be an IntervalRegressor, what gb.calibrate returned, or a BandCalibrator, found "
            f"{type(model).__name__}. Calibrate it first: gb.calibrate(model, (X, y))."
        )
    calibrated = model.calibration_
    rule, scores = calibrated.rule, calibrated.rule.calibration_scores(calibrated.summary)

    def predict(X: Any) -> tuple[Predicted, tuple[str, ...]]:
        table = model.read_rows(X)
        return model.outputs(X, table)[0], (*table.names, *table.extra)

    brings_own = isinstance(model, BandCalibrator)
    return OnlineModel(rule.method, score_of(rule), rule.levels, model.target_, scores, None if brings_own else predict)


def score_of(rule: Rule) -> Score:
    """Return the score of a rule; raise if it has none, or several."""
    refuse_several(len(rule.target_names), "An online rule")
    if rule.promised_risk is not None:
        raise ValueError(
            "An online rule follows a share of misses, and this model limits a mean loss. Calibrate it with a "
            "confidence level in place of risk."
        )
    need_held_out(rule, "start an online rule from it")
    if rule.uses - {"entity"}:
        raise ValueError(
            "An online rule has one promise for all rows, and cannot use groups or weights. Calibrate without them."
        )
    if isinstance(rule, Sided):
        if len(rule.rules) > 1:
            raise ValueError(
                'An online rule follows one share of misses, not one for each tail. Make one with side="lower" and one '
                'with side="upper".'
            )
        return rule.rules[0].score
    if not isinstance(rule, Conformal):
        raise ValueError(f'method="{rule.method}" has no score that an online rule could follow. Use {SCORED}.')
    return rule.score


def of_method(method: str | Method | None, side: Side | None) -> OnlineModel:
    """Return the score of a method, for predictions that are brought."""
    own, request = method_named(method or "conf-nn"), Request.of(side=side or "both")
    own.check(request)
    rule: Rule = own.rule(request)
    return OnlineModel(own.name, score_of(rule), request.levels, Target(None, None, None), np.empty(0), None)
