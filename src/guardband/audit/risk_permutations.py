"""What the mean loss of test rows would be if calibration rows and test rows changed places.

If all rows are exchangeable, every division of them into calibration rows and test rows is as likely as the one that
was made. For each of many divisions, the threshold is found anew on its calibration rows, and the mean loss on its test
rows. The share of divisions with a mean as large is an exact p-value, over both samples, whatever losses look like.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guardband.audit.evidence import Evidence
from guardband.calibration.risk_control import RiskControl
from guardband.calibration.summary import Summary

Array = NDArray[np.float64]

DIVISIONS = 1_999
MOST_ROWS = 200_000
"""Of more rows, divisions take too long."""
AT_A_TIME = 64
STEPS = 64
"""Thresholds at which losses are computed; between them the totals are interpolated."""
FAR = 6.0
"""In standard errors, how far the total of a division may lie from what is expected before steps become coarse."""


def divided_means(evidence: Evidence, budget: float) -> tuple[float, Array] | None:
    """Return the mean loss of the test rows, and that of each division, ``(D,)``; None if rows are lacking or too many.

    The calibration rows of each division may have the loss ``budget`` in all.
    """
    rule = evidence.rule
    if not isinstance(rule, RiskControl) or evidence.scores is None or evidence.summary is None:
        return None
    n, m = evidence.summary.n, evidence.n
    if n + m > MOST_ROWS or budget < 0:
        return None
    every = rule.with_rows(evidence.summary, evidence.predicted, evidence.y, evidence.scores)
    losses = _losses(rule, every, budget / n, n)
    total = losses.sum(axis=0)
    own = _means(losses[:n].sum(axis=0)[None], total, budget, m)
    random, found = np.random.default_rng(0), []
    for first in range(0, DIVISIONS, AT_A_TIME):
        chosen = np.zeros((min(AT_A_TIME, DIVISIONS - first), n + m))
        for row in chosen:
            row[random.permutation(n + m)[:n]] = 1
        found.append(_means(chosen @ losses, total, budget, m))
    return float(own[0]), np.concatenate(found)


def _losses(rule: RiskControl, every: Summary, mean: float, n: int) -> Array:
    """Return the loss of each row at thresholds around that of all rows together, the largest loss first, ``(N, S)``.

    They depend on the rows as a set only: no division is special.
    """
    scores = np.sort(every.rows("score"))
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return np.zeros((every.n, 1))
    error = FAR * float(rule.losses(every, _threshold(rule, every, finite, mean)).std()) / np.sqrt(n)
    ends = [_threshold(rule, every, finite, mean + error), _threshold(rule, every, finite, max(0.0, mean - error))]
    places = np.unique([finite[0], *np.linspace(ends[0], ends[1], STEPS), finite[-1]])
    return np.stack([*(rule.losses(every, float(c)) for c in places), rule.losses(every, np.inf)], axis=1)


def _threshold(rule: RiskControl, every: Summary, finite: Array, mean: float) -> float:
    """Return about the threshold at which all rows have this mean loss: one of their scores."""
    low, high = 0, len(finite) - 1
    while low < high:
        middle = (low + high) // 2
        if rule.losses(every, float(finite[middle])).mean() <= mean:
            high = middle
        else:
            low = middle + 1
    return float(finite[low])


def _means(own: Array, total: Array, budget: float, m: int) -> Array:
    """Return the mean loss of the other rows where the total of a division's own falls to the budget.

    ``(D, S), (S,) -> (D,)``: both totals are interpolated between two thresholds.
    """
    at = np.argmax(own <= budget, axis=1)
    before, rows = np.maximum(at - 1, 0), np.arange(len(own))
    here, there = own[rows, at], own[rows, before]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(there > here, np.clip((budget - here) / (there - here), 0, 1), 0.0)
    share = np.where(at == 0, 0.0, share)
    means: Array = ((total[at] - here) + share * ((total[before] - there) - (total[at] - here))) / m
    return means
