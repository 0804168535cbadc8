"""Where rows come from, with coverage that is known exactly.

A row belongs to one of a few strata x, and y = place(x) + size(x) e with noise e of a known law. A network, good or
bad, predicts one triple for each stratum. Coverage given a calibration set is then a finite sum of differences of the
distribution function of e: it is computed, not estimated on test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

Array = NDArray[np.float64]

PLACES = np.array([0.0, 3.0, -2.0, 10.0, 4.0, -7.0, 1.0, 25.0])
SIZES = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 2.0, 1.0])
"""Whole numbers: whole noise then gives whole outcomes, which tie across strata."""
STRATA = len(PLACES)


@dataclass(frozen=True)
class Noise:
    """The law of e: a part with a distribution function, and atoms with the rest of the probability."""

    draw: Callable[[np.random.Generator, int], Array]
    cdf: Callable[[Array], Array] = np.zeros_like
    atoms: Array = field(default_factory=lambda: np.empty(0))
    chances: Array = field(default_factory=lambda: np.empty(0))

    @cached_property
    def smooth(self) -> float:
        """The probability of the part that has no atoms."""
        return max(0.0, 1.0 - float(self.chances.sum())) if len(self.atoms) else 1.0

    @property
    def is_continuous(self) -> bool:
        """Whether two outcomes never tie."""
        return not len(self.atoms)

    @cached_property
    def sample(self) -> Array:
        """Many draws, always the same, in rising order: what a network could have learnt from."""
        return np.sort(self.draw(np.random.default_rng(20190524), 20_001))

    def quantile(self, share: float) -> float:
        """Return roughly where a share of the noise lies below."""
        return float(self.sample[int(share * (len(self.sample) - 1))])


def _lognormal(v: Array) -> Array:
    with np.errstate(divide="ignore"):
        return ndtr(np.log(np.maximum(v, 0.0)))


def _inflated(rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.4, 0.0, rng.standard_exponential(n))


def _mixed(rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.7, 0.5 * rng.standard_normal(n), 6.0 + rng.standard_normal(n))


COUNTS = np.arange(61.0)
NOISES = {
    "gaussian": Noise(lambda rng, n: rng.standard_normal(n), ndtr),
    "heavy": Noise(lambda rng, n: rng.standard_cauchy(n), lambda v: 0.5 + np.arctan(v) / np.pi),
    "skewed": Noise(lambda rng, n: np.exp(rng.standard_normal(n)), _lognormal),
    "discrete": Noise(
        lambda rng, n: rng.poisson(2.0, n).astype(np.float64),
        atoms=COUNTS,
        chances=np.exp(COUNTS * np.log(2.0) - 2.0 - gammaln(COUNTS + 1)),
    ),
    "zero-inflated": Noise(_inflated, lambda v: -np.expm1(-np.maximum(v, 0.0)), np.zeros(1), np.array([0.4])),
    "mixture": Noise(_mixed, lambda v: 0.7 * ndtr(2 * v) + 0.3 * ndtr(v - 6.0)),
}
"""Gaussian, Cauchy, lognormal, Poisson, exponential with 40% zeros, and two separate Gaussians."""


@lru_cache
def population(name: str, size: int = 1001) -> Noise:
    """Return a noise with as many equally likely values, so that the mean of any loss is a finite sum."""
    values = np.quantile(NOISES[name].sample, (np.arange(size) + 0.5) / size)
    return Noise(lambda rng, n: rng.choice(values, n), atoms=values, chances=np.full(size, 1 / size))


@dataclass(frozen=True)
class World:
    """Strata, each as likely as the others, and the noise of their outcomes."""

    noise: Noise
    strata: int = STRATA

    @cached_property
    def chance(self) -> Array:
        """The chance of each stratum."""
        return np.full(self.strata, 1 / self.strata)

    @cached_property
    def place(self) -> Array:
        """Where the outcomes of each stratum begin."""
        return np.resize(PLACES, self.strata)

    @cached_property
    def size(self) -> Array:
        """What the noise of each stratum is multiplied by."""
        return np.resize(SIZES, self.strata)

    def rows(self, rng: np.random.Generator, n: int, scale: Array | float = 1.0) -> tuple[NDArray[np.intp], Array]:
        """Return strata and outcomes of n independent rows; the noise is also multiplied by ``scale``."""
        x = rng.integers(0, self.strata, n)
        return x, self.place[x] + self.size[x] * scale * self.noise.draw(rng, n)

    def within(self, lower: Array, upper: Array, scale: float = 1.0) -> Array:
        """Return the chance of each stratum's outcomes to lie in their intervals, ``(S, L), (S, L) -> (S, L)``.

        An interval that ends before it begins holds nothing.
        """
        place, size = self.place[:, None], scale * self.size[:, None]
        inside = np.zeros(lower.shape)
        if self.noise.smooth > 0:
            share = self.noise.cdf((upper - place) / size) - self.noise.cdf((lower - place) / size)
            inside += self.noise.smooth * np.maximum(share, 0.0)
        if len(self.noise.atoms):
            y = (place + size * self.noise.atoms)[:, None, :]
            held = (lower[..., None] <= y) & (y <= upper[..., None])
            inside += held @ self.noise.chances
        return np.minimum(inside, 1.0)

    def coverage(self, lower: Array, upper: Array, chance: Array | None = None, scale: float = 1.0) -> Array:
        """Return coverage of new rows given the intervals of all strata, ``(S, L), (S, L) -> (L,)``."""
        shape = (self.strata, -1)
        inside = self.within(lower.reshape(shape), upper.reshape(shape), scale)
        return np.minimum((self.chance if chance is None else chance) @ inside, 1.0)
