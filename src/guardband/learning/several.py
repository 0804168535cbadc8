"""Several targets of a table: what is asked of them, their rule, its scales, and the score that suits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from guardband.bands.predicted import Context
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.conformal import Conformal
from guardband.calibration.each import EachConformal
from guardband.calibration.group_widths import same_units
from guardband.calibration.joint import JointConformal, learnt_scale
from guardband.calibration.several import SeveralRule
from guardband.learning.choice import LEAST_GAIN, SCORES, interval_score_of
from guardband.learning.training_rows import Array
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named

Targets = Literal["joint", "each"]
ONE_AT_A_TIME = "or fit one target at a time"
"""What to do about something that several targets do not have."""


def check_targets(targets: Any, request: Request, method: Method) -> None:
    """Raise if several targets cannot have what is asked for."""
    if targets not in (None, *get_args(Targets)):
        raise ValueError(f'targets must be "joint", "each" or None for one target, found {targets!r}.')
    if targets is None:
        return
    if request.is_sided:
        name = "tails" if request.tails is not None else "side"
        raise ValueError(f"Several targets have no promise for one side. Remove {name}, {ONE_AT_A_TIME}.")
    if request.risk is not None:
        raise ValueError(f"Several targets have no promise for a risk. Remove risk, {ONE_AT_A_TIME}.")
    if not isinstance(method.rule(request), Conformal):
        raise ValueError(
            f'Several targets need method="auto", "conf-nn", "cqr", "cqr-r" or "conf-fw", found "{method.name}".'
        )


def refuse_options(params: Mapping[str, Any]) -> None:
    """Raise for arguments of a table's model that several targets do not have."""
    if params.get("targets") is None:
        return
    if params["groups"] is not None:
        raise ValueError(f"Several targets have no promise for each group. Remove groups, {ONE_AT_A_TIME}.")
    if params["distribution"]:
        raise ValueError(f"Several targets have no distributions. Remove distribution=True, {ONE_AT_A_TIME}.")
    if callable(params["network"]) or params["network"] == "paper" or params["ordering"] == "relu":
        raise ValueError(
            'Several targets need network="tabular" or "plain" with ordering="softplus". Remove network and ordering.'
        )


def several_rule(
    method: Method, request: Request, targets: Any, names: Sequence[str], scales: Sequence[float] = ()
) -> SeveralRule:
    """Return the rule of several targets, with the score and the cut of one."""
    one = method.rule(request)
    assert isinstance(one, Conformal)
    own = (one.method, one.levels, tuple(names), one.score, one.cut)
    return EachConformal(*own) if targets == "each" else JointConformal(*own, scales=tuple(scales))


def with_scales(rule: SeveralRule, predicted: PredictedSeveral, y: Array) -> SeveralRule:
    """Return a joint rule with the scales that these predictions teach, of rows that do not calibrate it."""
    if not isinstance(rule, JointConformal):
        return rule
    plain = JointConformal(rule.method, rule.levels, rule.targets, rule.score, rule.cut)
    scores = plain.scores_of_each(predicted, y, Context())
    level = max(rule.levels.floats)
    scales = tuple(learnt_scale(own, level) for own in scores.T)
    return JointConformal(rule.method, rule.levels, rule.targets, rule.score, rule.cut, scales=scales)


def sharpest_for_all(request: Request, predicted: PredictedSeveral, y: Array) -> Method:
    """Return the method with the least interval score on average over the targets, relative to the first method's."""
    gains = dict.fromkeys(SCORES, 0.0)
    for own, column in zip(predicted.targets, y.T, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        rows = (request, own.rows(known), column[known], same_units)
        scores = [interval_score_of(method_named(name), *rows) for name in SCORES]
        if all(math.isfinite(score) and score > 0 for score in scores):
            for name, score in zip(SCORES, scores, strict=True):
                gains[name] += math.log(score / scores[0]) / len(predicted.targets)
    best = min(SCORES, key=lambda name: gains[name])
    return method_named(best if gains[best] < math.log(1 - LEAST_GAIN) else SCORES[0])
