import numpy as np
import pytest
from scipy.stats import norm

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedGaussian, PredictedInterval
from guardband.calibration.selection import MostLikely, ShortestCovering

RNG = np.random.default_rng(0)
Y = RNG.standard_normal(1000)


def symmetric(*halves, n=1000):
    half = np.array(halves)[:, None] * np.ones(n)
    return -half, 0 * half, half


def gaussians(*deviations, n=1000):
    """Return candidates with mean 0."""
    deviation = np.array(deviations)[:, None] * np.ones(n)
    return PredictedGaussian(0 * deviation, deviation)


def test_high_q_takes_the_shortest_that_covers_enough():
    rule = gb.BandCalibrator("high-q").fit(*symmetric(3.0, 1.8, 1.2), Y)
    assert rule.transform(*symmetric(3.0, 1.8, 1.2, n=1)).upper == [1.8]


def test_high_q_takes_the_most_covering_if_none_covers_enough():
    rule = gb.BandCalibrator("high-q").fit(*symmetric(0.5, 1.5, 1.2), Y)
    assert rule.transform(*symmetric(0.5, 1.5, 1.2, n=1)).upper == [1.5]


def test_high_q_chooses_for_each_level_among_its_own():
    rule = gb.BandCalibrator("high-q", confidence_level=[0.5, 0.9]).fit(*symmetric(0.8, 1.1, 1.9, 2.5), Y)
    np.testing.assert_array_equal(rule.transform(*symmetric(0.8, 1.1, 1.9, 2.5, n=1)).upper, [[0.8, 1.9]])
    one = rule.transform(*symmetric(0.8, 1.1, 1.9, 2.5, n=1), confidence_level=0.9)
    assert one.upper == [1.9]
    with pytest.raises(ValueError, match="Name all levels when you calibrate"):
        rule.transform(*symmetric(0.8, 1.1, 1.9, 2.5, n=1), confidence_level=0.7)
    with pytest.raises(ValueError, match="equally many intervals for each of 2 levels, found 3"):
        gb.BandCalibrator("high-q", confidence_level=[0.5, 0.9]).fit(*symmetric(0.8, 1.1, 1.9), Y)


def test_neg_ll_takes_the_likeliest_gaussian_and_its_central_interval():
    deviations = (0.5, 1.1, 3.0)
    rule = gb.BandCalibrator("neg-ll", confidence_level=[0.5, 0.9]).fit_predicted(gaussians(*deviations), Y)
    likelihoods = [norm.logpdf(Y, 0, deviation).sum() for deviation in deviations]
    best = deviations[int(np.argmax(likelihoods))]
    found = rule.transform_predicted(gaussians(*deviations, n=1))
    np.testing.assert_allclose(found.upper, [best * norm.ppf([0.75, 0.95])])
    np.testing.assert_allclose(found.lower, [best * norm.ppf([0.25, 0.05])])
    later = rule.transform_predicted(gaussians(*deviations, n=1), confidence_level=0.8)
    np.testing.assert_allclose(later.upper, [best * norm.ppf(0.9)])


@pytest.mark.parametrize("value", [1e12, -1e300])
def test_one_absurd_outcome_does_not_choose(value):
    wrong = Y.copy()
    wrong[0] = value
    rule = gb.BandCalibrator("neg-ll").fit_predicted(gaussians(0.5, 1.1, 3.0), wrong)
    assert rule.transform_predicted(gaussians(0.5, 1.1, 3.0, n=1)).upper == [1.1 * norm.ppf(0.95)]


def test_a_candidate_that_is_not_finite_is_not_chosen():
    held_out = gaussians(1.0, 1.7)
    held_out.mean[0], held_out.deviation[0] = np.nan, np.nan
    rule = gb.BandCalibrator("neg-ll").fit_predicted(held_out, Y)
    assert rule.transform_predicted(gaussians(1.0, 1.7, n=1)).upper > 2


def test_qreg_un_changes_nothing():
    rule = gb.BandCalibrator("qreg-un", confidence_level=[0.5, 0.9]).fit(*symmetric(0.8, 1.9), Y)
    np.testing.assert_array_equal(rule.transform(*symmetric(0.8, 1.9, n=1)).upper, [[0.8, 1.9]])
    assert rule.transform(*symmetric(0.8, 1.9, n=1), confidence_level=0.9).upper == [1.9]
    with pytest.raises(ValueError, match="Name all levels when you calibrate"):
        rule.transform(*symmetric(0.8, 1.9, n=1), confidence_level=0.7)


def test_one_row_without_a_band_does_not_decide():
    lower, point, upper = symmetric(2.0, 9.0)
    for side in (lower, point, upper):
        side[1, 0] = np.nan
    rule = gb.BandCalibrator("high-q").fit(lower, point, upper, Y)
    assert rule.transform(*symmetric(2.0, 9.0, n=1)).upper == [2.0]
    held_out = gaussians(50.0, 1.0)
    for part in held_out.parts:
        part[:, 0] = np.nan
    rule = gb.BandCalibrator("neg-ll").fit_predicted(held_out, Y)
    assert rule.transform_predicted(gaussians(50.0, 1.0, n=1)).upper < 3


def test_without_any_likelihood_the_first_is_taken_with_a_warning():
    with pytest.warns(gb.DegenerateBandWarning, match="no candidate"):
        rule = gb.BandCalibrator("neg-ll").fit_predicted(gaussians(5e-324, 1e-323), Y)
    assert rule.transform_predicted(gaussians(2.0, 3.0, n=1)).upper == [2 * norm.ppf(0.95)]


def test_a_deviation_of_zero_is_refused():
    with pytest.raises(ValueError, match="deviation > 0 must hold in every row, found 1000 where it does not"):
        gb.BandCalibrator("neg-ll").fit_predicted(gaussians(0.0, 0.0), Y)


def test_another_number_of_candidates_is_refused():
    rule = gb.BandCalibrator("high-q").fit(*symmetric(1.7, 2.0, 2.5), Y)
    with pytest.raises(ValueError, match=r"Expected 3 band\(s\), as fit was given, found 2"):
        rule.transform(*symmetric(1.7, 2.0, n=1))
    rule = gb.BandCalibrator("neg-ll").fit_predicted(gaussians(1.7, 2.0, 2.5), Y)
    with pytest.raises(ValueError, match=r"Expected 3 band\(s\), as fit was given, found 2"):
        rule.transform_predicted(gaussians(1.7, 2.0, n=1))


def test_a_deviation_that_is_not_positive_gives_the_whole_line():
    random = np.random.default_rng(0)
    calibrator = gb.BandCalibrator("neg-ll")
    calibrator.fit_predicted(PredictedGaussian(np.zeros(50), np.ones(50)), random.standard_normal(50))
    calibrated = calibrator.calibration_
    new = PredictedGaussian(np.zeros((1, 1, 3)), np.array([[[1.0, 0.0, -1.0]]]))
    lower, _, upper = calibrated.rule.ends(new, gb.Context(), calibrated.found.arrays)
    assert np.isinf(upper - lower)[:, 0].tolist() == [False, True, True]


def test_high_q_counts_values_on_a_bound_and_takes_exactly_the_level():
    half = np.array([3.0, 1.0, 0.5])[None, :, None] * np.ones((1, 3, 10))
    bands = PredictedInterval(-half, 0 * half, half)
    y = np.array([-1.0, 1.0, 0.5, -0.5, 0.1, 0.2, 0.3, 0.4, 0.0, 5.0])
    rule = ShortestCovering("high-q", Levels.of(0.9), Levels.of(0.9))
    summary = rule.summarise(bands, y, Context())
    assert summary.totals["covered"].tolist() == [9, 9, 7]
    assert summary.totals["length"].tolist() == [60, 20, 10]
    assert rule.calibrate(summary).arrays["chosen"].tolist() == [1]  # nine of ten rows are enough for 90%


def test_the_loss_of_a_gaussian_is_its_negative_log_likelihood_with_outcomes_at_most_a_hundred_deviations_away():
    mean = np.array([[[1.0, 2.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0]]]).reshape(1, 2, 5)
    deviation = np.array([2.0, 0.5])[None, :, None] * np.ones((1, 2, 5))
    y = np.array([3.0, -1.0, 120.0, 1e6, 60.0])
    found = MostLikely("neg-ll", Levels.of(0.9)).summarise(PredictedGaussian(mean, deviation), y, Context()).totals
    near = np.clip((y - mean[0]) / deviation[0], -100, 100)
    wanted = -norm.logpdf(near).sum(1) + 5 * np.log(deviation[0, :, 0]) - 5 * np.log(2 * np.pi) / 2
    np.testing.assert_allclose(found["loss"], wanted)
    assert found["counted"] == 5


def test_a_row_without_likelihood_by_each_candidate_leaves_none_and_says_so():
    """Each candidate fails in another row: the first is taken, and its intervals are not said to be infinite."""
    mean = np.array([[[np.nan, 0.0, 0.0], [0.0, np.nan, 0.0]]])
    rule = MostLikely("neg-ll", Levels.of(0.9))
    summary = rule.summarise(PredictedGaussian(mean, np.ones((1, 2, 3))), np.zeros(3), Context())
    found = rule.calibrate(summary)
    assert found.arrays["chosen"].tolist() == [0]
    (remark,) = found.remarks
    assert remark.in_words() == "neg-ll: no candidate gives all rows a likelihood; the first is taken."
    assert remark.category is gb.DegenerateBandWarning
    assert not remark.infinite
