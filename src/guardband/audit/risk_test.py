"""The test of a promised risk: by divisions of all rows where the calibration rows are known, otherwise by bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from guardband.audit.evidence import Evidence
from guardband.audit.risk_permutations import divided_means
from guardband.audit.verdict import MOST_MORE_ROWS
from guardband.bands.risk_bounds import mean_above, mean_below
from guardband.bands.risk_promise import RiskPromise

TINY = 1e-12
"""Sums of the same losses in another order may differ by so much of the cap."""


@dataclass(frozen=True, eq=False)
class RiskTest:
    """A p-value over calibration rows and test rows, and from which mean loss on it would be significant.

    ``more_rows`` returns how many further test rows would refute the promise if all had a mean loss: None if more
    than ``MOST_MORE_ROWS``, and infinitely many if only more calibration rows would help.
    """

    p_value: float
    breaking: float
    more_rows: Callable[[float], float | None]


def risk_test(evidence: Evidence, promise: RiskPromise, total: float, significance: float) -> RiskTest:
    """Return the test of m rows with this total loss.

    A mean at or below the limit never refutes. A promise given the data must also be refuted by the test rows alone:
    otherwise rows that differ from the calibration rows, and still keep the limit, would count against it.
    """
    m, cap = evidence.n, promise.cap
    by_divisions = _by_divisions(evidence, promise, significance)
    if by_divisions is None:
        return _by_bounds(promise, m, total, significance)
    tests = [by_divisions]
    if promise.delta is not None:
        tests.append(_alone(promise, m, total, significance))
    p_value = 1.0 if total <= promise.limit * m else max(own.p_value for own in tests)
    breaking = max(promise.limit, *(own.breaking for own in tests))

    def more_rows(mean: float) -> float | None:
        each = [own.more_rows(mean) for own in tests]
        return None if None in each else max(own for own in each if own is not None)

    return RiskTest(p_value, min(breaking, cap) if breaking < math.inf else math.inf, more_rows)


def _by_divisions(evidence: Evidence, promise: RiskPromise, significance: float) -> RiskTest | None:
    """Return the exact test of exchangeable rows; None if calibration rows are not known, or p cannot be so small."""
    found = divided_means(evidence, promise.budget)
    if found is None:
        return None
    own, means = found
    fewer = math.ceil(significance * (len(means) + 1) - 1) - 1  # so many divisions may have a mean as large
    if fewer < 0:
        return None
    p_value = (1 + int((means >= own - TINY * promise.cap).sum())) / (len(means) + 1)
    breaking, center = float(np.sort(means)[::-1][fewer]), float(means.mean())
    n, m = promise.n_calibration, evidence.n

    def more_rows(mean: float) -> float | None:
        """The spread of means shrinks about as that of a difference of two means does."""
        if breaking <= center or mean <= center:
            return math.inf
        needed = (1 / n + 1 / m) * ((mean - center) / (breaking - center)) ** 2 - 1 / n
        if needed <= 0:
            return math.inf
        more = math.ceil(1 / needed) - m
        return None if more > MOST_MORE_ROWS else max(1, more)

    return RiskTest(p_value, breaking, more_rows)


def _alone(promise: RiskPromise, m: int, total: float, significance: float) -> RiskTest:
    """Return the test of the test rows alone, given the calibration rows."""
    limit, cap = promise.limit / promise.cap, promise.cap

    def p_value(mean: float, rows: int) -> float:
        return float(mean_above(rows, mean * rows / cap, limit))

    least = _least(lambda mean: p_value(mean, m) < significance, promise)
    return RiskTest(
        p_value(total / m, m), least, lambda mean: _fewest(lambda rows: p_value(mean, rows) < significance, m)
    )


def _by_bounds(promise: RiskPromise, m: int, total: float, significance: float) -> RiskTest:
    """Return the test that needs no calibration rows: it holds for every distribution of losses up to the cap."""

    def more_rows(mean: float) -> float | None:
        budget = max(0.0, promise.budget) / promise.cap
        if mean_below(promise.n_calibration, budget, mean / promise.cap) >= significance:
            return math.inf
        return _fewest(lambda rows: promise.p_value(mean * rows, rows) < significance, m)

    least = _least(lambda mean: promise.p_value(mean * m, m) < significance, promise)
    return RiskTest(promise.p_value(total, m), least, more_rows)


def _least(refutes: Callable[[float], bool], promise: RiskPromise) -> float:
    """Return about the least mean loss that refutes; infinite if none does."""
    low, high = promise.limit, promise.cap
    if not refutes(high):
        return math.inf
    while high - low > 1e-6 * promise.cap:
        middle = (low + high) / 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def _fewest(refutes: Callable[[int], bool], m: int) -> float | None:
    """Return how many rows beyond m refute; None if more than ``MOST_MORE_ROWS``."""
    low, high = 0, 1
    while not refutes(m + high):
        if high >= MOST_MORE_ROWS:
            return None
        low, high = high, min(2 * high, MOST_MORE_ROWS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(m + middle) else (middle, high)
    return high
