"""A risk: the mean loss of new rows, on average over calibration sets or given the data."""

from __future__ import annotations

import numpy as np
from findings import ROUNDING, Cell, mean_cell, share_cell
from networks import setting
from worlds import NOISES, population

import guardband as gb

DELTA, CAP = 0.1, 2.0
"""The cap, in widths of the noise."""


def limited(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, share: float, delta: float | None
) -> list[Cell]:
    """Return the cell of a limit of ``share`` times the cap. The noise has finitely many values, to sum over."""
    world, bands, _ = setting(population(noise, 301), network)
    spread = NOISES[noise].quantile(0.95) - NOISES[noise].quantile(0.05)
    cap = CAP * spread
    promise = {} if delta is None else {"guarantee": "pac", "delta": delta}
    rule = gb.BandCalibrator("conf-nn", risk=gb.Risk(share * cap, cap), crossing="sort", **promise)
    y = world.place[:, None] + world.size[:, None] * world.noise.atoms
    loss = np.empty(sets)
    for r in range(sets):
        x, known = world.rows(rng, n)
        new = rule.fit(*bands[:, x], known).transform(*bands)
        outside = np.maximum(new.lower[:, None] - y, y - new.upper[:, None])
        loss[r] = float(world.chance @ np.clip(outside, 0.0, cap).mean(axis=1)) / cap
    if delta is None:
        return [mean_cell(f"limit {share:g} of the cap", 1 - loss, 1 - share, rng)]
    return [share_cell(f"limit {share:g} of the cap, failures", loss > share + ROUNDING, delta)]
