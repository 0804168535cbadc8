"""Weights: calibration rows from one population, rows to predict from another (known covariate shift).

The threshold of a new row x is inf{c : sum of w_i over scores <= c  >=  level (sum of all w_i + w(x))}, infinite if
there is none (Tibshirani, Barber, Candès & Ramdas 2019). The row's own weight is part of it: without it the level does
not hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.bands.weighted_promise import WeightedPromise
from guardband.calibration.counted import Counted
from guardband.calibration.counted_at import CountedAt, Weighed
from guardband.calibration.cut import Cut
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.summary import Array
from guardband.data.exact_sum import ExactSum
from guardband.data.row_numbers import known_as
from guardband.exceptions import DegenerateBandWarning
from guardband.words import level_name, number, percent, rows_named

LARGEST = np.finfo(np.float64).max
NO_WEIGHT = "All weights are 0, which leaves no calibration rows. Give some rows a positive weight."
BITS, HALF = 53, 26
"""A number of double precision is a whole number of 53 bits times a power of two; sums are made of halves."""
FEW = 4096
"""Of so many thresholds torch counts those that are too small, which a graph can do."""
SLACK = 1e-6
"""Exact sums begin this share of the total before they are needed: sums of double precision are nearer than that."""


@dataclass(frozen=True)
class WeightedCut(Cut):
    """A threshold for each row by its weight, marginal.

    A row of weight w has the j-th smallest score as threshold if the weights up to it, C_j, are at least level (W + w).
    That is w <= C_j / level - W. Calibration finds these largest weights in exact arithmetic and rounds them down to
    double precision. A new weight has that precision too, so that comparing it with them is exact: no rounding can
    lower a threshold.
    """

    word = "marginal"
    uses = frozenset({"weight"})

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the scores that can be thresholds, the largest weight that each is for, and the promise."""
        weights = checked_weights(context.weight, len(scores))
        promise, arrays, remarks = self._concluded(weighed(scores, weights, levels), len(scores), levels, chosen_after)
        return Calibration(arrays, self.promised(promise, weights), remarks)

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same from scores and weights that need not meet."""
        if not isinstance(counted, CountedAt) or type(self) is not WeightedCut:
            return super().calibrate_counted(counted, levels, chosen_after)
        promise, arrays, remarks = self._concluded(counted.at(levels), counted.n, levels, chosen_after)
        return Calibration(arrays, promise, remarks)

    def _concluded(
        self, own: Weighed, n: int, levels: Levels, chosen_after: bool
    ) -> tuple[WeightedPromise, dict[str, Array], tuple[Remark, ...]]:
        limits = own.limits.tolist()
        promise = WeightedPromise(
            confidence_level=levels.floats,
            n_calibration=n,
            whole_line=tuple(limit < 0 for limit in limits),  # whatever the weight of a new row
            n_effective=own.n_effective,
            largest_share=own.largest_share,
            most_weight=tuple(max(0.0, limit) for limit in limits),
            infinite_share=tuple(own.infinite_share.tolist()),
            chosen_after=chosen_after,
        )
        arrays = {"score": np.append(own.scores, np.inf), "most_weight": own.most_weight}
        return promise, arrays, self._remarks(promise, own.infinite, levels)

    def promised(self, promise: WeightedPromise, weights: Array) -> WeightedPromise:
        """Return what is promised of weights that are known: nothing less.

        Parameters
        ----------
        promise : WeightedPromise
            The promise with all numbers that calibration found.
        weights : array of shape (n,)
            The weights of the calibration rows.
        """
        return promise

    def thresholds(self, arrays: dict[str, Any], context: Context, xp: Any = np) -> Any:
        """Return the threshold of each row by its weight, ``(n, L)``; a weight that is no weight has none."""
        weight, most = context.weight, arrays["most_weight"]
        # a graph has no search, so torch counts unless there are many
        counts = xp is not np and most.shape[1] <= FEW
        at = [(own < weight[:, None]).sum(1) if counts else xp.searchsorted(own, weight) for own in most]
        each = [arrays["score"][own] for own in at]
        return xp.where((weight >= 0)[:, None], xp.stack(each, -1), xp.inf)

    def _remarks(self, promise: WeightedPromise, infinite: int, levels: Levels) -> tuple[Remark, ...]:
        """Return at which levels rows have infinite intervals, by the largest share of them."""
        i = int(np.argmax(promise.infinite_share))
        if not promise.infinite_share[i]:
            return ()
        if infinite and not self._are_too_few(promise, levels.values[i]):
            why = (
                f"{infinite:,} of {promise.n_calibration:,} calibration rows have a prediction that is not finite, or "
                "lie on a side of the interval that has no width. With their weights that is more than this level "
                "allows. Check the model's predictions."
            )
            return (Remark(why, DegenerateBandWarning, is_of_all=promise.whole_line[i]),)
        return (Remark(partial(self._too_few, promise, i), is_of_all=promise.whole_line[i]),)

    def _are_too_few(self, promise: WeightedPromise, level: Fraction) -> bool:
        return promise.n_effective < level / (1 - level)

    def _too_few(self, promise: WeightedPromise, i: int) -> str:
        level = level_name(promise.confidence_level[i])
        if promise.whole_line[i]:
            why = promise.why_infinite(i)
            return why[0].upper() + why[1:]
        return (
            f"About {percent(promise.infinite_share[i])} of new rows get infinite {level} intervals, because their "
            f"weight is above {number(promise.most_weight[i])}. Add calibration rows like these, or choose a lower "
            "confidence level."
        )


def checked_weights(weights: Any, n: int) -> Array:
    """Return weights of n calibration rows; raise unless they are finite, none is negative, and one is positive."""
    out = new_weights(weights, n)
    if not out.any():
        raise ValueError(NO_WEIGHT)
    return out


def new_weights(weights: Any, n: int) -> Array:
    """Return weights of n rows in double precision; raise unless they are finite and none is negative."""
    out = weights_as_numbers(weights, n)
    for odd, what in ((np.isnan(out), "missing (NaN)"), (np.isinf(out), "infinite"), (out < 0, "negative")):
        rows = np.flatnonzero(odd)
        if len(rows):
            raise ValueError(
                f"Weights must be 0 or positive numbers, and {len(rows):,} of {n:,} are {what} "
                f"({rows_named(known_as(rows))}). Correct them, or remove these rows."
            )
    return out


def weights_as_numbers(weights: Any, n: int) -> Array:
    """Return one number for each of n rows in double precision; raise if there is none."""
    try:
        out = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("weights must be numbers, and some are not. Pass one number for each row.") from None
    if out.shape != (n,):
        raise ValueError(f"weights must have one number for each of {n:,} rows, found shape {out.shape}.")
    return out


def effective_rows(weights: Array) -> float:
    """Return how many rows of equal weight say as much, (sum of w)^2 / sum of w^2.

    >>> effective_rows(np.array([1.0, 1.0, 0.0])), round(effective_rows(np.array([3.0, 1.0])), 6)
    (2.0, 1.6)
    """
    return effective(*scaled_sums(weights, float(weights.max())))


def scaled_sums(weights: Array, most: float) -> tuple[ExactSum, ExactSum]:
    """Return the sum of weights over the largest one, and that of their squares, without an error."""
    scaled = weights / most
    return ExactSum.of(scaled), ExactSum.of(scaled**2)


def effective(scaled: ExactSum, squares: ExactSum) -> float:
    """Return how many rows of equal weight say as much, from what ``scaled_sums`` returned."""
    return float(scaled.exact**2 / squares.exact)


def weighed(scores: Array, weights: Array, levels: Levels) -> Weighed:
    """Return what weights make of scores, which are all here."""
    order = np.argsort(scores, kind="stable")
    found = [largest_weights(weights[order], level) for level in levels.values]
    kept = max(map(len, found))
    most = np.stack([np.concatenate([np.full(kept - len(own), -1.0), own]) for own in found])
    total, none = ExactSum.of(weights).exact, np.empty(0)
    out = Weighed(
        scores[order][len(scores) - kept :],
        most,
        effective_rows(weights),
        float(Fraction(float(weights.max())) / total),
        none,
        int(np.isinf(scores).sum()),
    )
    shares = [float(ExactSum.of(weights[weights > limit]).exact / total) for limit in out.limits]
    return replace(out, infinite_share=np.array(shares))


def largest_weights(weights: Array, level: Fraction) -> Array:
    """Return C_j / level - W where it is not negative, for the last of n positions j, rounded down; it rises.

    C_j is the sum of the first j weights and W that of all.

    >>> largest_weights(np.ones(9), Fraction("0.9")).tolist()
    [1.0]
    >>> largest_weights(np.array([2.0, 1.0, 1.0]), Fraction(1, 2)).tolist()
    [0.0, 2.0, 4.0]
    """
    mantissas, exponents = np.frexp(weights)
    whole = np.ldexp(mantissas, BITS).astype(np.int64)
    powers = exponents.astype(np.int64) - BITS
    least = int(powers[whole > 0].min())
    total = _sum(whole, powers, least)
    sums = np.cumsum(weights / weights.max())
    start = int(np.searchsorted(sums, float(level) * (1 - SLACK) * sums[-1]))
    last = zip(whole[:start:-1].tolist(), powers[:start:-1].tolist(), strict=True)
    behind = list(accumulate((m << (e - least) if m else 0 for m, e in last), initial=0))
    scale = level.numerator << max(0, -least)
    out = []
    for after in behind:  # from the last position backward: C_j = W - after
        above = level.denominator * (total - after) - level.numerator * total
        if above < 0:
            break
        out.append(_rounded_down(above << max(0, least), scale))
    return np.array(out[::-1])


def _sum(whole: NDArray[np.int64], powers: NDArray[np.int64], least: int) -> int:
    """Return the exact sum of whole 2**power in units of 2**least: those of one power are added at once."""
    total = 0
    for power in np.unique(powers[whole > 0]).tolist():
        own = whole[powers == power]
        high, low = int((own >> HALF).sum()), int((own & (2**HALF - 1)).sum())
        total += ((high << HALF) + low) << (power - least)
    return total


def largest_weight(upto: Fraction, total: Fraction, level: Fraction) -> float:
    """Return C / level - W rounded down, where C is the sum of the weights of some scores and W of all; -1 below 0.

    >>> largest_weight(Fraction(9), Fraction(9), Fraction("0.9"))
    1.0
    """
    above = upto / level - total
    return _rounded_down(above.numerator, above.denominator) if above >= 0 else -1.0


def _rounded_down(numerator: int, denominator: int) -> float:
    """Return the largest number of double precision that is no larger than a fraction."""
    try:
        out = numerator / denominator  # the nearest one
    except OverflowError:
        return float(LARGEST)
    top, bottom = out.as_integer_ratio()
    return out if top * denominator <= numerator * bottom else math.nextafter(out, -math.inf)
