"""All ranks at once: how often each rank's bound may fail, so that one delta covers every rank.

Coverage at rank k of n scores is the k-th smallest of n uniform numbers, U_(k), or larger. Its bound at eta is
b_k, the eta-quantile of Beta(k, n + 1 - k). Here is the largest eta for which U_(k) >= b_k holds for all k at once with
probability 1 - delta, or one that is a little smaller. A bound of this form is a test of Berk & Jones (1979).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

Array = NDArray[np.float64]

MOST_EXACT = 1000
"""Up to so many rows the law is exact, in n^2 steps; beyond, it is bounded in some thousand steps."""
SPACING = 0.02
CLOSE_ENOUGH = 1e-3
MOST_STEPS = 20


@lru_cache(maxsize=256)
def delta_for_each_rank(n: int, delta: float) -> float:
    """Return eta: if each rank's bound may fail with probability eta, some bound fails with at most delta.

    The search starts at Bonferroni's delta / n, and each step raises eta by what is left of delta. The probability that
    some bound fails grows no faster than eta, so that steps do not go beyond delta; what is returned was checked to
    keep delta in any case, for every delta between 0 and 1.

    >>> round(delta_for_each_rank(1000, 0.1), 4), delta_for_each_rank(1, 0.1)
    (0.0029, 0.1)
    """
    if n <= 1:
        return delta
    some_fail = _some_fail if n <= MOST_EXACT else _some_fail_at_most
    valid = eta = delta / n
    for _ in range(MOST_STEPS):
        with np.errstate(all="ignore"):  # next to nothing cannot be told from nothing, and is no number
            fail = some_fail(n, eta)
        if not 0 < fail <= delta:
            break
        valid, eta = eta, eta * delta / fail
        if fail >= (1 - CLOSE_ENOUGH) * delta:
            break
    return valid


def _some_fail(n: int, eta: float) -> float:
    """Return the probability that U_(k) < b_k for some k, exactly.

    Let k be the last rank that fails. Then exactly k numbers lie below b_k, and of the n - k others none fails above.
    So with R_k the probability of the latter and b_0 = 0, 1 - R_k is the sum over j > k of R_j times the probability
    that j - k of n - k uniform numbers on (b_k, 1) lie below b_j. All terms are positive, and errors do not grow: the
    inverse of this system has rows whose absolute values sum to 2 at most.
    """
    ranks = np.arange(n + 1)
    bounds = np.append(0.0, betaincinv(ranks[1:], n + 1.0 - ranks[1:], eta))
    log_above, log_factorial = np.log1p(-bounds), gammaln(ranks + 1.0)
    none_later, fail = np.ones(n + 1), 0.0
    for k in range(n - 1, -1, -1):
        j = ranks[k + 1 :]
        ways = log_factorial[n - k] - log_factorial[j - k] - log_factorial[n - j]
        below = (j - k) * np.log(bounds[j] - bounds[k])
        fail = float(np.exp(ways + below + (n - j) * log_above[j] - (n - k) * log_above[k]) @ none_later[j])
        none_later[k] = 1 - fail
    return fail


def _some_fail_at_most(n: int, eta: float) -> float:
    """Return an upper bound on the probability that U_(k) < b_k for some k: about a fifth larger at delta = 0.1.

    By the last rank that fails, as above, it is the sum over k of P(Bin(n, b_k) = k) R_k. The bounds b_k are convex in
    k (checked at the ranks used), so that those above k lie on or above the line through b_k whose slope s is that
    towards a smaller rank. All of n - k uniform numbers on (b_k, 1) stay above that line with probability
    1 - (n - k) s / (1 - b_k) (Daniels 1945): R_k is no larger. The sum is taken by the trapezoidal rule over ranks two
    percent apart. Slopes towards the rank before are too small, which makes the sum larger by a percent or more; the
    error of the rule is some hundred times smaller than that, and a test compares both with the sum over all ranks.
    """
    half = [1]
    while half[-1] < n // 2:
        half.append(min(n // 2, max(half[-1] + 1, int(half[-1] * (1 + SPACING)))))
    ranks = np.unique(np.concatenate([half, n + 1 - np.array(half)])).astype(float)
    bounds = betaincinv(ranks, n + 1 - ranks, eta)
    slopes = np.diff(bounds, prepend=0) / np.diff(ranks, prepend=0)
    if np.any(np.diff(slopes) < -1e-6 * slopes[1:]):  # not convex: eta is far too large
        return float("inf")
    ways = gammaln(n + 1.0) - gammaln(ranks + 1) - gammaln(n - ranks + 1)
    last = np.exp(ways + ranks * np.log(bounds) + (n - ranks) * np.log1p(-bounds))
    none_later = np.maximum(1 - (n - ranks) * slopes / (1 - bounds), 0)
    apart = (np.append(ranks[1:], n + 1) - np.append(0, ranks[:-1])) / 2
    return float((apart * last * none_later).sum())
