"""Controls, which the judge must refute: methods without a guarantee, and rules that are broken on purpose."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from findings import Cell, fails, given_data_cells, mean_cell, rank_cells, rank_on_average, share_cell
from networks import setting
from worlds import NOISES, STRATA, Array, World

import guardband as gb
from guardband.bands.predicted import PredictedGaussian
from guardband.calibration.cut import MarginalCut, PacCut


class OneLess(MarginalCut):
    """The rank of split conformal, less one."""

    def rank(self, level: Fraction, n: int) -> int:
        """Return the rank less one."""
        return super().rank(level, n) - 1


class OneLessGivenData(PacCut):
    """The exact pac rank, less one."""

    def rank(self, level: Fraction, n: int) -> int:
        """Return the rank less one."""
        return super().rank(level, n) - 1


def off_by_one(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of a rank that is too small by one, against the law of the right one."""
    level, delta = 0.9, 0.1
    world, bands, is_exact = setting(noise, network)
    cut = OneLessGivenData(delta) if guarantee == "pac" else OneLess()
    rule, coverage = gb.BandCalibrator("conf-nn", confidence_level=level, guarantee=cut), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*bands[:, x], y).transform(*bands)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    if guarantee == "pac":
        return given_data_cells("0.9", coverage, level, n, delta, is_exact, holds=False)
    return rank_cells("0.9", coverage, rank_on_average(level, n), n, is_exact, holds=False)


def without_guarantee(rng: np.random.Generator, method: str, noise: str, network: str, n: int, sets: int) -> list[Cell]:
    """Return a cell for a method without a guarantee, judged as if it promised 90% on average."""
    level, world = 0.9, World(NOISES[noise])
    coverage = np.empty(sets)
    rule = gb.BandCalibrator(method, confidence_level=level)
    if method == "high-q":
        return _high_q(rng, noise, n, sets)
    bands = setting(noise, network)[1]
    for r in range(sets):
        x, y = world.rows(rng, n)
        if method == "qreg-un":
            new = rule.fit(*bands[:, x], y).transform(*bands)
        else:
            every = _gaussian(bands)
            new = rule.fit_predicted(every.rows(x), y).transform_predicted(every)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    return [mean_cell("as if 90% were promised", coverage, level, rng, holds=False)]


def _gaussian(bands: Array) -> PredictedGaussian:
    low, middle, high = bands
    return PredictedGaussian(middle, (high - low) / 3.29 + 1e-9)


def _high_q(rng: np.random.Generator, noise: str, n: int, sets: int) -> list[Cell]:
    """Candidates that contain all or nothing of a stratum: 87% in all, and one of them looks better by chance."""
    level, strata, candidates = 0.9, 250, 7
    world, outside = World(NOISES[noise], strata), np.zeros((candidates, strata), dtype=bool)
    fixed = np.random.default_rng(13)
    for own in outside:
        own[fixed.permutation(strata)[: int(0.13 * strata)]] = True
    low, high = np.where(outside, -3e9, -1e9), np.where(outside, -2e9, 1e9)
    bands = np.stack([low, (low + high) / 2, high])
    rule, coverage = gb.BandCalibrator("high-q", confidence_level=level), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*(side[:, x] for side in bands), y).transform(*bands)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    return [mean_cell("as if 90% were promised", coverage, level, rng, holds=False)]


def not_shared(rng: np.random.Generator, n: int, sets: int) -> list[Cell]:
    """Return the control of groups: each of eight has all of delta, and all are promised at once."""
    level, delta, world = 0.8, 0.1, World(NOISES["gaussian"])
    bands = setting("gaussian", "good")[1]
    rule = gb.BandCalibrator("conf-nn", confidence_level=level, guarantee="pac", delta=delta * STRATA / 2)
    failed = np.empty(sets, dtype=bool)
    for r in range(sets):
        x = np.repeat(np.arange(STRATA), n)
        y = world.place[x] + world.size[x] * world.noise.draw(rng, len(x))
        new = rule.fit(*bands[:, x], y, groups=x).transform(*bands, groups=np.arange(STRATA))
        inside = world.within(new.lower[:, None], new.upper[:, None])[:, 0]
        failed[r] = fails(inside, level).any()
    return [share_cell("four times delta, all groups at once", failed, delta, holds=False)]


def seen(rng: np.random.Generator, noise: str, n: int, sets: int) -> list[Cell]:
    """Return the control of rows that trained the model and then calibrate it."""
    level, world = 0.9, World(NOISES[noise])
    rule, coverage = gb.BandCalibrator("conf-fw", confidence_level=level), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        counts = np.bincount(x, minlength=STRATA)
        point = np.bincount(x, y, minlength=STRATA) / np.maximum(counts, 1)
        new = rule.fit(None, point[x], None, y).transform(None, point, None)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    return rank_cells("calibrated on training rows", coverage, rank_on_average(level, n), n, False, holds=False)
