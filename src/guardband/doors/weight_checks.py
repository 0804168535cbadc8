"""Whether the calibration of a network with weights, as a file holds it, is such as its rule makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

from guardband.calibration.counted_at import SharedFound, Weighed
from guardband.calibration.rule import Rule


def check_weighted(rule: Rule, arrays: Mapping[str, NDArray[Any]], promise: Any) -> str | None:
    """Return what is wrong with the arrays or the promise of a network with weights, if anything is."""
    if arrays.keys() != {"score", "most_weight"} or any(own.dtype != np.float64 for own in arrays.values()):
        return "it is calibrated in another way than its arguments say"
    scores, most = arrays["score"], arrays["most_weight"]
    if scores.ndim != 1 or len(scores) < 2 or most.shape != (len(rule.levels), len(scores) - 1):
        return "its thresholds have the wrong shape"
    if scores[-1] != np.inf or not _are_in_order(scores, most):
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


def check_known_weights(own: Weighed, n: int) -> str | None:
    """Return what is wrong with what is known of n scores and weights that are gone, if anything is."""
    if own.scores.ndim != 1 or own.most_weight.ndim != 2 or own.most_weight.shape[1] != len(own.scores):
        return "its thresholds have the wrong shape"
    if own.scores.dtype != np.float64 or own.most_weight.dtype != np.float64:
        return "its thresholds have the wrong type"
    if not _are_in_order(own.scores, own.most_weight):
        return "its thresholds are not in order"
    shares = (*own.infinite_share.tolist(), own.largest_share)
    within = 1 <= own.n_effective <= n * (1 + 1e-9) and 0 <= own.infinite <= n
    if len(shares) != len(own.most_weight) + 1 or not within or not all(0 <= share <= 1 for share in shares):
        return "it counts more rows than there are"
    return None


def check_shared(own: SharedFound, n: int) -> str | None:
    """Return what is wrong with what is known of n scores of entities that are gone, if anything is."""
    if own.thresholds.ndim != 1 or own.thresholds.dtype != np.float64 or np.isnan(own.thresholds).any():
        return "its thresholds have the wrong type or shape"
    if np.isnan(own.least) or not 1 <= own.entities <= n or not 0 <= own.infinite <= n:
        return "it counts more rows than there are"
    return None


def _are_in_order(scores: NDArray[Any], most: NDArray[Any]) -> bool:
    """Return whether scores rise, and the largest weight that each is for."""
    rises = not np.isnan(scores).any() and (scores[:-1] <= scores[1:]).all() and (most[:, :-1] <= most[:, 1:]).all()
    return bool(rises and np.isfinite(most).all())
