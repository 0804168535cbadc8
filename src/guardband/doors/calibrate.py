"""Your own model, calibrated: a torch network, or a fitted model of any library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.calibration.calibrated import OnInsufficient
from guardband.calibration.pav import Average
from guardband.data.entities import SplitBy
from guardband.doors.guarded_model import INTERVAL, POINT, calibrate_model
from guardband.doors.network import calibrate_network
from guardband.doors.outputs import Outputs
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
    tau: float | None = None,
    taus: Sequence[float] | None = None,
    rule: PavRule | None = None,
    average: Average | None = None,
    on_insufficient: OnInsufficient = "inf",
    outputs: Outputs | None = None,
    residuals: Any = None,
    training: Any = None,
    entities: Any = None,
    split_by: SplitBy | None = None,
    target: str = "y",
    batch_size: int = 1024,
    process_group: Any = None,
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
        "conf-nn" for a model that predicts bounds, quantiles or a deviation, "conf-fw" for one that predicts a point.
    confidence_level, alpha : float or sequence of float
        The level or levels of the intervals, 0.9 unless given; or one minus them.
    guarantee : {"marginal", "pac"} or Cut
        On average over calibration sets, or with probability 1 - ``delta`` over them.
    delta : float
        How often a "pac" guarantee may fail over calibration sets, 0.1 unless given.
    joint : bool, default False
        Whether a "pac" guarantee holds for all levels at once.
    tau : float
        Which pair of quantiles to use, ``tau / 2`` and ``1 - tau / 2``: alpha unless given.
    taus, rule, average
        pav's grid, its rule ("fixed-sequence", "nested" or "paper"), and "corollary" or "sharp" for average coverage.
    on_insufficient : {"inf", "raise"}
        With too few calibration rows intervals are infinite, with a warning; or an error is raised.
    outputs : str, sequence of float or function, default None
        What the model predicts: "bands" (lower, point, upper), "bounds" (lower, upper), "gaussian" (mean, standard
        deviation), "variance" (mean, variance), "point", or the levels of quantiles. For a network None is "bands", and
        a function makes ``(n, 3)`` of what it puts out. Of any other model guardband finds out by itself.
    residuals : (X, y), default None
        For a model that predicts a point: rows on which guardband learns how far off the model is, to make intervals
        wide where it is often wrong. Use rows that did not train the model. They must not be calibration rows.
    training : default None
        The rows that trained the model, in the form of ``data``. Calibration rows that are among them are refused.
    entities : array of shape (n,), default None
        What each row belongs to, such as a patient. The promise is then for a new row of a new one. Not for networks.
    split_by : str, sequence of str or function, default None
        The columns that name what rows belong to, in place of ``entities``. Not for networks.
    target : str, default "y"
        Under which name a batch that is a mapping holds the true values.
    batch_size : int, default 1024
        How many rows a network sees at once.
    process_group : default None
        A group of ``torch.distributed``, each of whose processes brings rows of its own; all of them get the network
        calibrated on all rows. A sampler that repeats rows to make shares equal would void the promise.

    Returns
    -------
    GuardedNetwork or GuardedModel
        For a network a copy in eval mode: later training of the original cannot void its promise. For any other model
        an object with ``predict_interval``, ``certificate`` and ``audit`` that holds the model itself.
    """
    arguments = {
        "confidence_level": confidence_level,
        "alpha": alpha,
        "guarantee": guarantee,
        "delta": delta,
        "joint": joint,
        "tau": tau,
        "taus": taus,
        "rule": rule,
        "average": average,
        "on_insufficient": on_insufficient,
        "method": method,
        "outputs": outputs,
    }
    several = model if isinstance(model, Sequence) else [model]
    if not several or not all(isinstance(one, nn.Module) for one in several):
        if process_group is not None:
            raise ValueError("process_group is for torch networks. Remove it.")
        return calibrate_model(
            model, data, arguments, residuals=residuals, training=training, entities=entities, split_by=split_by
        )
    for name, value in (("residuals", residuals), ("entities", entities), ("split_by", split_by)):
        if value is not None:
            raise ValueError(f"{name} is for tables, and this is a torch network. Remove it, or use BandCalibrator.")
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
