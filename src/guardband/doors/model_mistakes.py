"""What is easily given by mistake with a model: bounds the wrong way round, one quantile alone, the same rows twice."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np

from guardband.bands.promise import Side
from guardband.data.fingerprint import Prints, refuse_overlap
from guardband.doors.outputs import Outputs
from guardband.doors.predictors import Columns, innermost
from guardband.exceptions import TargetWarning, warn

CATBOOST_QUANTILE = re.compile(r"Quantile:.*?alpha=([^;]+)")
LIGHTGBM_DEFAULT = 0.9
"""The quantile that LightGBM predicts if it is told none; its settings do not say it."""


def refuse_swapped_bounds(columns: Columns, outputs: Outputs, is_several: bool) -> None:
    """Raise if lower bounds lie above upper bounds in most rows; a few that cross are no mistake of the user's."""
    if not isinstance(outputs, str) or outputs not in ("bounds", "bands"):
        return
    crossing, n = int((columns[:, 0] > columns[:, -1]).sum()), len(columns)
    if 2 * crossing > n:
        raise ValueError(
            f"The lower bound lies above the upper bound in {crossing:,} of {n:,} calibration rows. Swap the "
            f"{'models' if is_several else 'columns'}: the lower bound comes first, and the upper bound last."
        )


def warn_of_one_quantile(model: Any, side: Side) -> None:
    """Warn if a model that is taken to predict a point predicts another quantile than the median.

    A high quantile is what an upper bound alone is made of, and a low one likewise.
    """
    quantile = _quantile_of(model)
    if quantile is None or (side == "upper" and quantile > 0.5) or (side == "lower" and quantile < 0.5):
        return
    if not np.isclose(quantile, 0.5):
        warn(
            f"This model predicts the {quantile:g} quantile, and guardband takes it for the prediction itself. Pass a "
            'pair of models (lower, upper) to get useful intervals. If you do mean it, pass outputs="point".',
            TargetWarning,
        )


def refuse_shared_rows(calibration: Prints, training: Prints | None, residuals: Prints | None) -> None:
    """Raise if rows that must differ are the same: those that trained, taught the widths, and calibrate."""
    if training is not None:
        refuse_overlap(calibration, training)
    for rows, name, others, other in (
        (calibration, "calibration", residuals, "residual"),
        (residuals, "residual", training, "training"),
    ):
        if rows is not None and others is not None:
            refuse_overlap(rows, others, names=(name, other), to_do="Use different rows for the two.")


def _quantile_of(model: Any) -> float | None:
    """Return the one quantile that a model predicts by its settings, None if they say nothing of one."""
    inner = innermost(model)[0]
    settings = inner.get_params() if hasattr(inner, "get_params") else {}
    loss = settings.get("loss_function") or settings.get("objective") or settings.get("loss")
    catboost = CATBOOST_QUANTILE.match(str(loss))
    level = None
    if "quantile" in settings and loss in (None, "quantile"):  # scikit-learn: linear, and boosted by histograms
        level = settings["quantile"]
    elif loss == "quantile":  # LightGBM, and boosted trees of scikit-learn
        level = settings.get("alpha", LIGHTGBM_DEFAULT)
    elif loss == "reg:quantileerror":  # XGBoost
        level = settings.get("quantile_alpha")
    elif catboost is not None:
        level = catboost[1]
    with suppress(TypeError, ValueError):  # a setting of the same name that is no number
        own = float(np.asarray(level, dtype=np.float64).item())
        return own if 0 < own < 1 else None
    return None
