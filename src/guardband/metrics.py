"""How good intervals are: every metric takes ``(y_true, bands)``.

With one confidence level a metric is a float, with L levels an array ``(L,)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.intervals import Intervals

Array = NDArray[np.float64]


def coverage(y_true: ArrayLike, bands: Intervals) -> float | Array:
    """Return the share of rows whose response lies in its interval, ends included.

    >>> bands = Intervals(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([2.0, 2.0]), 0.9)
    >>> coverage([1.5, 2.5], bands)
    0.5
    """
    return _per_level(bands, _inside(y_true, bands).mean(axis=0))


def mean_length(y_true: ArrayLike, bands: Intervals) -> float | Array:
    """Return the mean of upper - lower."""
    lower, upper = bands.per_level()
    return _per_level(bands, (upper - lower).mean(axis=0))


def interval_score(y_true: ArrayLike, bands: Intervals) -> float | Array:
    """Return the mean interval (Winkler) score: the lower the better, and proper.

    length + (2 / alpha) (lower - y)_+ + (2 / alpha) (y - upper)_+  (Winkler 1972).
    """
    y = _column(y_true, bands)
    lower, upper = bands.per_level()
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return _per_level(bands, (upper - lower + 2 / _alphas(bands) * outside).mean(axis=0))


def weighted_interval_score(y_true: ArrayLike, bands: Intervals) -> float:
    """Return the mean weighted interval score over the point and all levels (Bracher et al. 2021).

    (|y - point| / 2 + sum_l alpha_l / 2 * interval score_l) / (L + 1/2).
    """
    scores = np.atleast_1d(interval_score(y_true, bands))
    error = np.abs(_column(y_true, bands)[:, 0] - bands.point).mean()
    return float((error / 2 + (_alphas(bands) / 2 * scores).sum()) / (len(scores) + 0.5))


def pinball(y_true: ArrayLike, bands: Intervals) -> Array:
    """Return the mean quantile loss of lower bound, point and upper bound: ``(3,)``, or ``(3, L)``."""
    y, (lower, upper), half = _column(y_true, bands), bands.per_level(), _alphas(bands) / 2
    losses = [
        _quantile_loss(half, y - lower),
        np.repeat(_quantile_loss(0.5, y - bands.point[:, None]), len(half), axis=1),
        _quantile_loss(1 - half, y - upper),
    ]
    means = np.stack([loss.mean(axis=0) for loss in losses])
    return means if isinstance(bands.confidence_level, tuple) else means[:, 0]


def size_stratified_coverage(y_true: ArrayLike, bands: Intervals, bins: int = 10) -> float | Array:
    """Return the least coverage over bins of equal count by interval length; NaN for constant length.

    Lengths that differ by rounding only are constant: see ``constant_length``.
    """
    inside = _inside(y_true, bands)
    lower, upper = bands.per_level()

    def worst(low: Array, high: Array, hits: NDArray[np.bool_]) -> float:
        if constant_length(low, high):
            return float("nan")
        order = np.argsort(high - low, kind="stable")
        return float(min(hits[part].mean() for part in np.array_split(order, bins) if len(part)))

    return _per_level(bands, np.array([worst(*own) for own in zip(lower.T, upper.T, inside.T, strict=True)]))


def constant_length(lower: Array, upper: Array) -> bool:
    """Return whether all intervals are equally long, ``(n,), (n,)``, but for the rounding of their ends.

    Lengths may differ by a billionth of the longest, and by some units in the last place of the largest end.

    >>> ends = np.array([0.1, 1e6])
    >>> constant_length(ends - 0.3, ends + 0.3), constant_length(ends - 0.3, ends + [0.3, 0.31])
    (True, False)
    """
    length = upper - lower
    if not np.isfinite(length).all():
        return bool((length == length[0]).all())
    rounding = 32 * np.finfo(np.float64).eps * max(np.abs(lower).max(), np.abs(upper).max())
    return bool(np.ptp(length) <= 1e-9 * length.max() + rounding)


def worst_slab_coverage(
    y_true: ArrayLike,
    bands: Intervals,
    X: ArrayLike,
    *,
    mass: float = 0.2,
    directions: int = 500,
    random_state: int = 0,
) -> float | Array:
    """Return coverage on the worst slab {a <= v'x <= b} that holds at least ``mass`` of the rows.

    The slab is chosen on a quarter of the rows (at most 2,000) and judged on the others (Cauchois et al.
    2021): judged where it was chosen, even the oracle would look bad.
    """
    counts = worst_slab_counts(y_true, bands, X, mass=mass, directions=directions, random_state=random_state)
    with np.errstate(invalid="ignore"):
        return _per_level(bands, counts[:, 0] / counts[:, 1])


def worst_slab_counts(
    y_true: ArrayLike,
    bands: Intervals,
    X: ArrayLike,
    *,
    mass: float = 0.2,
    directions: int = 500,
    random_state: int = 0,
) -> NDArray[np.int64]:
    """Return how many rows of the worst slab are covered, and how many it holds, ``(L, 2)``.

    These are the rows that judge, so that their count follows the law of any other group's.
    """
    inside = _inside(y_true, bands)
    x = np.asarray(X, dtype=float)
    if x.ndim != 2 or len(x) != len(inside):
        raise ValueError(f"X must be (n, d) with n = {len(inside)} rows, found shape {x.shape}.")
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(x))
    chosen = order[: min(max(len(x) // 4, 1), 2000)]
    judged = order[len(chosen) :]
    vectors = rng.standard_normal((directions, x.shape[1]))
    projections = x @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T
    least = max(1, round(mass * len(chosen)))
    return np.array([_worst_slab(projections, hits, chosen, judged, least) for hits in inside.T.astype(float)])


def interval_score_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the mean interval score, averaged over levels: for ``scoring=`` in a search."""
    return -float(np.mean(interval_score(y, estimator.predict_interval(X))))


def _worst_slab(
    projections: Array, hits: Array, chosen: NDArray[np.intp], judged: NDArray[np.intp], least: int
) -> tuple[int, int]:
    worst, ends, direction = np.inf, (0.0, 0.0), 0
    for j in range(projections.shape[1]):
        order = chosen[np.argsort(projections[chosen, j], kind="stable")]
        sums = np.concatenate([[0.0], np.cumsum(hits[order])])
        # A longer slab splits into two of at least the least length, one of which is no better.
        for length in range(least, min(2 * least, len(order) + 1)):
            means = (sums[length:] - sums[:-length]) / length
            at = int(means.argmin())
            if means[at] < worst:
                worst, direction = float(means[at]), j
                ends = (projections[order[at], j], projections[order[at + length - 1], j])
    along = projections[judged, direction]
    slab = (along >= ends[0]) & (along <= ends[1])
    return int(hits[judged][slab].sum()), int(slab.sum())


def _column(y_true: ArrayLike, bands: Intervals) -> Array:
    y = np.asarray(y_true, dtype=float)
    if y.shape != bands.point.shape:
        raise ValueError(f"y_true must have the shape {bands.point.shape} of the bands, found {y.shape}.")
    return y[:, None]


def _inside(y_true: ArrayLike, bands: Intervals) -> NDArray[np.bool_]:
    y = _column(y_true, bands)
    lower, upper = bands.per_level()
    return (lower <= y) & (y <= upper)


def _alphas(bands: Intervals) -> Array:
    return 1 - np.atleast_1d(np.asarray(bands.confidence_level, dtype=float))


def _quantile_loss(level: float | Array, residual: Array) -> Array:
    return np.maximum(level * residual, (level - 1) * residual)


def _per_level(bands: Intervals, values: Array) -> float | Array:
    return values if isinstance(bands.confidence_level, tuple) else float(values[0])
