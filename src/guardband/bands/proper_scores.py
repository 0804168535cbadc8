"""Scores of distributions: crps, log score, and where true values lie within their distributions."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from guardband.bands.distribution import Distribution
from guardband.bands.ranks import covered_counts

Array = NDArray[np.float64]

MOST_COUNTS = 2000
"""Between limits that are further apart the law for all levels at once takes long: each level gets its share."""
MOST_KNOTS = 50
"""The density is that of the calibration rows between so many of their places: it would be rough between all."""


def crps(y_true: ArrayLike, distribution: Distribution) -> float:
    """Return the mean continuous ranked probability score: the lower, the better. It has the unit of y.

    For one row it is the integral of (F(z) - 1[y <= z])^2 over z, with F the distribution whose equally likely outcomes
    are those at the places of the calibration rows (at 999 of them if there are more). Forecasts without spread have
    their absolute error (Gneiting & Raftery 2007).

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    distribution : Distribution
        The distributions of the same rows.

    Examples
    --------
    >>> from guardband.bands.placement import ByResidual
    >>> crps([1.0], Distribution(np.array([[0.0]]), ByResidual(), np.array([0.0, 1.0])))
    0.25
    """
    return float(distribution.crps(y_true).mean())


def log_score(y_true: ArrayLike, distribution: Distribution) -> float:
    """Return the mean of minus the logarithm of the density at the true values: the lower, the better.

    The density is piecewise constant between 50 places of calibration rows, multiplied by how fast places grow with y,
    and exponential beyond them. It is the density on the scale on which the target was learnt. Targets that are whole
    numbers or were transformed have none in their own units, and are refused.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    distribution : Distribution
        The distributions of the same rows.
    """
    y = np.asarray(y_true, dtype=np.float64)
    if not distribution.units.has_density:
        raise ValueError(
            "A target that is transformed, bounded or a whole number has no density here. Use gb.metrics.crps."
        )
    if y.shape != (len(distribution),):
        raise ValueError(f"y_true must have one value for each of {len(distribution)} rows, found shape {y.shape}.")
    slope = distribution.placement.slope(distribution.predictions, y)
    with np.errstate(divide="ignore"):
        return float(-(np.log(slope) + _log_density(distribution.places, distribution.place(y))).mean())


def pit(y_true: ArrayLike, distribution: Distribution, *, seed: int = 0) -> Array:
    """Return where each true value lies within its distribution, between 0 and 1 (probability integral transform).

    If calibration rows and these rows are exchangeable, each number is uniform. To that end a number is drawn between
    the share of places below and the share at or below, with the row's own place counted (Vovk et al. 2017).

    Parameters
    ----------
    y_true : array of shape (n,)
        The true values.
    distribution : Distribution
        The distributions of the same rows.
    seed : int, default 0
        The seed of what is drawn.

    Returns
    -------
    array of shape (n,)
        Compare their shares with ``pit_band``.
    """
    y = np.asarray(y_true, dtype=np.float64)
    if y.shape != (len(distribution),):
        raise ValueError(f"y_true must have one value for each of {len(distribution)} rows, found shape {y.shape}.")
    at = distribution.place(distribution.units.of_outcomes(y))
    below, up_to = (np.searchsorted(distribution.places, at, side=side) for side in ("left", "right"))
    drawn = np.random.default_rng(seed).random(len(y))
    shares: Array = (below + drawn * (up_to - below + 1)) / (len(distribution.places) + 1)
    return shares


class PitBand(NamedTuple):
    """Limits for the share of pit values at or below each level."""

    levels: Array
    lower: Array
    upper: Array

    def contains(self, values: ArrayLike) -> bool:
        """Return whether the shares of these pit values lie within the limits at every level.

        Parameters
        ----------
        values : array of shape (n,)
            What ``pit`` returned.
        """
        own = np.sort(np.asarray(values, dtype=np.float64))
        shares = np.searchsorted(own, self.levels, side="right") / len(own)
        return bool(((self.lower <= shares) & (shares <= self.upper)).all())


def pit_band(n: int, n_calibration: int, *, levels: int = 19, delta: float = 0.05) -> PitBand:
    """Return limits for the share of n pit values at or below each level, which hold for all levels at once.

    With probability at least 1 - delta all shares lie within their limits, if calibration rows and new rows are
    exchangeable. The law is exact: at the k-th place, the count is beta-binomial, and from one place to the next it is
    a Markov chain. That calibration rows are few is allowed for. With very many rows each level gets an equal share of
    delta instead, and the limits are a little wider.

    Parameters
    ----------
    n : int
        The number of new rows.
    n_calibration : int
        The number of calibration rows.
    levels : int, default 19
        At how many levels, spread evenly between 0 and 1, the shares are compared.
    delta : float, default 0.05
        How often the limits may fail at some level.

    Examples
    --------
    >>> band = pit_band(1000, 1000, levels=3)
    >>> band.levels.round(2).tolist(), band.lower.round(3).tolist(), band.upper.round(3).tolist()
    ([0.25, 0.5, 0.75], [0.206, 0.448, 0.704], [0.296, 0.551, 0.794])
    """
    if n < 1 or n_calibration < 1 or not 0 < delta < 1:
        raise ValueError(f"n and n_calibration must be positive and delta between 0 and 1, found {n}, {delta}.")
    most = min(levels, n_calibration)
    ranks = tuple(sorted({max(1, round((i + 1) * (n_calibration + 1) / (most + 1))) for i in range(most)}))
    ranks = tuple(k for k in ranks if k <= n_calibration)
    lower, upper = _limits(n, n_calibration, ranks, delta)
    return PitBand(np.array(ranks) / (n_calibration + 1), lower / n, upper / n)


@lru_cache(maxsize=32)
def _limits(m: int, n: int, ranks: tuple[int, ...], delta: float) -> tuple[Array, Array]:
    """Return the least and the largest count at each rank: equal tails, as large as keeps delta for all at once."""
    laws = [covered_counts(m, k, n) for k in ranks]

    def at(eta: float) -> tuple[Array, Array]:
        low = [int(np.searchsorted(law, eta / 2, side="right")) for law in laws]
        high = [min(m, int(np.searchsorted(law, 1 - eta / 2, side="left"))) for law in laws]
        return np.array(low), np.array(high)

    small, large = delta / len(ranks), delta
    if np.ptp(np.stack(at(small)), axis=0).max() > MOST_COUNTS:
        return at(small)
    for _ in range(12):  # the largest tail, to a few parts in a thousand; the smaller one always keeps delta
        middle = (small * large) ** 0.5
        if _all_within(m, n, ranks, *at(middle)) >= 1 - delta:
            small = middle
        else:
            large = middle
    return at(small)


def _all_within(m: int, n: int, ranks: tuple[int, ...], low: Array, high: Array) -> float:
    """Return the probability that all counts of m rows lie within their limits, by the chain from rank to rank.

    Given c rows up to rank j, the others up to rank k are BetaBinomial(m - c; k - j, n + 1 - k): a Polya urn.
    """
    counts, chance, before = np.array([0]), np.array([1.0]), 0
    for k, least, most in zip(ranks, low, high, strict=True):
        new = np.arange(least, most + 1)
        more = new[None, :] - counts[:, None]
        left = (m - counts)[:, None]
        possible = (more >= 0) & (more <= left)
        more = np.where(possible, more, 0)
        ways = gammaln(left + 1.0) - gammaln(more + 1.0) - gammaln(left - more + 1.0)
        step = ways + betaln(more + k - before, left - more + n + 1 - k) - betaln(k - before, n + 1 - k)
        chance = chance @ np.where(possible, np.exp(step), 0.0)
        counts, before = new, k
    return float(chance.sum())


def _log_density(places: Array, at: Array) -> Array:
    """Return the logarithm of the density of places, piecewise constant between knots and exponential beyond."""
    n = len(places)
    ranks = np.unique(np.linspace(1, n, min(n, MOST_KNOTS)).round().astype(int))
    knots, first = np.unique(places[ranks - 1], return_index=True)
    if len(knots) < 2:
        raise ValueError("The calibration rows have fewer than two different places. Use gb.metrics.crps.")
    mass = np.diff(ranks[first]) / (n + 1)
    inner = np.log(mass / np.diff(knots))
    right = np.clip(np.searchsorted(knots, at, side="right"), 1, len(knots) - 1)
    ends = ranks[first][0] / (n + 1), 1 - ranks[first][-1] / (n + 1)
    scales = ends[0] / mass[0] * np.diff(knots)[0], ends[1] / mass[-1] * np.diff(knots)[-1]
    out = inner[right - 1]
    low, high = at < knots[0], at > knots[-1]
    out[low] = np.log(ends[0] / scales[0]) - (knots[0] - at[low]) / scales[0]
    out[high] = np.log(ends[1] / scales[1]) - (at[high] - knots[-1]) / scales[1]
    return out
