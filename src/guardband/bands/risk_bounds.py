"""How far the mean of numbers between 0 and 1 lies from what is expected: the bounds behind a risk.

Hoeffding's bound by relative entropy and Bentkus's bound, whichever is smaller (Bates et al. 2021, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

SHARES_TRIED = 256
"""Risks that a p-value over both samples is computed by: more would lower it by less than a hundredth."""


def mean_below(n: int, total: float, mean: Any) -> Any:
    """Return what bounds the chance that n independent numbers in [0, 1] with this mean add up to at most ``total``.

    min(exp(-n kl(total / n, mean)), e P(Bin(n, mean) <= ceil(total))), and 1 from the mean on.

    Parameters
    ----------
    n : int
        How many numbers.
    total : float
        Their sum.
    mean : float or array
        Their mean, or several.
    """
    return _bound(n, total, math.ceil(total), mean)


def mean_above(n: int, total: float, mean: Any) -> Any:
    """Return what bounds the chance that n independent numbers in [0, 1] with this mean add up to at least ``total``.

    Parameters
    ----------
    n : int
        How many numbers.
    total : float
        Their sum.
    mean : float or array
        Their mean, or several.
    """
    return _bound(n, n - total, n - math.floor(total), 1 - np.asarray(mean, dtype=np.float64))


def most_total(n: int, mean: float, delta: float) -> float:
    """Return the largest sum of n such numbers that is as unlikely as ``delta``; negative if none is.

    Parameters
    ----------
    n : int
        How many numbers.
    mean : float
        Their mean.
    delta : float
        The chance.
    """
    if mean_below(n, 0.0, mean) > delta:
        return -1.0
    whole = _last(lambda k: bool(special.bdtr(k, n, mean) * math.e <= delta), -1, math.floor(n * mean))
    low, high = 0.0, n * mean  # Hoeffding's bound is the smaller one at 0, (1 - mean)^n, so that it is at most delta
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _hoeffding(n, middle, mean) <= delta else (low, middle)
    return max(float(whole), low)


def largest_mean(n: int, total: float, delta: float) -> float:
    """Return the mean from which on n such numbers with at most this sum are as unlikely as ``delta``.

    Parameters
    ----------
    n : int
        How many numbers.
    total : float
        Their sum.
    delta : float
        The chance.
    """
    low, high = total / n, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if mean_below(n, total, middle) > delta else (low, middle)
    return high


def risk_budget(limit: float, cap: float, n: int, delta: float | None = None) -> float:
    """Return how much loss n calibration rows may have in all, rounded down; negative if there are too few rows.

    On average the n losses and one more of size ``cap`` must keep the limit: limit (n + 1) - cap (Angelopoulos et al.
    2022). With ``delta``, the total must be so small that a mean at the limit makes it as unlikely as delta.

    Parameters
    ----------
    limit : float
        The largest mean loss that is acceptable.
    cap : float
        The largest loss of a single row.
    n : int
        The number of calibration rows.
    delta : float, default None
        How often the promise may fail over possible calibration sets. None if it is on average.

    Examples
    --------
    >>> risk_budget(5, 100, 19), risk_budget(5, 100, 18)
    (0.0, -5.0)
    """
    if delta is None:
        exact = Fraction(str(limit)) * (n + 1) - Fraction(str(cap))
        near = float(exact)
        return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)
    most = most_total(n, limit / cap, delta)
    return -cap if most < 0 else math.nextafter(cap * most, 0.0)


def risk_rows(limit: float, cap: float, delta: float | None = None) -> int:
    """Return the fewest calibration rows that can keep a risk, if none of them has any loss.

    Parameters
    ----------
    limit : float
        The largest mean loss that is acceptable.
    cap : float
        The largest loss of a single row.
    delta : float, default None
        How often the promise may fail over possible calibration sets. None if it is on average.

    Examples
    --------
    >>> risk_rows(5, 100), risk_rows(5, 100, delta=0.1)
    (19, 45)
    """
    high = 1
    while risk_budget(limit, cap, high, delta) < 0:
        high *= 2
    return _last(lambda n: risk_budget(limit, cap, n, delta) < 0, 0, high) + 1


def excess_p_value(n: int, budget: float, m: int, total: float) -> float:
    """Return what bounds the chance that m new rows have at least this total loss, over both samples; the cap is 1.

    The calibration rows have at most ``budget`` in all. So for every risk rho, the risk of new rows exceeds it with
    probability at most ``mean_below(n, budget, rho)``, and otherwise their total is as large with probability at most
    ``mean_above(m, total, rho)``. The sum is a bound for every rho, and the least of many is returned.

    Parameters
    ----------
    n : int
        The number of calibration rows.
    budget : float
        How much loss the calibration rows may have in all.
    m : int
        The number of new rows.
    total : float
        How much loss the new rows have in all.
    """
    low, high = max(budget, 0.0) / n, total / m
    if high <= low:
        return 1.0
    risks = np.linspace(low, min(high, 1.0), SHARES_TRIED + 1)[1:]
    return float(min(1.0, np.min(mean_below(n, max(budget, 0.0), risks) + mean_above(m, total, risks))))


def _bound(n: int, total: float, count: int, mean: Any) -> Any:
    share = np.asarray(mean, dtype=np.float64)
    bentkus = math.e * special.bdtr(min(max(count, 0), n), n, share)
    either = np.minimum(np.minimum(_hoeffding(n, total, share), bentkus), 1.0)
    return np.where(total >= n * share, 1.0, either)[()]


def _hoeffding(n: int, total: float, mean: Any) -> Any:
    share = max(total / n, 0.0)
    return np.exp(-n * (special.rel_entr(share, mean) + special.rel_entr(1 - share, 1 - mean)))


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last number for which something holds that holds at ``low`` and then no longer, up to ``high``."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
