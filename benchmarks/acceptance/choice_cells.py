"""A choice among several candidates by their calibration rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from findings import Cell, fails, share_cell
from worlds import NOISES, Array, World

import guardband as gb

LEVEL, DELTA, CANDIDATES, STRATA = 0.8, 0.1, 6, 64


def _looked_up(table: Array, X: Array) -> Array:
    return table[np.asarray(X)[:, 0].astype(int)]


def _candidates(world: World) -> list[Array]:
    """Return ``(S, 3)`` for each candidate: widths that are drawn for each apart, so that their scores differ."""
    rng, middle = np.random.default_rng(11), world.place + world.size * world.noise.quantile(0.5)
    widths = 10 ** rng.uniform(-2, 2, (CANDIDATES, world.strata))
    widths /= widths.mean(axis=1, keepdims=True)
    return [np.stack([middle - own, middle, middle + own], axis=1) for own in widths]


def chosen(rng: np.random.Generator, noise: str, n: int, sets: int, by: str) -> list[Cell]:
    """Return the cells of the candidate that was chosen, and of all candidates at once."""
    world = World(NOISES[noise], STRATA)
    models = {f"{j}": partial(_looked_up, table) for j, table in enumerate(_candidates(world))}
    every, best, worst = np.arange(STRATA)[:, None].astype(float), np.empty(sets), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        data = (x[:, None].astype(float), y)
        choice = gb.choose(models, data, by=by, confidence_level=LEVEL, delta=DELTA, method="conf-nn")
        bands = {name: own.predict_interval(every) for name, own in choice.candidates.items()}
        coverage = {name: world.coverage(own.lower, own.upper)[0] for name, own in bands.items()}
        best[r], worst[r] = coverage[choice.name], min(coverage.values())
    return [
        share_cell(f"the chosen one, by {by}", fails(best, LEVEL), DELTA),
        share_cell("all candidates at once", fails(worst, LEVEL), DELTA),
    ]


def as_if_not_chosen(rng: np.random.Generator, n: int, sets: int) -> list[Cell]:
    """Return the control: the narrowest of several candidates, each with a promise that knows of no choice."""
    world = World(NOISES["gaussian"], STRATA)
    tables = [table.T for table in _candidates(world)]
    rule, best = gb.BandCalibrator("conf-nn", confidence_level=LEVEL, guarantee="pac", delta=DELTA), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        found = [rule.fit(*table[:, x], y).transform(*table) for table in tables]
        own = min(found, key=lambda bands: float(np.mean(bands.width)))
        best[r] = world.coverage(own.lower, own.upper)[0]
    return [share_cell("the narrowest of six", fails(best, LEVEL), DELTA, holds=False)]
