"""Models of any library: what each can be asked for, and how its answer is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import as_array, from_tensor
from guardband.doors.outputs import Outputs
from guardband.pipelines import predict_interval

Columns = NDArray[np.float64]
Ask = Callable[[Any, Sequence[float]], Any]

BY_COLUMNS: dict[int, Outputs] = {1: "point", 2: "bounds", 3: "bands"}
"""What so many columns are, of a function or of several models."""
MULTI_QUANTILE, UNCERTAINTY = "MultiQuantile:alpha=", "RMSEWithUncertainty"
"""Losses of CatBoost."""
LEAST_DEVIATION = 1e-150


@dataclass(frozen=True)
class Predictor:
    """A model that can be asked for columns of numbers, ``(n, k)``.

    ``outputs`` says what they are, as ``calibrate`` takes it; None if they are quantiles at any levels asked for. With
    ``by_columns`` their number says it.
    """

    ask: Ask
    outputs: Outputs | None
    by_columns: bool = False

    def columns(self, X: Any, n_rows: int, levels: Sequence[float]) -> Columns:
        """Return what the model predicts for rows, at these levels if it can choose."""
        answer = self.ask(X, levels)
        several = isinstance(answer, list | tuple) and len(answer) > 0 and np.ndim(answer[0]) == 1
        found = np.stack([_numbers(own) for own in answer], axis=1) if several else _numbers(answer)
        found = found.reshape(-1, 1) if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != n_rows:
            raise ValueError(
                f"The model must predict one row of numbers for each of {n_rows} rows, found the shape {found.shape}."
            )
        return found


def predictor_of(model: Any, outputs: Any = None) -> Predictor:
    """Return how to ask a fitted model, a pair or a triple of models, or a function from rows to numbers.

    ``outputs`` declares what it predicts; otherwise what is known of its library says it.
    """
    for own in model if isinstance(model, list | tuple) else [model]:
        _refuse_classifier(own)
    if isinstance(model, list | tuple):
        if len(model) not in (2, 3):
            raise ValueError(f"Several models must be (lower, upper) or (lower, point, upper), found {len(model)}.")
        calls = [_call(own) for own in model]
        declared = BY_COLUMNS[len(model)] if outputs is None else outputs
        return Predictor(lambda X, levels: [_one(call(X)) for call in calls], declared)
    if outputs is not None:
        call = _call(model)
        return Predictor(lambda X, levels: call(X), outputs)
    if not hasattr(model, "predict") or isinstance(model, type):
        call = _call(model)
        return Predictor(lambda X, levels: call(X), None, by_columns=True)
    return _known(model) or Predictor(lambda X, levels: model.predict(X), "point")


def side_by_side(predictors: Sequence[Predictor]) -> Predictor:
    """Return several predictors as one: the columns of the first, then those of the second, and so on."""
    return Predictor(
        lambda X, levels: np.hstack([own.columns(X, len(X), levels) for own in predictors]), predictors[0].outputs
    )


def model_in_words(model: Any) -> str:
    """Return what a model is by name; of several, what each of them predicts."""
    if not isinstance(model, list | tuple):
        return type(model).__name__
    parts = {2: ("lower", "upper"), 3: ("lower", "point", "upper")}[len(model)]
    return ", ".join(f"{type(own).__name__} ({part})" for own, part in zip(model, parts, strict=True))


def _refuse_classifier(model: Any) -> None:
    """Raise if a model predicts classes: their names may be numbers, of which no interval says anything."""
    inner = innermost(model)[0]
    if hasattr(inner, "predict_proba") and hasattr(inner, "classes_"):
        raise TypeError(
            f"{type(inner).__name__} predicts classes, and intervals are for numbers. Calibrate a regressor, or a "
            "function that returns numbers."
        )


def _known(model: Any) -> Predictor | None:
    """Return how to ask a model that predicts more than a point, None for any other."""
    model = getattr(model, "best_estimator_", model)  # a search does not pass on what else it is asked for
    inner, is_transformed = innermost(model)
    if hasattr(inner, "predict_interval"):  # guardband's own
        return Predictor(lambda X, levels: _bands(model, X), "bands")
    takes = _parameters(inner.predict)
    distribution = _distribution(model)
    if distribution is not None:  # NGBoost
        return Predictor(lambda X, levels: [distribution(X).ppf(level) for level in levels], None)
    if "output_type" in takes and "quantiles" in takes:  # TabPFN
        return Predictor(
            lambda X, levels: list(model.predict(X, output_type="quantiles", quantiles=list(levels))), None
        )
    if "quantiles" in takes:  # quantile forests
        return Predictor(lambda X, levels: model.predict(X, quantiles=list(levels)), None)
    if "return_std" in takes and not is_transformed:  # Gaussian processes, Bayesian ridge
        return Predictor(lambda X, levels: _gaussian(*model.predict(X, return_std=True)), "gaussian")
    settings = inner.get_params() if hasattr(inner, "get_params") else {}
    quantiles = settings.get("quantile_alpha")  # XGBoost
    if quantiles is not None and np.ndim(quantiles) == 1:
        return Predictor(lambda X, levels: model.predict(X), _increasing(quantiles))
    loss = str(settings.get("loss_function") or settings.get("objective"))
    if loss.startswith(MULTI_QUANTILE):
        levels = [float(level) for level in loss.removeprefix(MULTI_QUANTILE).split(";")[0].split(",")]
        return Predictor(lambda X, levels: model.predict(X), _increasing(levels))
    if loss.startswith(UNCERTAINTY):
        if is_transformed:  # what comes back is no variance: the mean alone can be used
            return Predictor(lambda X, levels: _numbers(model.predict(X))[:, 0], "point")
        return Predictor(lambda X, levels: _with_deviation(model.predict(X)), "gaussian")
    return None


def _bands(model: Any, X: Any) -> Columns:
    """Return the bounds and the point of the model's first level."""
    bands = predict_interval(model, X)
    lower, upper = bands.per_level()
    return np.column_stack([lower[:, 0], bands.point, upper[:, 0]])


def _increasing(levels: Any) -> Outputs:
    """Return what quantiles at these levels are: a pair about the middle needs no median between."""
    own = tuple(float(level) for level in levels)
    if list(own) != sorted(set(own)):
        raise ValueError(f"The quantiles of a model must rise, found {list(own)}: fit it with them in order.")
    if len(own) == 1:
        return "point"
    return "bounds" if len(own) == 2 and np.isclose(sum(own), 1, rtol=0, atol=1e-9) else own


def innermost(model: Any) -> tuple[Any, bool]:
    """Return the model inside pipelines, searches and transformed targets, and whether there are any of the last."""
    is_transformed = False
    for _ in range(10):
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "regressor_"):
            model, is_transformed = model.regressor_, True
        else:
            break
    return model, is_transformed


def _distribution(model: Any) -> Callable[[Any], Any] | None:
    """Return what predicts distributions, as NGBoost does, also at the end of pipelines, which do not pass it on."""
    if hasattr(model, "pred_dist"):
        return model.pred_dist  # type: ignore[no-any-return]
    if hasattr(model, "best_estimator_"):
        return _distribution(model.best_estimator_)
    inner = _distribution(model.steps[-1][1]) if hasattr(model, "steps") else None
    if inner is None or len(model.steps) == 1:
        return inner
    return lambda X: inner(model[:-1].transform(X))


def _parameters(function: Any) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of compiled code
        return frozenset()


def _call(model: Any) -> Callable[[Any], Any]:
    call = getattr(model, "predict", None) or model
    if not callable(call) or isinstance(model, type):
        raise TypeError(
            "guardband calibrates a fitted model with predict, a function, a pair or triple of these, or a torch "
            f"network, found {type(model).__name__}."
        )
    return call  # type: ignore[no-any-return]


def _numbers(values: Any) -> Columns:
    return np.asarray(as_array(from_tensor(values)), dtype=np.float64)


def _one(values: Any) -> Columns:
    """Return the one column of a model that is a bound."""
    found = _numbers(values)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"Each of several models must predict one number for each row, found shape {found.shape}.")
    return found


def _with_deviation(values: Any) -> Columns:
    """Return mean and deviation of mean and variance."""
    mean, variance = _numbers(values).T
    return _gaussian(mean, np.sqrt(variance))


def _gaussian(mean: Any, deviation: Any) -> Columns:
    """Return mean and deviation, which is 0 where a process without noise was trained: then it is as good as 0."""
    mean, deviation = _numbers(mean), _numbers(deviation)
    least = np.finfo(np.float64).eps * np.abs(mean) + LEAST_DEVIATION
    return np.stack([mean, np.maximum(deviation, least)], axis=-1)
