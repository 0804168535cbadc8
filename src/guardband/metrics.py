"""How good intervals are: every metric takes ``(y_true, bands)``.

``bands`` are ``Intervals``, or what a calibrated network puts out: lower, point and upper, ``(n, 3)`` or
``(n, 3, L)``, as an array or a tensor. A score that depends on the confidence level then needs ``confidence_level``.
With one level a metric is a float, with L levels an array ``(L,)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.intervals import Intervals, intervals_of
from guardband.bands.levels import Levels
from guardband.bands.proper_scores import PitBand as PitBand
from guardband.bands.proper_scores import crps as crps
from guardband.bands.proper_scores import log_score as log_score
from guardband.bands.proper_scores import pit as pit
from guardband.bands.proper_scores import pit_band as pit_band
from guardband.bands.sides import Tails, bound_scores
from guardband.pipelines import predict_interval

Array = NDArray[np.float64]
Bands = Any
"""``Intervals``, or lower, point and upper as an array or a tensor, ``(n, 3)`` or ``(n, 3, L)``."""
Level = float | Sequence[float] | None


def coverage(y_true: ArrayLike, bands: Bands) -> float | Array:
    """Return the share of rows whose true value lies in its interval, ends included.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.

    Examples
    --------
    >>> bands = Intervals(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([2.0, 2.0]), 0.9)
    >>> coverage([1.5, 2.5], bands)
    0.5
    """
    bands = intervals_of(bands)
    return _per_level(bands, _inside(y_true, bands).mean(axis=0))


def mean_length(y_true: ArrayLike, bands: Bands) -> float | Array:
    """Return the mean width of the intervals, upper - lower. It is infinite for intervals with one bound.

    ``interval_score`` judges these, by the bound that they have.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values. The width does not depend on them.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    """
    bands = intervals_of(bands)
    lower, upper = bands.per_level()
    return _per_level(bands, (upper - lower).mean(axis=0))


def interval_score(y_true: ArrayLike, bands: Bands, *, confidence_level: Level = None) -> float | Array:
    """Return the mean interval score (Winkler 1972): the lower, the better.

    It is width + (2 / alpha) (lower - y)_+ + (2 / alpha) (y - upper)_+. The true quantiles have the lowest mean.

    Intervals with one bound are judged by that bound alone: (upper - y) + (y - upper)_+ / alpha for an upper bound, and
    (y - lower) + (lower - y)_+ / alpha for a lower bound. That is the quantile loss, divided by alpha. With tails
    (a, b) the score is width + (lower - y)_+ / a + (y - upper)_+ / b.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    confidence_level : float or sequence of float, default None
        The level of the intervals, if ``bands`` is an array or a tensor. ``Intervals`` know their own.
    """
    bands = _at_level(bands, confidence_level)
    y = _column(y_true, bands)
    lower, upper = bands.per_level()
    if _is_plain(bands):
        outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
        return _per_level(bands, (upper - lower + 2 / _alphas(bands) * outside).mean(axis=0))
    return _per_level(bands, np.sum(bound_scores(y, lower, upper, _tails(bands)), axis=0).mean(axis=0))


def weighted_interval_score(y_true: ArrayLike, bands: Bands, *, confidence_level: Level = None) -> float:
    """Return the mean weighted interval score over the point and all levels (Bracher et al. 2021).

    (|y - point| / 2 + sum_l alpha_l / 2 * interval score_l) / (L + 1/2). Where a bound may be missed by a share other
    than alpha_l / 2, because it is the only one or the tails differ, what it adds is weighted by that share.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    confidence_level : float or sequence of float, default None
        The level of the intervals, if ``bands`` is an array or a tensor. ``Intervals`` know their own.
    """
    bands = _at_level(bands, confidence_level)
    y = _column(y_true, bands)
    lower, upper = bands.per_level()
    each = zip(bound_scores(y, lower, upper, _tails(bands)), _tails(bands), strict=True)
    bounds = sum((scores.mean(axis=0) * np.array(tail)).sum() for scores, tail in each if tail is not None)
    error = np.abs(y[:, 0] - bands.point).mean()
    return float((error / 2 + bounds) / (len(_alphas(bands)) + 0.5))


def pinball(y_true: ArrayLike, bands: Bands, *, confidence_level: Level = None) -> Array:
    """Return the mean quantile loss of lower bound, point and upper bound: ``(3,)``, or ``(3, L)``.

    It is NaN for a bound that there is none of, because the promise is about the other.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    confidence_level : float or sequence of float, default None
        The level of the intervals, if ``bands`` is an array or a tensor. ``Intervals`` know their own.
    """
    bands = _at_level(bands, confidence_level)
    y, (lower, upper), (below, above) = _column(y_true, bands), bands.per_level(), _tails(bands)
    none = np.full_like(lower, np.nan)
    losses = [
        none if below is None else _quantile_loss(np.array(below), y - lower),
        np.repeat(_quantile_loss(0.5, y - bands.point[:, None]), lower.shape[1], axis=1),
        none if above is None else _quantile_loss(1 - np.array(above), y - upper),
    ]
    means = np.stack([loss.mean(axis=0) for loss in losses])
    return means if isinstance(bands.confidence_level, tuple) else means[:, 0]


def size_stratified_coverage(y_true: ArrayLike, bands: Bands, bins: int = 10) -> float | Array:
    """Return the lowest coverage over groups of rows with similar width; NaN if all intervals have one width.

    Widths that differ by rounding only count as one: see ``constant_length``. For intervals with one bound the width is
    the distance of that bound from the prediction.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    bins : int, default 10
        How many groups of equal size the rows are split into by width.
    """
    bands = intervals_of(bands)
    inside = _inside(y_true, bands)
    lower, upper = bands.per_level()
    point = np.broadcast_to(bands.point[:, None], lower.shape)
    lower, upper = (point if bands.side == "upper" else lower), (point if bands.side == "lower" else upper)

    def worst(low: Array, high: Array, hits: NDArray[np.bool_]) -> float:
        if constant_length(low, high):
            return float("nan")
        order = np.argsort(high - low, kind="stable")
        return float(min(hits[part].mean() for part in np.array_split(order, bins) if len(part)))

    return _per_level(bands, np.array([worst(*own) for own in zip(lower.T, upper.T, inside.T, strict=True)]))


def constant_length(lower: Array, upper: Array) -> bool:
    """Return whether all intervals are equally wide, ``(n,), (n,)``, apart from rounding.

    Widths may differ by a billionth of the widest, and by some units in the last place of the largest end.

    Parameters
    ----------
    lower : array of shape (n,)
        The lower bounds.
    upper : array of shape (n,)
        The upper bounds.

    Examples
    --------
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
    bands: Bands,
    X: ArrayLike,
    *,
    mass: float = 0.2,
    directions: int = 500,
    random_state: int = 0,
) -> float | Array:
    """Return coverage in the worst region {a <= v'x <= b} that holds at least ``mass`` of the rows.

    The region is found on a quarter of the rows, at most 2,000, and its coverage is counted on the others (Cauchois et
    al. 2021). On the rows where it was found, even perfect intervals would look bad.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    X : array of shape (n, d)
        The inputs of the rows, as numbers.
    mass : float, default 0.2
        The smallest share of the rows that a region must hold.
    directions : int, default 500
        How many random directions are searched. More directions find a worse region and take longer.
    random_state : int, default 0
        The seed of the directions.
    """
    bands = intervals_of(bands)
    counts = worst_slab_counts(y_true, bands, X, mass=mass, directions=directions, random_state=random_state)
    with np.errstate(invalid="ignore"):
        return _per_level(bands, counts[:, 0] / counts[:, 1])


def worst_slab_counts(
    y_true: ArrayLike,
    bands: Bands,
    X: ArrayLike,
    *,
    mass: float = 0.2,
    directions: int = 500,
    random_state: int = 0,
) -> NDArray[np.int64]:
    """Return how many rows of the worst region are covered, and how many it holds, ``(L, 2)``.

    The rows that found the region are not counted, and the counts follow the law of any other group.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    bands : Intervals, array or tensor of shape (n, 3) or (n, 3, L)
        The intervals of the same rows: lower bound, prediction and upper bound.
    X : array of shape (n, d)
        The inputs of the rows, as numbers.
    mass : float, default 0.2
        The smallest share of the rows that a region must hold.
    directions : int, default 500
        How many random directions are searched. More directions find a worse region and take longer.
    random_state : int, default 0
        The seed of the directions.
    """
    inside = _inside(y_true, intervals_of(bands))
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
    """Return minus the mean interval score, averaged over levels, for ``scoring=`` in a search.

    Parameters
    ----------
    estimator : object
        A fitted model with ``predict_interval``, alone or at the end of a pipeline.
    X : table or array of shape (n, d)
        Test rows.
    y : array of shape (n,)
        The true values.
    """
    return -float(np.mean(interval_score(y, predict_interval(estimator, X))))


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


def _at_level(bands: Bands, confidence_level: Level) -> Intervals:
    """Return intervals whose level is known."""
    if isinstance(bands, Intervals) and bands.confidence_level is None:
        if confidence_level is None:
            raise ValueError("These intervals promise a risk, and no level. Pass confidence_level=..., such as 0.9.")
        return replace(bands, confidence_level=Levels.of(confidence_level).confidence_level)
    if isinstance(bands, Intervals):
        if confidence_level is not None:
            raise ValueError("These intervals say their own confidence level. Remove confidence_level=...")
        return bands
    if confidence_level is None:
        raise ValueError("An array does not say its confidence level. Pass confidence_level=..., such as 0.9.")
    levels = Levels.of(confidence_level)
    return intervals_of(bands, levels.floats if np.ndim(bands) == 3 else levels.confidence_level)


def _column(y_true: ArrayLike, bands: Intervals) -> Array:
    y = np.asarray(y_true.detach().cpu() if hasattr(y_true, "detach") else y_true, dtype=float)
    if y.shape != bands.point.shape:
        raise ValueError(f"y_true must have the shape {bands.point.shape} of the bands, found {y.shape}.")
    return y[:, None]


def _inside(y_true: ArrayLike, bands: Intervals) -> NDArray[np.bool_]:
    y = _column(y_true, bands)
    lower, upper = bands.per_level()
    return (lower <= y) & (y <= upper)


def _alphas(bands: Intervals) -> Array:
    return 1 - np.atleast_1d(np.asarray(bands.confidence_level, dtype=float))


def _is_plain(bands: Intervals) -> bool:
    """Return whether both bounds may be missed alike."""
    below, above = _tails(bands)
    return below == above


def _tails(bands: Intervals) -> Tails:
    """Return the shares that may lie below and above, None for a side that has no bound."""
    if bands.certificate is not None:
        return bands.certificate.promise.tails()
    alphas = tuple(_alphas(bands).tolist())
    half = tuple(alpha / 2 for alpha in alphas)
    return {"lower": (alphas, None), "upper": (None, alphas)}.get(bands.side, (half, half))


def _quantile_loss(level: float | Array, residual: Array) -> Array:
    return np.maximum(level * residual, (level - 1) * residual)


def _per_level(bands: Intervals, values: Array) -> float | Array:
    return values if isinstance(bands.confidence_level, tuple) else float(values[0])
