import numpy as np
import pytest
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

import guardband as gb

RNG = np.random.default_rng(0)


def gaussian_bands(n):
    mean, deviation = RNG.standard_normal(n), np.exp(RNG.standard_normal(n) / 3)
    return mean, deviation, (mean - deviation, mean, mean + deviation)


@pytest.mark.parametrize("n", [40, 1000])
def test_quantiles_are_those_of_kuleshovs_isotonic_regression(n):
    """Algorithm 1 by scikit-learn's isotonic regression, inverted by searching a fine grid of responses."""
    mean, deviation, bands = gaussian_bands(n)
    y = mean + 2 * deviation * RNG.standard_t(4, n) + 0.5  # too narrow, off centre, heavy tails
    predicted = norm.cdf(y, mean, deviation)
    share = (predicted[None] <= predicted[:, None]).mean(1)
    recalibrate = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(predicted, share)
    out = gb.BandCalibrator("bayes", confidence_level=0.8).fit(*bands, y).transform([-0.7], [0.3], [1.3])
    grid = np.linspace(-20, 20, 400_001)
    cdf = recalibrate.predict(norm.cdf(grid, 0.3, 1.0))
    gaps = np.diff(np.sort((y - mean) / deviation))  # the two interpolate differently between neighbours
    for level, found in ((0.1, out.lower[0]), (0.5, out.point[0]), (0.9, out.upper[0])):
        theirs = grid[np.searchsorted(cdf, level)]
        place = np.searchsorted(np.sort((y - mean) / deviation), found - 0.3)
        assert found == pytest.approx(theirs, abs=1e-4 + gaps[max(0, place - 2) : place + 1].max())


def test_a_right_distribution_is_left_alone():
    n = 200_000
    mean, deviation, bands = gaussian_bands(n)
    out = gb.BandCalibrator("bayes").fit(*bands, RNG.normal(mean, deviation)).transform([-1.0], [0.0], [1.0])
    # Standard errors of the empirical 5%, 50% and 95% quantiles of a standard Gaussian.
    for level, found in ((0.05, out.lower[0]), (0.5, out.point[0]), (0.95, out.upper[0])):
        error = np.sqrt(level * (1 - level) / n) / norm.pdf(norm.ppf(level))
        assert abs(found - norm.ppf(level)) < 4.42 * error


def test_other_levels_come_from_the_same_distribution():
    mean, deviation, bands = gaussian_bands(500)
    rule = gb.BandCalibrator("bayes", confidence_level=[0.8, 0.9]).fit(*bands, RNG.normal(mean, deviation))
    both = rule.transform(*bands)
    one = rule.transform(*bands, confidence_level=0.8)
    np.testing.assert_array_equal(both.lower[:, 0], one.lower)
    assert (both.upper[:, 1] > one.upper).all()


def test_bands_that_are_not_finite_are_left_out_and_get_the_whole_line():
    mean, deviation, bands = gaussian_bands(100)
    y = RNG.normal(mean, deviation)
    broken = [side.copy() for side in bands]
    broken[1][7] = np.nan
    rule = gb.BandCalibrator("bayes").fit(*broken, y)
    assert rule.certificate.n_calibration == 100
    out = rule.transform(*broken)
    assert (out.lower[7], out.upper[7]) == (-np.inf, np.inf)


@pytest.mark.parametrize(("n", "finite"), [(1, False), (19, False), (20, True)])
def test_too_few_rows_give_the_whole_line_with_a_warning(n, finite):
    mean, deviation, bands = gaussian_bands(n)
    y = RNG.normal(mean, deviation)
    if finite:
        out = gb.BandCalibrator("bayes").fit(*bands, y).transform(*bands)
        assert np.isfinite(out.upper - out.lower).all()
        return
    with pytest.warns(gb.InsufficientCalibrationWarning, match="bayes needs at least 20 calibration rows"):
        rule = gb.BandCalibrator("bayes").fit(*bands, y)
    assert rule.certificate.whole_line
    assert np.isinf(rule.transform(*bands).upper).all()
    with pytest.raises(gb.InsufficientCalibrationError):
        gb.BandCalibrator("bayes", on_insufficient="raise").fit(*bands, y)


def test_bands_of_no_width_never_make_it_shorter():
    mean, deviation, bands = gaussian_bands(200)
    y = RNG.normal(mean, deviation)
    flat = [np.where(np.arange(200) < 30, mean, side) for side in bands]
    with pytest.warns(gb.InsufficientCalibrationWarning):
        out = gb.BandCalibrator("bayes").fit(*flat, y).transform(*bands)
    assert (out.lower == -np.inf).all()
