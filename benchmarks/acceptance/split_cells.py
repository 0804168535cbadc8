"""One promise for all rows: marginal and pac, all levels at once, one side, each tail."""

from __future__ import annotations

from typing import Any

import numpy as np
from findings import (
    Cell,
    fails,
    given_data_cells,
    rank_cells,
    rank_given_data,
    rank_on_average,
    share_cell,
    stated_cell,
)
from networks import setting
from worlds import Array

import guardband as gb

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
MANY = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995)
EXTENDED = frozenset({"cqr", "cqr-r"})
"""Methods whose intervals are extended to contain the point: coverage may be larger than by the law."""


def drawn(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, rule: Any) -> tuple[Array, Any, bool]:
    """Return coverages ``(R, L)`` of calibration sets, the last certificate, and whether scores never tie."""
    world, bands, is_exact = setting(noise, network)
    found = []
    for _ in range(sets):
        x, y = world.rows(rng, n)
        rule.fit(*bands[:, x], y)
        new = rule.transform(*bands)
        found.append(world.coverage(new.lower, new.upper))
    return np.array(found), rule.certificate, is_exact


def marginal(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, method: str = "conf-nn"
) -> list[Cell]:
    """Return a cell for each level of a promise on average."""
    rule = gb.BandCalibrator(method, confidence_level=LEVELS, crossing="sort")
    coverage, certificate, is_exact = drawn(rng, noise, network, n, sets, rule)
    ranks = [rank_on_average(level, n) for level in LEVELS]
    cells = [stated_cell("stated ranks", certificate.rank, ranks)]
    for i, (level, k) in enumerate(zip(LEVELS, ranks, strict=True)):
        cells += rank_cells(f"{level:g}", coverage[:, i], k, n, is_exact and method not in EXTENDED)
    return cells


def given_data(
    rng: np.random.Generator,
    noise: str,
    network: str,
    n: int,
    sets: int,
    method: str = "conf-nn",
    delta: float = 0.1,
) -> list[Cell]:
    """Return the cells of each level of a promise given the data."""
    rule = gb.BandCalibrator(method, confidence_level=LEVELS, guarantee="pac", delta=delta, crossing="sort")
    coverage, certificate, is_exact = drawn(rng, noise, network, n, sets, rule)
    cells = [stated_cell("stated ranks", certificate.rank, [rank_given_data(level, n, delta) for level in LEVELS])]
    for i, level in enumerate(LEVELS):
        sure = is_exact and method not in EXTENDED
        cells += given_data_cells(f"{level:g}", coverage[:, i], level, n, delta, sure)
    return cells


def joint(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, delta: float = 0.1) -> list[Cell]:
    """Return the cell of all levels at once."""
    rule = gb.BandCalibrator("conf-nn", confidence_level=LEVELS, guarantee="pac", delta=delta, joint=True)
    coverage = drawn(rng, noise, network, n, sets, rule)[0]
    return [share_cell("any level", fails(coverage, LEVELS).any(axis=1), delta)]


def later(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, kind: str) -> list[Cell]:
    """Return the cells of levels that are asked for after calibration, at another level.

    ``kind`` is "marginal", "pac", or "joint": there somebody picks the level whose coverage is worst.
    """
    world, bands, is_exact = setting(noise, network)
    options: dict[str, Any] = {} if kind == "marginal" else {"guarantee": "pac", "delta": 0.1, "joint": kind == "joint"}
    rule = gb.BandCalibrator("conf-nn", confidence_level=0.7, crossing="sort", **options)
    levels = MANY if kind == "joint" else LEVELS
    coverage = np.empty((sets, len(levels)))
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*bands[:, x], y).transform(*bands, confidence_level=levels)
        coverage[r] = world.coverage(new.lower, new.upper)
    if kind == "joint":
        return [share_cell("the worst level", fails(coverage, levels).any(axis=1), 0.1)]
    cells: list[Cell] = []
    for i, level in enumerate(levels):
        if kind == "pac":
            cells += given_data_cells(f"{level:g}", coverage[:, i], level, n, 0.1, is_exact)
        else:
            cells += rank_cells(f"{level:g}", coverage[:, i], rank_on_average(level, n), n, is_exact)
    return cells


def side(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, which: str, guarantee: str, method: str
) -> list[Cell]:
    """Return a cell for each level of a promise for one bound. Rows far on the other side tie."""
    options: dict[str, Any] = {"confidence_level": LEVELS, "guarantee": guarantee, "side": which}
    coverage = drawn(rng, noise, network, n, sets, gb.BandCalibrator(method, **options))[0]
    cells: list[Cell] = []
    for i, level in enumerate(LEVELS):
        if guarantee == "pac":
            cells += given_data_cells(f"{level:g}", coverage[:, i], level, n, 0.1, False)
        else:
            cells += rank_cells(f"{level:g}", coverage[:, i], rank_on_average(level, n), n, False)
    return cells


def tails(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of a promise for each tail: 2% below and 8% above."""
    shares, delta = (0.02, 0.08), 0.1
    world, bands, _ = setting(noise, network)
    rule = gb.BandCalibrator("conf-nn", tails=shares, guarantee=guarantee)
    above_lower, below_upper = np.empty(sets), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*bands[:, x], y).transform(*bands)
        endless = np.full(world.strata, np.inf)
        above_lower[r] = world.coverage(new.lower, endless)[0]
        below_upper[r] = world.coverage(-endless, new.upper)[0]
    cells: list[Cell] = []
    if guarantee == "pac":  # both tails at once
        failed = fails(above_lower, 1 - shares[0]) | fails(below_upper, 1 - shares[1])
        return [share_cell("either tail", failed, delta)]
    for name, coverage, share in (("below", above_lower, shares[0]), ("above", below_upper, shares[1])):
        level = round(1 - share, 12)
        cells += rank_cells(name, coverage, rank_on_average(level, n), n, False)
    return cells
