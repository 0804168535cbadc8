import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

import guardband as gb
from guardband.bands.predicted import PredictedGaussian
from guardband.calibration.recalibration import _quantile

RNG = np.random.default_rng(0)


def gaussians(n):
    mean, deviation = RNG.standard_normal(n), np.exp(RNG.standard_normal(n) / 3)
    return PredictedGaussian(mean, deviation)


@pytest.mark.parametrize("n", [40, 1000])
def test_quantiles_are_those_of_kuleshovs_isotonic_regression(n):
    """Algorithm 1 by scikit-learn's isotonic regression, inverted by searching a fine grid of responses."""
    held_out = gaussians(n)
    mean, deviation = held_out.parts
    y = mean + 2 * deviation * RNG.standard_t(4, n) + 0.5  # too narrow, off centre, heavy tails
    predicted = norm.cdf(y, mean, deviation)
    share = (predicted[None] <= predicted[:, None]).mean(1)
    recalibrate = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(predicted, share)
    rule = gb.BandCalibrator("bayes", confidence_level=0.8).fit_predicted(held_out, y)
    out = rule.transform_predicted(PredictedGaussian([0.3], [1.0]))
    grid = np.linspace(-20, 20, 400_001)
    cdf = recalibrate.predict(norm.cdf(grid, 0.3, 1.0))
    gaps = np.diff(np.sort((y - mean) / deviation))  # the two interpolate differently between neighbours
    for level, found in ((0.1, out.lower[0]), (0.5, out.point[0]), (0.9, out.upper[0])):
        theirs = grid[np.searchsorted(cdf, level)]
        place = np.searchsorted(np.sort((y - mean) / deviation), found - 0.3)
        assert found == pytest.approx(theirs, abs=1e-4 + gaps[max(0, place - 2) : place + 1].max())


def test_a_right_distribution_is_left_alone():
    n = 200_000
    held_out = gaussians(n)
    rule = gb.BandCalibrator("bayes").fit_predicted(held_out, RNG.normal(*held_out.parts))
    out = rule.transform_predicted(PredictedGaussian([0.0], [1.0]))
    # Standard errors of the empirical 5%, 50% and 95% quantiles of a standard Gaussian.
    for level, found in ((0.05, out.lower[0]), (0.5, out.point[0]), (0.95, out.upper[0])):
        error = np.sqrt(level * (1 - level) / n) / norm.pdf(norm.ppf(level))
        assert abs(found - norm.ppf(level)) < 4.42 * error


def test_other_levels_come_from_the_same_distribution():
    held_out = gaussians(500)
    rule = gb.BandCalibrator("bayes", confidence_level=[0.8, 0.9])
    rule.fit_predicted(held_out, RNG.normal(*held_out.parts))
    both = rule.transform_predicted(held_out)
    one = rule.transform_predicted(held_out, confidence_level=0.8)
    np.testing.assert_array_equal(both.lower[:, 0], one.lower)
    assert (both.upper[:, 1] > one.upper).all()


def test_predictions_that_are_not_finite_are_left_out_and_get_the_whole_line():
    broken = gaussians(100)
    y = RNG.normal(*broken.parts)
    broken.mean[7] = np.nan
    rule = gb.BandCalibrator("bayes").fit_predicted(broken, y)
    assert rule.certificate.n_calibration == 100
    out = rule.transform_predicted(broken)
    assert (out.lower[7], out.upper[7]) == (-np.inf, np.inf)


@pytest.mark.parametrize(("n", "finite"), [(1, False), (19, False), (20, True)])
def test_a_side_beyond_the_first_row_is_infinite_with_a_warning(n, finite):
    held_out = gaussians(n)
    y = RNG.normal(*held_out.parts)
    if finite:
        out = gb.BandCalibrator("bayes").fit_predicted(held_out, y).transform_predicted(held_out)
        assert np.isfinite(out.upper - out.lower).all()
        return
    with pytest.warns(
        gb.InsufficientCalibrationWarning,
        match=f"infinite side. bayes needs at least 20 calibration rows .* but has {n}.",
    ):
        rule = gb.BandCalibrator("bayes").fit_predicted(held_out, y)
    out = rule.transform_predicted(held_out)
    assert (out.lower == -np.inf).all()
    assert np.isfinite(out.upper).all()
    assert not rule.certificate.whole_line
    with pytest.raises(gb.InsufficientCalibrationError, match="bayes needs at least 20 calibration rows"):
        gb.BandCalibrator("bayes", on_insufficient="raise").fit_predicted(held_out, y)


def test_without_a_row_that_tells_it_is_the_whole_line_with_a_warning():
    nothing = PredictedGaussian(np.full(50, np.nan), np.ones(50))
    words = "The intervals are infinite. bayes needs .* but has 0. Add"
    with pytest.warns(gb.InsufficientCalibrationWarning, match=words):
        rule = gb.BandCalibrator("bayes").fit_predicted(nothing, np.zeros(50))
    assert rule.certificate.whole_line
    out = rule.transform_predicted(PredictedGaussian([0.0], [1.0]))
    assert (out.lower[0], out.upper[0]) == (-np.inf, np.inf)
    with pytest.raises(gb.InsufficientCalibrationError):
        gb.BandCalibrator("bayes", on_insufficient="raise").fit_predicted(nothing, np.zeros(50))


def test_deviations_of_next_to_nothing_never_make_it_shorter():
    held_out = gaussians(200)
    y = RNG.normal(*held_out.parts)
    flat = PredictedGaussian(held_out.mean, np.where(np.arange(200) < 30, 5e-324, held_out.deviation))
    with pytest.warns(gb.InsufficientCalibrationWarning):
        out = gb.BandCalibrator("bayes").fit_predicted(flat, y).transform_predicted(held_out)
    assert (out.lower == -np.inf).all()


def test_a_deviation_of_zero_is_refused():
    with pytest.raises(ValueError, match="deviation > 0 must hold in every row, found 1 where it does not"):
        gb.BandCalibrator("bayes").fit_predicted(PredictedGaussian([0.0, 1.0], [1.0, 0.0]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("ordered", "tenths", "wanted"),
    [
        ([1, 2, 4, 8], 2, -math.inf),  # before the first, which is at a quarter
        ([1, 2, 4, 8], 5, 2),
        ([1, 2, 4, 8], 6, 2.8),
        ([1, 2, 4, 8], 9, 6.4),
        ([1, 2, 4, 8], 10, 8),
        ([1, 2], 4, -math.inf),
        ([5], 5, 5),
        ([5], 9, 5),
        ([], 1, -math.inf),
        ([], 9, math.inf),
        ([-math.inf, 1, 2, math.inf], 4, -math.inf),  # nothing is interpolated towards an infinite distance
        ([-math.inf, 1, 2, math.inf], 9, math.inf),
        ([-math.inf, 3], 5, 3),
    ],
)
def test_quantiles_lie_between_neighbours(ordered, tenths, wanted):
    assert _quantile(np.array(ordered, dtype=float), Fraction(tenths, 10)) == pytest.approx(wanted)


def test_true_values_at_the_mean_are_no_deviation_away():
    held_out = gaussians(100)
    rule = gb.BandCalibrator("bayes").fit_predicted(held_out, np.ravel(held_out.mean))
    out = rule.transform_predicted(PredictedGaussian([3.0], [2.0]))
    assert (out.lower[0], out.point[0], out.upper[0]) == (3, 3, 3)


@pytest.mark.parametrize(("levels", "needed"), [(0.7, 7), ([0.5, 0.7], 7)])
def test_the_rows_that_are_needed_are_those_of_the_highest_level_rounded_up(levels, needed):
    held_out = gaussians(2)
    with pytest.warns(gb.InsufficientCalibrationWarning, match=f"needs at least {needed} calibration rows"):
        gb.BandCalibrator("bayes", confidence_level=levels).fit_predicted(held_out, np.zeros(2))


def test_infinite_sides_are_the_whole_line_also_around_a_finite_median():
    flat = PredictedGaussian(np.zeros(20), np.full(20, 5e-324))
    y = np.repeat([-1.0, 0.0, 1.0], [6, 8, 6])
    with pytest.warns(gb.InsufficientCalibrationWarning):
        rule = gb.BandCalibrator("bayes").fit_predicted(flat, y)
    assert rule.certificate.whole_line
    assert rule.transform_predicted(PredictedGaussian([3.0], [2.0])).point[0] == 3


def test_a_row_has_one_gaussian():
    with pytest.raises(ValueError, match="takes 1 interval"):
        gb.BandCalibrator("bayes").fit_predicted(PredictedGaussian(np.zeros((2, 50)), np.ones((2, 50))), np.zeros(50))


def test_an_upper_side_alone_is_infinite_with_a_warning_too():
    flat = PredictedGaussian(np.zeros(20), np.full(20, 5e-324))
    with pytest.warns(gb.InsufficientCalibrationWarning, match="infinite side"):
        rule = gb.BandCalibrator("bayes").fit_predicted(flat, np.repeat([0.0, 1.0], [17, 3]))
    out = rule.transform_predicted(PredictedGaussian([3.0], [2.0]))
    assert (out.lower[0], out.upper[0]) == (3, np.inf)
