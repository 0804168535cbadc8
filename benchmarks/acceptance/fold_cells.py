"""Cross-validation: every row trains and calibrates. Coverage against what the certificate says is proved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from findings import Cell, fails, mean_cell, never_cell, share_cell
from worlds import NOISES, STRATA, Array, World

import guardband as gb

LEVELS, DELTA = (0.8, 0.9), 0.1
Model = Callable[[Array, Array], Array]


def _means(x: Array, y: Array) -> Array:
    """Return the mean of each stratum, or of all rows."""
    counts, sums = np.bincount(x, minlength=STRATA), np.bincount(x, y, minlength=STRATA)
    return np.where(counts > 0, sums / np.maximum(counts, 1), y.mean())


def _nearest(x: Array, y: Array) -> Array:
    """Return the last training row of each stratum: a model that remembers."""
    out = np.full(STRATA, y[-1])
    out[x] = y
    return out


def _wild(x: Array, y: Array) -> Array:
    """Return what jumps with every row that is left out."""
    return 1000 * (np.modf(np.abs(y).sum() * 1e3)[0] - 0.5) * np.arange(STRATA)


MODELS: dict[str, Model] = {
    "means": _means,
    "constant": lambda x, y: np.zeros(STRATA),
    "over-fitted": _nearest,
    "wild": _wild,
}


def crossed(rng: np.random.Generator, noise: str, network: str, kind: str, n: int, folds: int, sets: int) -> list[Cell]:
    """Return the cells of each level, on average and given the data, and whether Barber et al. prove no more."""
    world, model, fold = World(NOISES[noise]), MODELS[network], np.arange(n) % folds
    rule = gb.BandCalibrator("conf-fw", confidence_level=LEVELS, calibration=kind)
    coverage, stated = np.empty((sets, len(LEVELS))), np.empty((sets, len(LEVELS)))
    for r in range(sets):
        x, y = world.rows(rng, n)
        bands = np.stack([model(x[fold != k], y[fold != k]) for k in range(folds)])
        rule.fit(None, bands[fold, x], None, y, folds=fold)
        new = rule.transform(None, bands, None)
        coverage[r] = world.coverage(new.lower, new.upper)
        stated[r] = rule.certificate.coverage_bound(DELTA)
    cells = []
    for i, (level, least) in enumerate(zip(LEVELS, rule.certificate.expected_coverage, strict=True)):
        cells.append(mean_cell(f"{level:g}, what is proved", coverage[:, i], float(least), rng))
        cells.append(share_cell(f"{level:g}, given the data", fails(coverage[:, i], stated[:, i]), DELTA))
        alpha, m = 1 - level, n / folds
        published = 1 - 2 * alpha - min(2 * (1 - 1 / folds) / (m + 1), (1 - folds / n) / (folds + 1))
        cells.append(never_cell(f"{level:g}, states no less than is published", [least < published - 1e-9]))
    return cells


def untouched(rng: np.random.Generator, n: int, folds: int, sets: int) -> list[Cell]:
    """Return the control: the model of a fold has seen the fold, so that its scores there are too small."""
    world, fold = World(NOISES["gaussian"]), np.arange(n) % folds
    rule = gb.BandCalibrator("conf-fw", confidence_level=0.9, calibration="cv+")
    coverage = np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        own = _means(x, y)
        rule.fit(None, own[x], None, y, folds=fold)
        new = rule.transform(None, np.tile(own, (folds, 1)), None)
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    return [mean_cell("models that saw the fold", coverage, float(rule.certificate.expected_coverage), rng, False)]
