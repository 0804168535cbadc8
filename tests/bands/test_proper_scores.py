"""Scores of distributions: pit values are uniform, their band has its exact law, and densities integrate to one."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, kstest

import guardband as gb
from guardband.bands.distribution import Distribution
from guardband.bands.placement import ByQuantiles, ByResidual
from guardband.bands.proper_scores import _all_within, _limits
from laws import SIGNIFICANCE


def plain(places, n):
    return Distribution(np.zeros((n, 1)), ByResidual(), np.sort(places))


def test_crps_is_the_mean_of_all_rows():
    own = plain(np.array([-1.0, 2.0]), 3)
    y = np.array([0.0, 1.0, 5.0])
    assert gb.metrics.crps(y, own) == pytest.approx(own.crps(y).mean())


def test_pit_values_are_uniform_even_with_ties():
    rng = np.random.default_rng(0)
    values = []
    for seed in range(2000):
        places = rng.integers(0, 4, size=11).astype(float)
        values.append(gb.metrics.pit(places[:1], plain(places[1:], 1), seed=seed)[0])
    assert kstest(values, "uniform").pvalue > SIGNIFICANCE


def within_by_counting(m, n, ranks, low, high):
    """Return how many of all orders of m new and n calibration places keep the limits, as a share."""
    kept = 0
    for order in product((0, 1), repeat=m + n):
        if sum(order) != m:
            continue
        where = np.flatnonzero(np.array(order) == 0)
        counts = [sum(order[: where[k - 1]]) for k in ranks]
        kept += all(a <= c <= b for a, c, b in zip(low, counts, high, strict=True))
    return kept / comb(m + n, m)


def test_the_chance_to_stay_within_limits_is_exact():
    m, n, ranks = 6, 7, (2, 4, 5)
    for low, high in (([0, 1, 1], [4, 5, 5]), ([1, 1, 2], [3, 4, 6]), ([0, 0, 0], [6, 6, 6])):
        exact = within_by_counting(m, n, ranks, low, high)
        assert _all_within(m, n, ranks, np.array(low), np.array(high)) == pytest.approx(exact, abs=1e-12)


def test_the_band_fails_as_often_as_stated():
    m, n, delta, replications = 80, 60, 0.2, 2000
    band = gb.metrics.pit_band(m, n, levels=9, delta=delta)
    rng = np.random.default_rng(1)
    failed = 0
    for seed in range(replications):
        own = plain(rng.normal(size=n), m)
        failed += not band.contains(gb.metrics.pit(rng.normal(size=m), own, seed=seed))
    assert failed <= binom.ppf(1 - SIGNIFICANCE, replications, delta)
    assert failed >= binom.ppf(SIGNIFICANCE, replications, 0.6 * delta)  # it wastes little


def test_limits_for_very_many_rows_share_delta_among_levels():
    narrow, wide = (_limits(m, 200, (50, 100, 150), 0.05) for m in (1000, 400_000))
    assert (wide[1] - wide[0]).max() > 2000 > (narrow[1] - narrow[0]).max()
    assert (wide[0] / 400_000 <= np.array([0.25, 0.5, 0.75])).all()


def test_pit_leaves_the_band_if_the_distribution_is_too_narrow():
    rng = np.random.default_rng(2)
    own = plain(rng.normal(size=500), 500)
    band = gb.metrics.pit_band(500, 500)
    assert band.contains(gb.metrics.pit(rng.normal(size=500), own))
    assert not band.contains(gb.metrics.pit(2 * rng.normal(size=500), own))


@pytest.mark.parametrize("n", [30, 500])
def test_the_density_of_the_log_score_integrates_to_one(n):
    rng = np.random.default_rng(3)
    grid = np.linspace(-60, 60, 400_001)
    placement = ByQuantiles.of((0.1, 0.5, 0.9))
    own = Distribution(np.tile([-1.5, 0.1, 1.2], (len(grid), 1)), placement, np.sort(rng.random(n)))
    from guardband.bands.proper_scores import _log_density

    density = np.exp(_log_density(own.places, own.place(grid))) * placement.slope(own.predictions, grid)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    by_rows = [-gb.metrics.log_score([y], own[:1]) for y in (-2.0, 0.3, 4.0)]
    np.testing.assert_allclose(by_rows, np.log(np.interp([-2.0, 0.3, 4.0], grid, density)), rtol=1e-3)


def test_scores_refuse_other_rows():
    own = plain(np.arange(9.0), 3)
    for score in (gb.metrics.pit, gb.metrics.log_score):
        with pytest.raises(ValueError, match="one value for each of 3 rows"):
            score([1.0], own)
    with pytest.raises(ValueError, match="fewer than two different places"):
        gb.metrics.log_score([1.0] * 3, plain(np.ones(9), 3))
    with pytest.raises(ValueError, match="must be positive"):
        gb.metrics.pit_band(0, 10)
