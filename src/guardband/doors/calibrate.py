"""Your own model, calibrated: a torch network, or a fitted model of any library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.promise import Side
from guardband.bands.risk import Risk
from guardband.calibration.calibrated import OnInsufficient
from guardband.calibration.cross import CalibrationKind, check_kind
from guardband.calibration.pav import Average
from guardband.data.entities import SplitBy
from guardband.data.grouping import BINS, GroupsBy, SmallGroups
from guardband.doors.calibrate_model import calibrate_model
from guardband.doors.crossed_model import calibrate_crossed
from guardband.doors.fold_labels import refuse_folds
from guardband.doors.model_method import INTERVAL, POINT
from guardband.doors.network import calibrate_network
from guardband.doors.outputs import Outputs
from guardband.doors.several_models import calibrate_several
from guardband.learning.several import Targets
from guardband.methods.method import Guarantee, Method


def calibrate(
    model: Any,
    data: Any,
    method: str | Method | None = None,
    *,
    confidence_level: Level | Sequence[Level] | None = None,
    alpha: Level | Sequence[Level] | None = None,
    guarantee: Guarantee = "marginal",
    delta: float | None = None,
    joint: bool = False,
    side: Side = "both",
    tails: Sequence[Level] | None = None,
    risk: Risk | None = None,
    tau: float | None = None,
    taus: Sequence[float] | None = None,
    rule: PavRule | None = None,
    average: Average | None = None,
    on_insufficient: OnInsufficient = "inf",
    calibration: CalibrationKind = "split",
    folds: Any = None,
    outputs: Outputs | None = None,
    residuals: Any = None,
    training: Any = None,
    entities: Any = None,
    split_by: SplitBy | None = None,
    groups: GroupsBy | None = None,
    small_groups: SmallGroups = "inf",
    missing_groups: bool = False,
    group_bins: int = BINS,
    weights: Any = None,
    max_weight: float | None = None,
    target: str = "y",
    batch_size: int = 1024,
    process_group: Any = None,
    targets: Targets | None = None,
    scales: Sequence[float] | None = None,
) -> Any:
    """Return a calibrated model: your own torch network, or a fitted model of any library.

    Parameters
    ----------
    model : torch.nn.Module, fitted model, function, or sequence of these
        A network, or several for pav, high-q and neg-ll. Otherwise a model with ``predict`` (scikit-learn and its kin,
        LightGBM, XGBoost, CatBoost, quantile forests, NGBoost); a pair ``(lower, upper)`` or a triple ``(lower, point,
        upper)`` of such models; or a function from rows to numbers, of shape ``(n,)``, ``(n, 2)`` or ``(n, 3)``.
    data : (X, y), Dataset or loader
        Rows with their true values that no training has seen. For a network tensors ``(x, y)``, a ``Dataset`` (read in
        batches of ``batch_size``), or a loader. A batch is a pair ``(x, y)``, where x is a tensor, a tuple for
        ``network(*x)`` or a mapping for ``network(**x)``; or a mapping with the true values under ``target``. Of each
        row only what the rule needs is kept, one number for conf-nn, and a fingerprint.
    method : str or Method, default None
        How intervals are made. None means "conf-nn" for a model that predicts bounds, quantiles or a deviation, and
        "conf-fw", which gives all rows one width, for a model that predicts a point.
    confidence_level : float or sequence of float, default None
        The share of new rows that should fall inside their intervals, or several such shares. None means 0.9. Raise it
        if a miss is expensive; intervals become wider.
    alpha : float or sequence of float, default None
        One minus ``confidence_level``, for code that counts misses. Give one of the two.
    guarantee : {"marginal", "pac"} or Cut, default "marginal"
        "marginal" promises the level on average over possible calibration sets. "pac" promises it with confidence
        1 - ``delta`` for the calibration set you have; intervals are a little wider. A ``Cut`` brings a guarantee of
        your own.
    delta : float, default None
        How often a "pac" guarantee may fail over possible calibration sets. None means 0.1. Lower it if you need more
        confidence.
    joint : bool, default False
        Whether a "pac" guarantee holds for all levels at once. Set it if you choose a level after looking at the
        intervals.
    side : {"both", "lower", "upper"}, default "both"
        Which bound the promise is about. "upper" promises that true values lie at or below their upper bounds; lower
        bounds are then infinite. Choose it if only one kind of miss matters.
    tails : tuple of two floats, default None
        The share of new rows that may lie below their intervals and the share that may lie above, such as
        ``(0.02, 0.08)``. Each has a promise of its own. Give it in place of a confidence level.
    risk : Risk, default None
        The mean loss that new rows may have, such as ``gb.Risk(limit=5, cap=100)``: new values then lie at most 5
        outside their intervals in the mean, and a single one counts at most 100. Give it in place of a confidence level
        if you care how far values lie outside, not how many do.
    tau : float, default None
        Which pair of quantiles to use, ``tau / 2`` and ``1 - tau / 2``. None means alpha, the smallest if there are
        several. Set it if the model was trained for other quantiles.
    taus : sequence of float, default None
        The levels of the networks that pav chooses from, in their order. None means ten values from alpha / 10 to
        alpha. Only for pav.
    rule : {"fixed-sequence", "nested", "paper"}, default None
        How pav chooses among its networks. None means "fixed-sequence". "paper" is the rule of the paper, with a
        weaker bound.
    average : {"sharp", "corollary"}, default None
        Ask pav for the level on average over calibration sets, by the exact bound ("sharp") or by the paper's
        ("corollary"). None keeps pav's own promise.
    on_insufficient : {"inf", "raise"}, default "inf"
        What happens with too few calibration rows. "inf" gives infinite intervals and a warning, "raise" an error. Use
        "raise" in programs that nobody watches.
    calibration : {"split", "cv+", "cv-minmax"}, default "split"
        "split" takes rows that no training has seen. "cv+" and "cv-minmax" take a list of models, each trained without
        one fold of ``data``, and all rows of ``data`` calibrate. Use it if you have too few rows to hold some out. Not
        for networks.
    folds : array of shape (n,), default None
        The fold of each row of ``data``, for "cv+" and "cv-minmax". The models stand in the order of the sorted labels:
        the first was trained without the rows of the first label.
    outputs : str, sequence of float or function, default None
        What the model predicts: "bands" (lower, point, upper), "bounds" (lower, upper), "gaussian" (mean, standard
        deviation), "variance" (mean, variance), "point", or the levels of quantiles. For a network None is "bands", and
        a function makes ``(n, 3)`` of what it puts out. Of any other model guardband finds out by itself.
    residuals : (X, y), default None
        For a model that predicts a point: rows on which guardband learns how far off the model is, to make intervals
        wide where it is often wrong. Use rows that did not train the model. They must not be calibration rows.
    training : default None
        The rows that trained the model, in the form of ``data``. Other rows that are among them are refused.
    entities : array of shape (n,), default None
        What each row belongs to, such as a patient. The promise is then for a new row of a new one. Not for networks.
    split_by : str, sequence of str or function, default None
        The columns that name what rows belong to, in place of ``entities``. Not for networks.
    groups : str, sequence of str or function, default None
        The column whose values each have a promise of their own, such as a district. Several columns make groups that
        overlap: every value of each is one. A function of the rows returns a label for each row, or several columns of
        labels; of several columns of True and False each is one group. For a network it is a function of its inputs
        that returns a tensor of True and False or of whole numbers.
    small_groups : {"inf", "pool"}, default "inf"
        What becomes of groups with too few calibration rows. "inf" gives them infinite intervals and a warning that
        says how many rows they need. "pool" gives all groups with few training rows one promise together; it needs
        ``training``. Not for networks.
    missing_groups : bool, default False
        Whether rows whose group is missing are a group too. Otherwise they belong to none. Not for networks.
    group_bins : int, default 5
        How many ranges a column of numbers is divided into if it makes groups; this needs ``training``. A column with
        at most 30 different numbers is not divided: each number is a group. Not for networks.
    weights : array of shape (n,) or function, default None
        How much likelier each row is among the rows to predict than among the calibration rows, up to a factor; or a
        function of the rows that returns this. Use it if the rows to predict come from another population whose weights
        you know. For a network it is a function of its inputs that returns a tensor.
    max_weight : float, default None
        A bound on the weight of any row. ``guarantee="pac"`` needs it, and new rows then need no weights.
    target : str, default "y"
        Under which name a batch that is a mapping holds the true values.
    batch_size : int, default 1024
        How many rows a network sees at once.
    process_group : default None
        A group of ``torch.distributed``, each of whose processes brings rows of its own; all of them get the network
        calibrated on all rows. Do not use a sampler that repeats rows to make shares equal: the promise would not hold.
    targets : {"joint", "each"}, default None
        How several targets share the promise, if the true values have a column for each. The model then predicts a
        column for each target, or ``model`` is a mapping from the names of the targets to a model for each. "joint"
        promises that all of them lie inside at once, "each" gives each a promise of its own. A network puts out its
        columns for each target, ``(n, 3 q)`` or ``(n, q, 3)``. Calibrated, it puts out ``(n, q, 3)``.
    scales : sequence of float, default None
        With ``targets="joint"`` a typical error of each target, by which targets are compared. None learns them from
        ``training``.

    Returns
    -------
    GuardedNetwork or GuardedModel
        For a network a copy in eval mode: later training of the original does not change it. For any other model
        an object with ``predict_interval``, ``certificate`` and ``audit`` that holds the model itself.
    """
    arguments = {
        "confidence_level": confidence_level,
        "alpha": alpha,
        "guarantee": guarantee,
        "delta": delta,
        "joint": joint,
        "side": side,
        "tails": tails,
        "risk": risk,
        "tau": tau,
        "taus": taus,
        "rule": rule,
        "average": average,
        "on_insufficient": on_insufficient,
        "method": method,
        "outputs": outputs,
        "calibration": calibration,
        "groups": groups,
        "small_groups": small_groups,
        "missing_groups": missing_groups,
        "group_bins": group_bins,
    }
    check_kind(calibration)
    if calibration == "split":
        refuse_folds(folds)
    several = model if isinstance(model, Sequence) else [model]
    if not several or not all(isinstance(one, nn.Module) for one in several):
        if process_group is not None:
            raise ValueError("process_group is for torch networks. Remove it.")
        if calibration != "split":
            idle = {"residuals": residuals, "training": training, "entities": entities}
            idle |= {"weights": weights, "max_weight": max_weight, "targets": targets, "scales": scales, "risk": risk}
            return calibrate_crossed(model, data, folds, arguments, split_by, idle)
        if targets is not None or isinstance(model, Mapping):
            return calibrate_several(
                model,
                data,
                arguments,
                targets=targets or "joint",
                scales=scales,
                training=training,
                entities=entities,
                split_by=split_by,
                residuals=residuals,
                weights=weights,
                max_weight=max_weight,
            )
        if scales is not None:
            raise ValueError('scales are for targets="joint". Remove scales, or set targets="joint".')
        return calibrate_model(
            model,
            data,
            arguments,
            residuals=residuals,
            training=training,
            entities=entities,
            split_by=split_by,
            weights=weights,
            max_weight=max_weight,
        )
    if calibration != "split":
        raise ValueError(
            f'calibration="{calibration}" is not for torch networks. Predict each row by the network that was trained '
            "without its fold, and use gb.BandCalibrator."
        )
    if scales is not None and targets != "joint":
        raise ValueError('scales are for targets="joint". Remove scales, or set targets="joint".')
    arguments |= {"targets": targets, "scales": None if scales is None else list(map(float, scales))}
    for name, value in (("residuals", residuals), ("entities", entities), ("split_by", split_by)):
        if value is not None:
            raise ValueError(f"{name} is for tables, and this is a torch network. Remove it, or use BandCalibrator.")
    if groups is not None and not callable(groups):
        raise ValueError("The groups of a network must be a function of its inputs, such as lambda x: x[:, 0] > 0.")
    if (small_groups, missing_groups, group_bins) != ("inf", False, BINS):
        raise ValueError("small_groups, missing_groups and group_bins are for tables. Remove them.")
    if weights is not None and not callable(weights):
        raise ValueError("The weights of a network must be a function of its inputs, such as lambda x: 2 * x[:, 0].")
    del arguments["calibration"]
    arguments |= {"weights": weights, "max_weight": max_weight}
    arguments["outputs"] = outputs = "bands" if outputs is None else outputs
    if method is None:
        arguments["method"] = POINT if outputs == "point" else INTERVAL
    return calibrate_network(
        model,
        data,
        arguments,
        target=target,
        batch_size=batch_size,
        training=training,
        process_group=process_group,
    )
