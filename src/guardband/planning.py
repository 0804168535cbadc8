"""How many calibration rows a promise needs, and what a number of rows can promise.

The paper's sample sizes (Theorem 2 and its corollary, from Hoeffding's inequality) stand beside the sharp
ones, from the exact binomial law. ``candidates`` is the number K of networks that a rule picks from on the
calibration rows; the K-free rules of pav (``"fixed-sequence"``, ``"nested"``) count as one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from scipy.special import bdtr, betaincinv

from guardband.bands.levels import Level, Levels
from guardband.bands.ranks import average_coverage, coverage_bound, marginal_rank, pac_rank, selection_rank
from guardband.bands.risk_bounds import risk_rows as risk_rows


def marginal_rows(level: Level) -> int:
    """Return the fewest rows for which split conformal gives a finite interval.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.

    Examples
    --------
    >>> [marginal_rows(level) for level in (0.9, 0.95, 0.99)]
    [9, 19, 99]
    """
    exact = _exact(level)
    return math.ceil(exact / (1 - exact))


def pac_rows(level: Level, delta: float) -> int:
    """Return the fewest rows for which ``guarantee="pac"`` gives a finite interval: level^n <= delta.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    delta : float
        How often the bound may fail over possible calibration sets.

    Examples
    --------
    >>> pac_rows(0.9, 0.1)
    22
    """
    _check(delta=delta)
    exact = _exact(level)
    n = max(1, math.floor(math.log(delta) / math.log1p(-float(1 - exact))) - 1)
    # beyond 2**50 floating point cannot tell neighbours apart
    return n + bisect_left(range(n, 2**50), 0, key=lambda m: -int(pac_rank(exact, m, delta) > m))


def group_rows(level: Level, groups: int, delta: float | None = None, epsilon: float | None = None) -> int:
    """Return how many calibration rows each of several groups needs, if each has a promise of its own.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    groups : int
        How many groups there are.
    delta : float, default None
        How often a promise may fail over possible calibration sets, for all groups at once. None asks for finite
        intervals with ``guarantee="marginal"``, a number for finite intervals with ``guarantee="pac"``.
    epsilon : float, default None
        How much lower than the level coverage of a group may be with ``guarantee="marginal"``, except with
        probability ``delta`` for all groups at once.

    Examples
    --------
    >>> group_rows(0.9, 5), group_rows(0.9, 5, delta=0.1), group_rows(0.9, 5, delta=0.1, epsilon=0.05)
    (9, 38, 180)
    """
    if groups < 1:
        raise ValueError(f"groups must be at least 1, found {groups}.")
    if delta is None:
        if epsilon is not None:
            raise ValueError("epsilon bounds coverage except with probability delta. Give delta too.")
        return marginal_rows(level)
    _check(delta=delta)
    return pac_rows(level, delta / groups) if epsilon is None else conformal_rows(level, epsilon, delta / groups)


def rows_in_all(needed: int, share: float, confidence: float = 0.99) -> int:
    """Return how many rows to collect for a group that has this share of them, to get as many as it needs.

    Parameters
    ----------
    needed : int
        How many rows the group needs.
    share : float
        The share of all rows that belong to the group, between 0 and 1.
    confidence : float, default 0.99
        How probable it is to be that the group gets its rows.

    Examples
    --------
    >>> rows_in_all(38, 0.1)
    530
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, found {share}.")
    _check(delta=confidence)
    if share == 1:
        return needed
    high = needed
    while bdtr(needed - 1, high, share) > 1 - confidence:
        high *= 2
    return bisect_left(range(high), True, lo=needed, key=lambda n: bool(bdtr(needed - 1, n, share) <= 1 - confidence))


def tails_rows(low: Level, high: Level, delta: float | None = None) -> int:
    """Return the fewest rows for which each bound of ``tails=(low, high)`` is finite: those of the smaller tail.

    Parameters
    ----------
    low : float or Fraction
        The share of rows that may lie below their intervals.
    high : float or Fraction
        The share that may lie above.
    delta : float, default None
        How often a ``guarantee="pac"`` promise may fail; each side gets half of it. None means "marginal".

    Examples
    --------
    >>> tails_rows(0.02, 0.08), tails_rows(0.02, 0.08, 0.1)
    (49, 149)
    """
    level = max(1 - own for own in Levels.of([low, high]).values)
    return marginal_rows(level) if delta is None else pac_rows(level, delta / 2)


def theorem2_rows(epsilon: float, delta: float, candidates: int) -> int:
    """Return Theorem 2's sample size, -log(delta / K) / (2 epsilon^2), rounded up.

    Parameters
    ----------
    epsilon : float
        How much lower than the level coverage may be, between 0 and 1.
    delta : float
        How often the bound may fail over possible calibration sets.
    candidates : int
        How many networks pav chooses from.

    Examples
    --------
    >>> theorem2_rows(0.01, 0.1, 10)
    23026
    """
    _check(epsilon=epsilon, delta=delta, candidates=candidates)
    return math.ceil(-math.log(delta / candidates) / (2 * epsilon**2))


def theorem2_epsilon(n: int, delta: float, candidates: int) -> float:
    """Return the epsilon that Theorem 2 gives for n rows: sqrt(-log(delta / K) / (2 n)).

    Parameters
    ----------
    n : int
        The number of calibration rows.
    delta : float
        How often the bound may fail over possible calibration sets.
    candidates : int
        How many networks pav chooses from.
    """
    _check(delta=delta, candidates=candidates)
    return math.sqrt(-math.log(delta / candidates) / (2 * n))


def pav_epsilon(level: Level, n: int, delta: float, candidates: int = 1) -> float:
    """Return the exact epsilon of pav: level - beta.ppf(delta / K, k, n + 1 - k), k = ceil(level n).

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    n : int
        The number of calibration rows.
    delta : float
        How often the bound may fail over possible calibration sets.
    candidates : int, default 1
        How many networks pav chooses from.

    Examples
    --------
    >>> round(pav_epsilon(0.9, 1000, 0.1, candidates=10), 4), round(pav_epsilon(0.9, 1000, 0.1), 4)
    (0.0242, 0.0133)
    """
    _check(delta=delta, candidates=candidates)
    exact = _exact(level)
    return float(exact) - coverage_bound(delta / candidates, selection_rank(exact, n), n)


def conformal_epsilon(level: Level, n: int, delta: float) -> float:
    """Return the exact epsilon of conf-nn: level - beta.ppf(delta, k, n + 1 - k), k = ceil(level (n + 1)).

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    n : int
        The number of calibration rows.
    delta : float
        How often the bound may fail over possible calibration sets.

    Examples
    --------
    >>> round(conformal_epsilon(0.9, 25000, 0.1), 4)
    0.0024
    """
    _check(delta=delta)
    exact = _exact(level)
    return float(exact) - coverage_bound(delta, marginal_rank(exact, n), n)


def pav_rows(level: Level, epsilon: float, delta: float, candidates: int = 1) -> int:
    """Return the least n from which on pav's exact epsilon stays at or below ``epsilon``.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    epsilon : float
        How much lower than the level coverage may be, between 0 and 1.
    delta : float
        How often the bound may fail over possible calibration sets.
    candidates : int, default 1
        How many networks pav chooses from.

    Examples
    --------
    >>> pav_rows(0.9, 0.05, 0.1, candidates=10) < theorem2_rows(0.05, 0.1, 10)
    True
    """
    _check(epsilon=epsilon, delta=delta, candidates=candidates)
    p, share = float(_exact(level)), delta / candidates
    return _rows_from_which_on(
        lambda n: pav_epsilon(level, n, delta, candidates) <= epsilon,
        lambda n: p - float(betaincinv(p * n, n + 1 - p * n, share)) <= epsilon,
    )


def conformal_rows(level: Level, epsilon: float, delta: float) -> int:
    """Return the least n from which on conf-nn is finite and its coverage given the data within ``epsilon``.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    epsilon : float
        How much lower than the level coverage may be, between 0 and 1.
    delta : float
        How often the bound may fail over possible calibration sets.
    """
    _check(epsilon=epsilon, delta=delta)
    p = float(_exact(level))
    return _rows_from_which_on(
        lambda n: conformal_epsilon(level, n, delta) <= epsilon,
        lambda n: p - float(betaincinv(p * (n + 1), (1 - p) * (n + 1), delta)) <= epsilon,
        fewest=marginal_rows(level),
    )


def corollary_rows(level: Level, epsilon: float, candidates: int) -> int:
    """Return the corollary's sample size for average coverage ``level`` from pav at level + epsilon.

    -2 log(epsilon / (2 K (level + epsilon / 2))) / epsilon^2, which needs epsilon < 1 - level.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    epsilon : float
        How much lower than the level coverage may be, between 0 and 1.
    candidates : int
        How many networks pav chooses from.
    """
    exact = _exact(level)
    if not 0 < epsilon < 1 - exact:
        raise ValueError(
            f"The corollary needs epsilon between 0 and 1 - level = {float(1 - exact):g}, found {epsilon:g}."
        )
    return math.ceil(-2 * math.log(epsilon / (2 * candidates * (float(exact) + epsilon / 2))) / epsilon**2)


def corollary_epsilon(level: Level, n: int, candidates: int) -> float | None:
    """Return the least epsilon that the corollary allows for n rows, or None where it is vacuous.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    n : int
        The number of calibration rows.
    candidates : int
        How many networks pav chooses from.

    Examples
    --------
    >>> corollary_epsilon(0.9, 1000, 10) is None, round(corollary_epsilon(0.9, 4000, 10), 4)
    (True, 0.054)
    """
    if corollary_fewest_rows(level, candidates) > n:
        return None
    low, high = 0.0, math.nextafter(float(1 - _exact(level)), 0)
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if corollary_rows(level, middle, candidates) <= n else (middle, high)
    return high


def corollary_fewest_rows(level: Level, candidates: int) -> int:
    """Return the fewest rows for which the corollary says anything: with epsilon just below 1 - level.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    candidates : int
        How many networks pav chooses from.
    """
    return corollary_rows(level, math.nextafter(float(1 - _exact(level)), 0), candidates)


def average_fewest_rows(level: Level, candidates: int) -> int:
    """Return the fewest rows for which pav, asked for average coverage in the sharp form, can be finite.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    candidates : int
        How many networks pav chooses from.
    """
    p = float(_exact(level))

    def finite(n: int) -> bool:
        return average_coverage(n, n, candidates) >= p

    return _rows_from_which_on(finite, finite)


def average_rows(level: Level, epsilon: float, candidates: int) -> int:
    """Return the least n from which on pav at level + epsilon covers ``level`` on average.

    The sharp form of the corollary: the exact integral of ``ranks.average_coverage``.

    Parameters
    ----------
    level : float or Fraction
        The confidence level.
    epsilon : float
        How much lower than the level coverage may be, between 0 and 1.
    candidates : int
        How many networks pav chooses from.
    """
    exact, shift = _exact(level), Fraction(str(epsilon))
    _check(epsilon=epsilon, candidates=candidates)
    if exact + shift >= 1:
        raise ValueError(f"epsilon must be below 1 - level = {float(1 - exact):g}, found {epsilon:g}.")
    p, q = float(exact), float(exact + shift)
    return _rows_from_which_on(
        lambda n: average_coverage(selection_rank(exact + shift, n), n, candidates) >= p,
        lambda n: average_coverage(math.floor(q * n), n, candidates) >= p,
    )


def _exact(level: Level) -> Fraction:
    levels = Levels.of(level)
    if not levels.scalar:
        raise ValueError(f"Give one level at a time, found {level}.")
    return levels.values[0]


def _check(epsilon: float = 0.5, delta: float = 0.5, candidates: int = 1) -> None:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, found {value}.")
    if candidates < 1:
        raise ValueError(f"candidates must be at least 1, found {candidates}.")


def _rows_from_which_on(holds: Callable[[int], bool], smooth: Callable[[int], bool], fewest: int = 1) -> int:
    """Return the least n, ``fewest`` or more, such that ``holds`` from n on.

    Rounding a rank up makes a saw-tooth in n; ``smooth`` is the condition without it: a little stricter, and
    monotone from ``fewest`` on.
    """
    high = fewest
    while not smooth(high):
        high *= 2
    low = max(fewest - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if smooth(middle) else (middle, high)
    while high > fewest and holds(high - 1):
        high -= 1
    return high
