"""Networks, good and bad: one triple (lower, point, upper) for each stratum, ``(3, S)``.

No promise depends on how good a network is.
"""

from __future__ import annotations

import numpy as np
from worlds import NOISES, STRATA, Array, Noise, World

GOOD = "good"
BAD = ("constant", "crossing", "over-fitted", "dead", "wild", "broken")
NETWORKS = (GOOD, *BAD)
TIED = frozenset({"dead", "broken"})
"""Those that give many rows an infinite score: coverage is then larger than the law of ranks says."""


def triples(name: str, world: World) -> Array:
    """Return the triples of a network.

    - ``good``: true quantiles.
    - ``constant``: the same triple everywhere.
    - ``crossing``: the upper bound below the lower one, and the point outside, in every second stratum.
    - ``over-fitted``: a width of a thousandth, about a point that is off by as much as the noise is wide.
    - ``dead``: no width above the point in one stratum, and none below it in another.
    - ``wild``: points off by up to a million, widths between a thousandth and a thousand.
    - ``broken``: NaN in one stratum.
    """
    place, size, noise = world.place, world.size, world.noise
    rng = np.random.default_rng(7)
    low, middle, high = (place + size * noise.quantile(share) for share in (0.05, 0.5, 0.95))
    if noise.quantile(0.05) == noise.quantile(0.5):  # many zeros: a network would still have some width
        low = middle - 0.5 * size
    if name == "constant":
        low, middle, high = (np.full_like(place, np.quantile(place, share)) for share in (0.05, 0.5, 0.95))
    elif name == "crossing":
        odd = np.arange(world.strata) % 2 == 1
        low, middle, high = np.where(odd, (high, low - 1.0, middle), (low, middle, high))
    elif name == "over-fitted":
        middle = middle + size * rng.standard_normal(world.strata)
        low, high = middle - 0.0004, middle + 0.0006
    elif name == "dead":
        stratum = np.arange(world.strata)
        high, low = np.where(stratum == 0, middle, high), np.where(stratum == 3, middle, low)
    elif name == "wild":
        middle = middle + rng.uniform(-1e6, 1e6, world.strata)
        low, high = middle - 10 ** rng.uniform(-3, 3, world.strata), middle + 10 ** rng.uniform(-3, 3, world.strata)
    elif name == "broken":
        low = np.where(np.arange(world.strata) == 1, np.nan, low)
    return np.stack([low, middle, high])


def setting(noise: str | Noise, network: str, strata: int = STRATA) -> tuple[World, Array, bool]:
    """Return a world, the triples of a network, and whether the law of ranks is exact for scores without ties."""
    world = World(NOISES[noise] if isinstance(noise, str) else noise, strata)
    return world, triples(network, world), world.noise.is_continuous and network not in TIED
