"""Several targets: all of them at once, or a promise for each."""

from __future__ import annotations

import numpy as np
from findings import Cell, given_data_cells, rank_cells, rank_on_average
from networks import setting
from worlds import Array, World

import guardband as gb

LEVEL, DELTA, TARGETS = 0.9, 0.1, 3
FACTORS = np.array([1.0, 2.0, 4.0])
"""The units of the targets; powers of two, so that nothing is rounded."""


def several(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, promise: str, guarantee: str, alike: bool
) -> list[Cell]:
    """Return the cells of a promise for all targets or for each; ``alike``: all targets of a row have one noise."""
    world, bands, is_exact = setting(noise, network)
    delta = DELTA if guarantee == "pac" else None
    rule = gb.BandCalibrator(
        "conf-nn", confidence_level=LEVEL, guarantee=guarantee, delta=delta, targets=promise, crossing="sort"
    )
    own = bands[..., None] * FACTORS
    together, each = np.empty(sets), np.empty((sets, TARGETS))
    for r in range(sets):
        x = rng.integers(0, world.strata, n)
        errors = world.noise.draw(rng, n)[:, None] if alike else world.noise.draw(rng, n * TARGETS).reshape(n, -1)
        y = (world.place[x] + world.size[x] * errors.T).T * FACTORS
        new = rule.fit(*(side[x] for side in own), y).transform(*own)
        together[r], each[r] = _coverage(world, np.asarray(new.lower), np.asarray(new.upper), alike)
    wanted = {"all": together} if promise == "joint" else {f"target {j}": each[:, j] for j in range(TARGETS)}
    cells: list[Cell] = []
    for name, coverage in wanted.items():
        # with the same noise in all targets, each of them has the same score but for rounding
        if guarantee == "pac":
            cells += given_data_cells(name, coverage, LEVEL, n, DELTA, is_exact)
        else:
            cells += rank_cells(name, coverage, rank_on_average(LEVEL, n), n, is_exact)
    return cells


def _coverage(world: World, lower: Array, upper: Array, alike: bool) -> tuple[float, Array]:
    """Return the coverage of all targets at once, and of each, from bounds ``(S, q)``."""
    low, high = lower / FACTORS, upper / FACTORS
    inside = world.within(low, high)
    if alike:
        both = world.within(low.max(axis=1, keepdims=True), high.min(axis=1, keepdims=True))[:, 0]
    else:
        both = inside.prod(axis=1)
    return float(world.chance @ both), world.chance @ inside
