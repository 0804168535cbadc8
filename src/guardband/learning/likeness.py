"""Likeness of errors: ranks, random exchanges of them, and exact p-values by Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

EXCEEDED_ENOUGH = 10
DRAWN = 1.2
"""Exchanges over the least number that a p-value at the limit needs."""
CELLS_AT_ONCE = 1_000_000


def centred_ranks(values: Array, parts: Ints) -> Array:
    """Return the ranks of values within their part, with mean 0 and, without ties, variance 1."""
    from scipy.stats import rankdata

    ranks = np.zeros(len(values))
    for part in np.unique(parts):
        own = np.flatnonzero(parts == part)
        ranks[own] = (rankdata(values[own]) - (len(own) + 1) / 2) * math.sqrt(12) / len(own)
    return ranks


def exchanges(values: Array, blocks: Iterable[tuple[int, int, int]], times: int, rng: np.random.Generator) -> Array:
    """Return ``(times, n)``: values exchanged at random within blocks: where they start, how many, how long each."""
    out = np.empty((times, len(values)))
    for start, count, length in blocks:
        part = np.broadcast_to(values[start : start + count * length], (times, count * length))
        exchanged = rng.permuted(part.reshape(times, count, length), axis=2)
        out[:, start : start + count * length] = exchanged.reshape(times, -1)
    return out


def p_value(
    statistic: Callable[[Array], Array],
    values: Array,
    blocks: Iterable[tuple[int, int, int]],
    limit: float,
    rng: np.random.Generator,
) -> float:
    """Return the p-value of a statistic of ``(times, n)`` values if they may be exchanged within blocks.

    It is exact: under exchangeability at most a share p of the p-values is at most p. After Besag and Clifford (1991)
    drawing ends once ten exchanges have reached what was observed, since the p-value is then far above the limit.
    """
    observed = float(statistic(values[None])[0]) * (1 - 1e-12)
    blocks, most = list(blocks), math.ceil(DRAWN / limit)
    done, reached, size = 0, 0, 4 * EXCEEDED_ENOUGH
    while done < most:
        drawn = statistic(exchanges(values, blocks, min(size, most - done), rng)) >= observed
        if reached + drawn.sum() >= EXCEEDED_ENOUGH:
            last = int(np.flatnonzero(drawn)[EXCEEDED_ENOUGH - reached - 1])
            return EXCEEDED_ENOUGH / (done + last + 1)
        done, reached = done + len(drawn), reached + int(drawn.sum())
        size = max(1, CELLS_AT_ONCE // len(values))
    return (reached + 1) / (done + 1)
