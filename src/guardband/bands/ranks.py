"""Ranks, order statistics and the exact law of coverage: the only place where they are computed.

Coverage given the calibration rows, of an interval cut at the k-th smallest of n scores, is
Beta(k, n + 1 - k) when the scores have no ties, and stochastically larger otherwise (Vovk 2012).
Everything here follows from that law and from P(Beta(k, n + 1 - k) <= p) = P(Bin(n, p) >= k).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, gammaln

from guardband.bands.simultaneous import delta_for_each_rank

Array = NDArray[np.float64]


def marginal_rank(level: Fraction, n: int) -> int:
    """Return k = ceil(level (n + 1)), the rank of split conformal; k > n means the whole line.

    >>> marginal_rank(Fraction("0.9"), 9), marginal_rank(Fraction("0.9"), 8)
    (9, 9)
    """
    return math.ceil(level * (n + 1))


def spread_ranks(n: int, most: int) -> NDArray[np.intp]:
    """Return all ranks from 1 to n, or ``most`` of them in the middle of as many equal shares.

    >>> spread_ranks(3, 5).tolist(), spread_ranks(10, 5).tolist()
    ([1, 2, 3], [1, 3, 5, 7, 9])
    """
    if n <= most:
        return np.arange(1, n + 1)
    return (2 * np.arange(most) + 1) * n // (2 * most) + (((2 * np.arange(most) + 1) * n) % (2 * most) > 0)


def pac_rank(level: Fraction, n: int, delta: float) -> int:
    """Return the least k with P(Bin(n, level) >= k) <= delta, or n + 1 where there is none.

    An interval cut at this rank covers at least ``level`` given the data, with probability at least
    1 - delta over the draw of the calibration rows.

    >>> [pac_rank(Fraction("0.9"), n, 0.1) for n in (500, 1000, 4000, 25000)]
    [460, 913, 3625, 22562]
    """
    p = float(level)
    return _least(lambda k: bool(betainc(k, n + 1 - k, p) <= delta), n)


def selection_rank(level: Fraction, n: int) -> int:
    """Return ceil(level n), the count that Algorithm 2 of the paper asks of a network on D2."""
    return math.ceil(level * n)


def average_rank(level: Fraction, n: int, candidates: int) -> int:
    """Return the least count that makes a choice among networks cover ``level`` on average, or n + 1.

    For one candidate, or a K-free rule, this is the rank of split conformal.
    """
    if candidates == 1:
        return marginal_rank(level, n)
    return _least(lambda k: average_coverage(k, n, candidates) >= float(level), n)


def order_statistic(scores: Array, k: int) -> float:
    """Return the k-th smallest score, by partition and never by interpolation; inf where k > n.

    Of zeros with a sign it is the positive one: a partition would take either.
    """
    return float(np.partition(scores, k - 1)[k - 1]) + 0.0 if k <= len(scores) else math.inf


def shared_order_statistic(scores: Array, entity: NDArray[Any], weight: Fraction) -> float:
    """Return the least score at which the weights of all scores up to it reach ``weight``; inf where they never do.

    ``weight`` is positive. The scores of one of K entities share the weight 1. In exact arithmetic, since a sum that
    falls short by rounding would lower the threshold.

    >>> shared_order_statistic(np.array([1.0, 2.0, 3.0]), np.array([7, 7, 8]), Fraction(1))
    2.0
    """
    _, inverse, sizes = np.unique(entity, return_inverse=True, return_counts=True)
    if weight > len(sizes):
        return math.inf
    order = np.argsort(scores, kind="stable")
    size = sizes[inverse[order]]
    at = int(np.searchsorted(np.cumsum(1 / size), float(weight)))
    while _shared_weight(size[:at]) >= weight:
        at -= 1
    while _shared_weight(size[: at + 1]) < weight:
        at += 1
    return float(scores[order[at]])


def _shared_weight(sizes: NDArray[Any]) -> Fraction:
    """Return the sum of 1 / size."""
    counts = np.bincount(sizes)
    return sum((Fraction(int(counts[n]), int(n)) for n in np.flatnonzero(counts)), Fraction(0))


def coverage_bound(delta: float, k: int, n: int) -> float:
    """Return what coverage given the data exceeds with probability at least 1 - delta.

    The delta-quantile of Beta(k, n + 1 - k), which is less than 1; 1 for the whole line, where k > n.
    """
    if k > n:
        return 1.0
    return min(float(betaincinv(k, n + 1 - k, delta)), math.nextafter(1, 0)) if k > 0 else 0.0


def simultaneous_bound(delta: float, k: int, n: int) -> float:
    """Return a bound like ``coverage_bound`` that holds for every k at once, for any delta.

    It is the one to quote for a level that was chosen after looking at the calibration rows.

    >>> round(0.99 - simultaneous_bound(0.1, 991, 1000), 4)
    0.0108
    """
    return coverage_bound(delta_for_each_rank(n, delta), k, n)


def simultaneous_rank(level: Fraction, n: int, delta: float) -> int:
    """Return the least k with ``simultaneous_bound(delta, k, n) >= level``, or n + 1 where there is none.

    Intervals cut at these ranks cover at least their levels given the data, for all levels that there are at once, with
    probability at least 1 - delta over the draw of the calibration rows.

    >>> [simultaneous_rank(Fraction("0.9"), n, 0.1) for n in (500, 1000, 4000, 25000)]
    [468, 926, 3655, 22643]
    """
    return pac_rank(level, n, delta_for_each_rank(n, delta))


def shared_coverage_bound(delta: float, k: int, n: int) -> float:
    """Return a bound like ``coverage_bound`` for n entities whose rows share one weight each, k of it inside.

    What each entity has inside is a share between 0 and 1, not 0 or 1. The chance that n such shares with mean t add up
    to k is at most e P(Bin(n, t) >= k) (Bentkus 2004).
    """
    return coverage_bound(delta / math.e, k, n)


def shared_simultaneous_bound(delta: float, k: int, n: int) -> float:
    """Return a bound like ``shared_coverage_bound`` that holds for every k at once.

    One row drawn from each entity would have the largest gap between two distributions bounded by 2 exp(-2 n gap^2)
    (Dvoretzky, Kiefer & Wolfowitz 1956, Massart 1990); shares have a smaller one in the convex order, and a tail that
    is log-concave bounds theirs up to a factor e (Bentkus 2004).
    """
    if k > n:
        return 1.0
    return max(0.0, k / n - math.sqrt(math.log(2 * math.e / delta) / (2 * n)))


def average_coverage(k: int, n: int, candidates: int = 1) -> float:
    """Return a lower bound on average coverage when one of K networks was picked by a count of k.

    The integral over t of 1 - min(1, K P(Bin(n, t) >= k)). With t* the point where
    K P(Bin(n, t*) >= k) = 1, integration by parts gives K k/(n+1) P(Beta(k+1, n+1-k) <= t*),
    which is k/(n+1) for K = 1.
    """
    if k > n:
        return 1.0
    if k == 0:
        return 0.0
    crossing = betaincinv(k, n + 1 - k, 1 / candidates)
    return float(candidates * k / (n + 1) * betainc(k + 1, n + 1 - k, crossing))


def covered_counts(m: int, k: int, n: int) -> Array:
    """Return P(at most c of m new rows are covered) for c = 0, ..., m, ``(m + 1,)``.

    The count is Bin(m, p) with p ~ Beta(k, n + 1 - k), that is BetaBinomial(m; k, n + 1 - k) (Marques F. 2023);
    all m rows are covered for certain where k > n.

    >>> covered_counts(1, 9, 9).round(3).tolist()
    [0.1, 1.0]
    """
    if k > n:
        return np.append(np.zeros(m), 1.0)
    if k == 0:
        return np.ones(m + 1)
    c = np.arange(m + 1)
    ways = gammaln(m + 1) - gammaln(c + 1) - gammaln(m - c + 1)
    chances: Array = np.exp(ways + betaln(c + k, m - c + n + 1 - k) - betaln(k, n + 1 - k))
    return np.minimum(np.cumsum(chances), 1.0)


def binomial_counts(m: int, share: float) -> Array:
    """Return P(Bin(m, share) <= c) for c = 0, ..., m, ``(m + 1,)``.

    >>> binomial_counts(2, 0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    c = np.arange(m)
    return np.append(betainc(m - c, c + 1.0, 1 - share), 1.0)


def _least(holds: Callable[[int], Any], n: int) -> int:
    """Return the least k in 1..n for which a condition monotone in k holds, or n + 1."""
    low, high = 1, n + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
