"""How much likelier each row is in another population than among the training rows: a calibrated classifier.

The classifier tells training rows from rows to predict. If it says p for a row, the row is p / (1 - p) times as likely
among the latter, up to their numbers. It is a logistic regression on the encoded columns, their squares and a few
random features of all of them together: smooth, quick, and a few plain arrays in a file.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Array = NDArray[np.float64]

FEWEST = 20
"""So many rows are needed on either side to learn anything."""
MOST = 20_000
"""More rows on either side are not looked at."""
MOST_TO_CHOOSE = 4000
"""So many rows on either side choose the penalty."""
RANDOM, SPREAD = 32, 1.0
"""The number of random features, and how steep they are."""
BUCKETS = 64
"""Columns of more categories than this let some share a weight."""
REACH = 6.0
"""Encoded numbers are not looked at beyond so many deviations: few training rows lie there."""
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
FOLDS = 5
MOST_FOR_NEWTON = 500
"""With more features, a step of Newton's method takes longer than the many steps that it saves."""
REACHED_BY = 10
"""Weights are limited to the one that so many training rows reach: beyond it there is too little to learn from."""


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """A fitted classifier, as arrays.

    ``center`` and ``scale`` ``(d,)`` standardise numbers, ``directions`` ``(d, R)`` and ``offsets`` ``(R,)`` make
    random features, and ``coefficients`` ``(F,)`` with ``intercept`` give the logarithm of the ratio. ``sizes`` are the
    numbers of indices that the last columns have. No weight is larger than ``largest``.
    """

    center: Array
    scale: Array
    directions: Array
    offsets: Array
    coefficients: Array
    intercept: float
    largest: float
    sizes: tuple[int, ...] = ()

    @classmethod
    def learn(cls, source: Matrix, target: Matrix, sizes: Sequence[int] = (), seed: int = 0) -> DensityRatio:
        """Return the classifier of encoded training rows and rows to predict, ``(n, d)`` each; indices come last."""
        rng = np.random.default_rng(seed)
        source, target = (some_rows(own, rng) for own in (source, target))
        both = np.concatenate([source, target]).astype(np.float64)
        numbers = both[:, : both.shape[1] - len(sizes)]
        scale = numbers.std(axis=0)
        d = numbers.shape[1]
        empty = cls(
            numbers.mean(axis=0),
            np.where(scale > 0, scale, 1.0),
            rng.standard_normal((d, RANDOM)) * SPREAD / np.sqrt(max(d, 1)),
            rng.uniform(-1, 1, RANDOM),
            np.zeros(0),
            0.0,
            np.inf,
            tuple(sizes),
        )
        features, is_target = empty.features(both), np.arange(len(both)) >= len(source)
        fold = rng.permutation(len(both)) % FOLDS
        penalty = _chosen_penalty(features, is_target, fold, rng)
        out_of_fold = _out_of_fold(features, is_target, fold, penalty)
        slope, shift = _logistic(out_of_fold[:, None], is_target, 1e-3)
        beta, intercept = _logistic(features, is_target, penalty)
        log_sizes = np.log(len(source) / len(target))
        reached = np.sort(slope[0] * out_of_fold[~is_target] + shift + log_sizes)[-REACHED_BY]
        return cls(
            empty.center,
            empty.scale,
            empty.directions,
            empty.offsets,
            slope[0] * beta,
            float(slope[0] * intercept + shift + log_sizes),
            float(np.exp(np.clip(reached, -50, 50))),
            empty.sizes,
        )

    def features(self, inputs: NDArray[Any]) -> Array:
        """Return what the logistic regression is given, ``(n, d) -> (n, F)``."""
        d = len(self.center)
        z = np.clip((inputs[:, :d].astype(np.float64) - self.center) / self.scale, -REACH, REACH)
        parts = [z, z**2, np.tanh(z @ self.directions + self.offsets)]
        for j, size in enumerate(self.sizes):
            codes = inputs[:, d + j].astype(np.int64) % BUCKETS
            parts.append((codes[:, None] == np.arange(min(size, BUCKETS))).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def log_ratios(self, inputs: NDArray[Any]) -> Array:
        """Return the logarithm of the ratio of encoded rows, not limited, ``(n,)``."""
        with np.errstate(all="ignore"):  # arrays of a file may be of any size; what is no number has no finite interval
            out: Array = self.features(inputs) @ self.coefficients + self.intercept
        return out

    def weights(self, inputs: NDArray[Any]) -> Array:
        """Return the weights of encoded rows, ``(n,)``."""
        return np.minimum(np.exp(np.minimum(self.log_ratios(inputs), np.log(self.largest))), self.largest)

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays, for a file."""
        names = ("center", "scale", "directions", "offsets", "coefficients")
        numbers = np.array([self.intercept, self.largest])
        return {name: getattr(self, name) for name in names} | {"numbers": numbers}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], numbers: int, sizes: Sequence[int]) -> DensityRatio:
        """Return the classifier of rows with so many numbers and such indices; arrays that do not fit are refused."""
        shapes = {
            "center": (numbers,),
            "scale": (numbers,),
            "directions": (numbers, RANDOM),
            "offsets": (RANDOM,),
            "coefficients": (2 * numbers + RANDOM + sum(min(size, BUCKETS) for size in sizes),),
            "numbers": (2,),
        }
        if {name: own.shape for name, own in arrays.items()} != shapes:
            raise ValueError("its weights are for other columns")
        if not all(own.dtype == np.float64 and np.isfinite(own).all() for own in arrays.values()):
            raise ValueError("its weights hold infinity or NaN")
        intercept, largest = arrays["numbers"].tolist()
        if largest <= 0 or not (arrays["scale"] > 0).all():
            raise ValueError("its weights are not positive")
        named = {name: own for name, own in arrays.items() if name != "numbers"}
        return cls(**named, intercept=intercept, largest=largest, sizes=tuple(sizes))


def some_rows(rows: NDArray[Any], rng: np.random.Generator, most: int = MOST) -> NDArray[Any]:
    """Return at most so many rows, drawn at random."""
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _chosen_penalty(
    features: Array, is_target: NDArray[np.bool_], fold: NDArray[np.intp], rng: np.random.Generator
) -> float:
    """Return the penalty with the least loss on rows that were left out."""
    sides = [np.flatnonzero(is_target == side) for side in (False, True)]
    rows = np.concatenate([some_rows(side, rng, MOST_TO_CHOOSE) for side in sides])
    x, y, own = features[rows], is_target[rows], fold[rows]
    share = len(rows) / len(features)
    losses = [_loss(_out_of_fold(x, y, own, penalty * share), y) for penalty in PENALTIES]
    return PENALTIES[int(np.argmin(losses))]


def _loss(logits: Array, is_target: NDArray[np.bool_]) -> float:
    return float(np.logaddexp(0, np.where(is_target, -logits, logits)).mean())


def _out_of_fold(features: Array, is_target: NDArray[np.bool_], fold: NDArray[np.intp], penalty: float) -> Array:
    """Return for each row the logit of a classifier that did not see it."""
    out = np.empty(len(features))
    for k in range(FOLDS):
        left = fold == k
        beta, intercept = _logistic(features[~left], is_target[~left], penalty)
        out[left] = features[left] @ beta + intercept
    return out


def _logistic(features: Array, is_target: NDArray[np.bool_], penalty: float) -> tuple[Array, float]:
    """Return coefficients and intercept of a logistic regression with a ridge penalty."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if features.shape[1] <= MOST_FOR_NEWTON else "lbfgs"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nearly the best is good enough: weights are estimates
        found = LogisticRegression(C=1 / penalty, solver=solver, max_iter=300).fit(features, is_target)
    return found.coef_[0], float(found.intercept_[0])
