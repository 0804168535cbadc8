"""An interval for coverage that holds at every look, also while coverage changes.

Whatever the chances q_1, q_2, ... of a miss are, given all that came before, and with their mean q,

    E[exp(lambda s)] / prod (1 - q_i + q_i e^lambda) = 1  and  prod (1 - q_i + q_i e^lambda) <= (1 - q + q e^lambda)^t,

as the logarithm is concave. A mixture over lambda is therefore evidence against any mean q, after every row, and the
interval holds all means whose evidence is small (Howard et al. 2021; Waudby-Smith & Ramdas 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

CONFIDENCE = 0.95
SLOPES = np.geomspace(0.002, 5, 18)
SLOPES = np.concatenate([-SLOPES[::-1], SLOPES])
STEPS = 60


@dataclass(frozen=True)
class Coverage:
    """How many rows fell inside, and where their true coverage lies.

    Parameters
    ----------
    share : float
        The share of rows that fell inside.
    low, high : float
        With ``confidence``, the coverage of these rows lies between, at every look.
    rows : int
        How many rows these are.
    since : int
        How many rows came before them.
    confidence : float
        How sure the interval is.
    """

    share: float
    low: float
    high: float
    rows: int
    since: int = 0
    confidence: float = CONFIDENCE


def coverage_of(misses: int, rows: int, since: int = 0, log_weight: float = 0.0) -> Coverage:
    """Return the coverage of rows with its interval.

    ``log_weight`` is the logarithm of what these rows' start has of the interval's error, if it was chosen by looking.

    >>> coverage_of(10, 100).share
    0.9
    """
    if not rows:
        return Coverage(math.nan, 0.0, 1.0, 0, since)
    limit = -math.log(1 - CONFIDENCE) - log_weight
    share = misses / rows
    low = _end(misses, rows, limit, share, 0.0)
    high = _end(misses, rows, limit, share, 1.0)
    return Coverage(1 - share, 1 - high, 1 - low, rows, since)


def _end(misses: int, rows: int, limit: float, inside: float, outside: float) -> float:
    """Return the farthest mean towards ``outside`` with little evidence against it, rounded outward."""
    if _evidence(misses, rows, outside) < limit:
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if _evidence(misses, rows, middle) < limit:
            inside = middle
        else:
            outside = middle
    return outside


def _evidence(misses: int, rows: int, mean: float) -> float:
    """Return the logarithm of the evidence against a mean chance of a miss."""
    each = SLOPES * misses - rows * np.log1p(mean * np.expm1(SLOPES))
    return float(logsumexp(each) - math.log(len(SLOPES)))
