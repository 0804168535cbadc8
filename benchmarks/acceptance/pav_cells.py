"""pav: one of several networks, chosen by how many calibration rows its intervals contain."""

from __future__ import annotations

from typing import Any

import numpy as np
from findings import ROUNDING, Cell, fails, mean_cell, share_cell
from scipy.stats import beta
from worlds import NOISES, Array, World

import guardband as gb

TAUS = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01)
LEVEL, DELTA, WORST_STRATA = 0.9, 0.1, 250
RULES = ("paper", "fixed-sequence", "nested")
AIMS = ("selection", "pac", "sharp", "corollary")


def chosen(rng: np.random.Generator, noise: str, network: str, rule: str, aim: str, n: int, sets: int) -> list[Cell]:
    """Return the cell of one rule and aim; the network "worst" has candidates that just miss what is asked for."""
    options: dict[str, Any] = {"selection": {}, "pac": {"guarantee": "pac", "delta": DELTA}}.get(aim, {"average": aim})
    calibrator = gb.BandCalibrator("pav", confidence_level=LEVEL, taus=TAUS, rule=rule, crossing="sort", **options)
    least = _selected(n, len(TAUS) if rule == "paper" else 1) if aim == "selection" else LEVEL
    coverage, stated = _drawn(rng, calibrator, noise, network, n, sets, least, rule == "nested")
    name = f"{rule}, {aim}"
    if aim == "selection":
        return [
            share_cell(f"{name}, bound", fails(coverage, least), DELTA),
            share_cell(f"{name}, stated bound", fails(coverage, stated), DELTA),
        ]
    if aim == "pac":
        return [share_cell(name, fails(coverage, LEVEL), DELTA)]
    return [mean_cell(name, coverage, LEVEL, rng)]


def without_candidates(rng: np.random.Generator, n: int, sets: int) -> list[Cell]:
    """Return the control: the paper's rule with the bound of one network, which candidates that just miss it break."""
    calibrator = gb.BandCalibrator("pav", confidence_level=LEVEL, taus=TAUS, rule="paper")
    least = _selected(n, 1)
    coverage, _ = _drawn(rng, calibrator, "gaussian", "worst", n, sets, least, False)
    return [share_cell("paper, bound of one network", fails(coverage, least), DELTA, holds=False)]


def _selected(n: int, candidates: int) -> float:
    """Return the bound of the count that pav asks for, level times n: a quantile of a Beta law."""
    k = -(-9 * n // 10)
    return float(beta.ppf(DELTA / candidates, k, n + 1 - k))


def _drawn(
    rng: np.random.Generator,
    calibrator: Any,
    noise: str,
    network: str,
    n: int,
    sets: int,
    least: float,
    nested: bool,
) -> tuple[Array, Array]:
    """Return the coverage of what was chosen, and what the certificate states."""
    world = World(NOISES[noise], WORST_STRATA) if network == "worst" else World(NOISES[noise])
    bands = _worst(world, least, nested) if network == "worst" else _grid(world, network)
    coverage, stated = np.empty(sets), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = calibrator.fit(*(side[:, x] for side in bands), y).transform(*bands)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
        stated[r] = calibrator.certificate.coverage_bound(DELTA)
    return coverage, stated


def _grid(world: World, network: str) -> Array:
    """Return ``(3, K, S)``: quantiles at each tau, with errors that differ from tau to tau if the network is bad."""
    rng, size = np.random.default_rng(3), world.size
    error = np.zeros((2, len(TAUS), world.strata)) if network == "good" else rng.standard_normal((2, len(TAUS), 1))
    middle = np.tile(world.place + size * world.noise.quantile(0.5), (len(TAUS), 1))
    low = np.stack([world.place + size * world.noise.quantile(tau / 2) for tau in TAUS]) + 0.5 * size * error[0]
    high = np.stack([world.place + size * world.noise.quantile(1 - tau / 2) for tau in TAUS]) + 0.5 * size * error[1]
    return np.stack([np.minimum(low, middle), middle, np.maximum(high, middle)])


def _worst(world: World, least: float, nested: bool) -> Array:
    """Return candidates that contain all or nothing of a stratum, just less than ``least`` in all.

    Which strata is drawn for each candidate apart, so that their counts hardly depend on each other. Nested ones miss
    the same strata, as otherwise the widest would contain what any of them does.
    """
    rng, missed = np.random.default_rng(5), int(np.floor((1 - least - ROUNDING) * world.strata)) + 1
    outside = np.zeros((len(TAUS), world.strata), dtype=bool)
    for own in outside:
        own[np.random.default_rng(5).permutation(world.strata)[:missed] if nested else _some(rng, world, missed)] = True
    far = 1e9  # heavy tails lie further out once in 10**9 rows, which only makes coverage smaller
    low, high = np.where(outside, -3 * far, -far), np.where(outside, -2 * far, far)
    return np.stack([low, (low + high) / 2, high])


def _some(rng: np.random.Generator, world: World, count: int) -> Any:
    return rng.permutation(world.strata)[:count]
