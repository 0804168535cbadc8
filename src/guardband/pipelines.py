"""Intervals of a model that stands inside a pipeline, a search or a transformed target of scikit-learn.

These know ``predict`` alone. What is found at their end must predict intervals itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level

Array = NDArray[np.float64]

HUGE = 1e300
STEPS = 257
"""At so many places, and at all ends of intervals, the way back to the units of y must go in one direction."""

NO_WAY_BACK = "The inverse of the target transformation must rise everywhere, or fall everywhere. This one"
INSTEAD = (
    'Use target_transform of IntervalRegressor instead, such as "log" or "sqrt", which keeps to the values that y has.'
)


def predict_interval(
    model: Any,
    X: Any,
    *,
    confidence_level: Level | Sequence[Level] | None = None,
    alpha: Level | Sequence[Level] | None = None,
) -> Intervals:
    """Return the intervals of new rows, also from behind a pipeline, a search or a transformed target.

    Parameters
    ----------
    model : fitted model
        An ``IntervalRegressor`` or what ``gb.calibrate`` returned. It may stand at the end of a ``Pipeline``, inside a
        search such as ``GridSearchCV`` (its best estimator is used), or inside a ``TransformedTargetRegressor``.
    X : table
        The new rows, as ``model.predict`` takes them.
    confidence_level : float or sequence of float, default None
        Other levels than those the model was calibrated for.
    alpha : float or sequence of float, default None
        One minus the levels, in place of ``confidence_level``.

    Returns
    -------
    Intervals
        In the units of y. Ends inside a ``TransformedTargetRegressor`` are mapped by its inverse transformation, which
        must rise everywhere or fall everywhere.

    Notes
    -----
    A pipeline or a search fits its other parts on all rows that ``fit`` is given, calibration rows included. The
    certificate says what follows. See "Pipelines and searches" for ways that keep the promise.
    """
    levels = {"confidence_level": confidence_level, "alpha": alpha}
    bands = _asked(model, X, {name: value for name, value in levels.items() if value is not None})
    if hasattr(model, "predict_interval"):
        return bands
    index = X.index if hasattr(X, "iloc") else bands.index
    names = tuple(str(name) for name in X.columns) if hasattr(X, "columns") else bands.input_names
    return replace(bands, index=index, input_names=names)


def _asked(model: Any, X: Any, levels: dict[str, Any]) -> Intervals:
    if hasattr(model, "predict_interval"):
        bands: Intervals = model.predict_interval(X, **levels)
        return bands
    if hasattr(model, "best_estimator_"):
        return _asked(model.best_estimator_, X, levels)
    if hasattr(model, "steps"):
        return _asked(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X, levels)
    if hasattr(model, "regressor_") and hasattr(model, "transformer_"):
        return _in_units(_asked(model.regressor_, X, levels), model.transformer_)
    raise TypeError(_what_is_missing(model))


def _what_is_missing(model: Any) -> str:
    name = type(model).__name__
    if hasattr(model, "refit") and hasattr(model, "best_params_"):
        return f"This {name} holds no fitted model, because refit is {model.refit!r}. Set refit=True and fit it again."
    if hasattr(model, "refit") or (hasattr(model, "regressor") and hasattr(model, "transformer")):
        return f"This {name} is not fitted. Call fit(X, y) first."
    return (
        f"A model of the type {name} predicts no intervals. Put an IntervalRegressor in its place, or calibrate the "
        "whole model: gb.calibrate(model, (X, y)) with rows that it has not seen."
    )


def _in_units(bands: Intervals, transformer: Any) -> Intervals:
    """Return intervals of a transformed target in the units of y.

    An interval holds y if it holds the transformed y. If the inverse rises, its values at the ends are the ends for y;
    if it falls, they change places. Where no y goes beyond an end, as with a transformation that cuts off, the end for
    y is infinite.
    """
    way = _Way.of(transformer, np.concatenate([bands.lower.ravel(), bands.point, bands.upper.ravel()]))
    lower, upper = (bands.lower, bands.upper) if way.sign > 0 else (-bands.upper, -bands.lower)
    ends = way.end(lower, -1.0), way.end(upper, 1.0)
    point = way.back(way.sign * bands.point)
    if any(np.isnan(part).any() for part in (*ends, point)):
        raise ValueError(f"{NO_WAY_BACK} gives no number for some interval. {INSTEAD}")
    return replace(bands, lower=ends[0], point=point, upper=ends[1])


@dataclass(frozen=True)
class _Way:
    """The way between y and its transformation, which is turned over by ``sign`` if it falls: both rise here."""

    transformer: Any
    sign: float

    @classmethod
    def of(cls, transformer: Any, values: Array) -> _Way:
        """Return the way, which must go in one direction over all of these values."""
        known = values[np.isfinite(values)]
        if not len(known):
            return cls(transformer, 1.0)
        places = np.union1d(known, np.linspace(known.min(), known.max(), STEPS))
        found = cls(transformer, 1.0).back(places)
        found = found[~np.isnan(found)]
        if (found[1:] >= found[:-1]).all():
            return cls(transformer, 1.0)
        if (found[1:] <= found[:-1]).all():
            return cls(transformer, -1.0)
        raise ValueError(f"{NO_WAY_BACK} rises in some places and falls in others. {INSTEAD}")

    def back(self, values: Array) -> Array:
        """Return values in the units of y; what is not finite stays."""
        out = values.copy()
        is_finite = np.isfinite(values)
        if is_finite.any():
            out[is_finite] = _column(self.transformer.inverse_transform, self.sign * values[is_finite])
        return out

    def there(self, y: Array) -> Array:
        """Return the transformation of y, NaN if there is none."""
        try:
            return self.sign * _column(self.transformer.transform, y)
        except ValueError:
            return np.full(y.shape, np.nan)

    def end(self, ends: Array, side: float) -> Array:
        """Return lower ends (``side`` is -1) or upper ends (1) for y, rounded outward."""
        out = self.back(ends)
        furthest = self.there(np.array([side * HUGE]))[0]
        out[side * furthest <= side * ends] = side * np.inf
        # One value stands for all y that round to the same transformation: those within the errors of two roundings.
        is_finite = np.isfinite(out) & (np.abs(out) != np.abs(ends))
        error = 4 * np.finfo(np.float64).eps * np.abs(out[is_finite]) * (1 + np.abs(ends[is_finite]))
        out[is_finite] += side * error
        return out


def _column(function: Callable[[Array], Any], values: Array) -> Array:
    """Return what a transformer makes of numbers; too large ones are infinite, and impossible ones NaN."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        out: Array = np.asarray(function(values.reshape(-1, 1)), dtype=np.float64).ravel()
    return out
