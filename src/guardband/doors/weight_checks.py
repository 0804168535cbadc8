"""Whether the calibration of a network with weights, as a file holds it, is such as its rule makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

from guardband.calibration.rule import Rule


def check_weighted(rule: Rule, arrays: Mapping[str, NDArray[Any]], promise: Any) -> str | None:
    """Return what is wrong with the arrays or the promise of a network with weights, if anything is."""
    if arrays.keys() != {"score", "most_weight"} or any(own.dtype != np.float64 for own in arrays.values()):
        return "it is calibrated in another way than its arguments say"
    scores, most = arrays["score"], arrays["most_weight"]
    if scores.ndim != 1 or len(scores) < 2 or most.shape != (len(rule.levels), len(scores) - 1):
        return "its thresholds have the wrong shape"
    rises = not np.isnan(scores).any() and (scores[:-1] <= scores[1:]).all() and (most[:, :-1] <= most[:, 1:]).all()
    if not rises or scores[-1] != np.inf or not np.isfinite(most).all():
        return "its thresholds are not in order"
    convert(vars(promise), type(promise))
    finite = most[:, np.isfinite(scores[:-1])]
    limits = finite[:, -1] if finite.shape[1] else np.full(len(rule.levels), -1.0)
    if promise.most_weight != tuple(np.maximum(limits, 0.0).tolist()):
        return "its certificate does not fit its calibration"
    per_level = (promise.whole_line, promise.infinite_share)
    if any(len(own) != len(rule.levels) for own in per_level):
        return "its certificate is for other levels"
    shares = (*promise.infinite_share, promise.largest_share)
    within = promise.n_calibration >= len(scores) - 1 and 1 <= promise.n_effective <= promise.n_calibration * (1 + 1e-9)
    if not within or not all(0 <= share <= 1 + 1e-9 for share in shares):
        return "its certificate counts more rows than there are"
    return None
