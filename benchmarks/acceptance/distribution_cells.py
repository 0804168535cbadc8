"""Quantiles, probabilities and selected rows of calibrated distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from findings import Cell, mean_cell, rank_cells, rank_on_average
from networks import setting
from worlds import Array

import guardband as gb

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
KINDS = ("points", "scales", "quantiles")
NEW = 40
"""How many rows there are to select from."""


def _predictions(kind: str, bands: Array) -> tuple[Any, tuple[float, ...] | None]:
    """Return a function from strata to predictions, and the levels of quantiles."""
    low, middle, high = bands
    if kind == "points":
        return (lambda x: middle[x]), None
    if kind == "scales":
        return (lambda x: (middle[x], (high - low)[x] + 1e-3)), None
    five = np.stack([low, (low + middle) / 2, middle, (middle + high) / 2, high], axis=1)
    return (lambda x: five[x]), SHARES


def quantiles(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, kind: str) -> list[Cell]:
    """Return a cell for each quantile: how much lies at or below it."""
    world, bands, is_exact = setting(noise, network)
    predict, levels = _predictions(kind, bands)
    calibrator, every = gb.DistributionCalibrator(levels=levels), np.arange(world.strata)
    coverage = np.empty((sets, len(SHARES)))
    for r in range(sets):
        x, y = world.rows(rng, n)
        found = calibrator.fit(predict(x), y).transform(predict(every)).quantile(SHARES)
        coverage[r] = world.coverage(np.full_like(found, -np.inf), found)
    cells: list[Cell] = []
    for i, share in enumerate(SHARES):
        cells += rank_cells(f"quantile {share:g}", coverage[:, i], rank_on_average(share, n), n, is_exact)
    return cells


def probabilities(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, kind: str, side: str
) -> list[Cell]:
    """Return the cells of stated probabilities: few rows have a large one and yet lie on the other side."""
    world, bands, _ = setting(noise, network)
    predict, levels = _predictions(kind, bands)
    calibrator, every, value = gb.DistributionCalibrator(levels=levels), np.arange(world.strata), 4.0
    endless = np.full((world.strata, 1), np.inf)
    at = np.full((world.strata, 1), value)
    # the chance of each stratum to lie on the other side: at the value counts as not above, and as not below
    other = world.within(-endless, at)[:, 0] if side == "above" else world.within(at, endless)[:, 0]
    wrong = np.empty((sets, 3))
    for r in range(sets):
        x, y = world.rows(rng, n)
        stated = np.asarray(calibrator.fit(predict(x), y).probability(predict(every), **{side: value}))
        wrong[r] = [float(world.chance @ (other * (stated >= 1 - u - 1e-12))) for u in (0.05, 0.1, 0.3)]
    return [mean_cell(f"{side}, {1 - u:g}", 1 - wrong[:, i], 1 - u, rng) for i, u in enumerate((0.05, 0.1, 0.3))]


def selected(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, kind: str, side: str, fdr: float
) -> list[Cell]:
    """Return the cell of the false discovery rate of selected rows."""
    world, bands, _ = setting(noise, network)
    predict, levels = _predictions(kind, bands)
    calibrator, value = gb.DistributionCalibrator(levels=levels), 4.0
    wrong = np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new, truth = world.rows(rng, NEW)
        mask = calibrator.fit(predict(x), y).select(predict(new), fdr=fdr, **{side: value}).mask
        is_so = truth > value if side == "above" else truth < value
        wrong[r] = (mask & ~is_so).sum() / max(1, mask.sum())
    return [mean_cell(f"{side}, rate {fdr:g}", 1 - wrong, 1 - fdr, rng)]
