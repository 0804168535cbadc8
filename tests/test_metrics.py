import numpy as np
import pytest
import torch
from mapie.metrics.regression import regression_coverage_score, regression_mean_width_score, regression_mwi_score
from sklearn.metrics import mean_pinball_loss

import guardband as gb
from guardband.data.artificial import PaperModel

RNG = np.random.default_rng(0)
Y = RNG.standard_normal(500)
CENTER = RNG.standard_normal(500) * 0.3
ONE = gb.Intervals(CENTER - 1, CENTER, CENTER + 1.5, 0.9)
TWO = gb.Intervals(
    np.stack([CENTER - 1, CENTER - 0.4], 1), CENTER, np.stack([CENTER + 1.5, CENTER + 0.5], 1), (0.9, 0.5)
)


def test_coverage_length_and_winkler_agree_with_mapie():
    pairs = np.stack([ONE.lower, ONE.upper], axis=1)[:, :, None]
    assert gb.metrics.coverage(Y, ONE) == pytest.approx(regression_coverage_score(Y, pairs)[0])
    assert gb.metrics.mean_length(Y, ONE) == pytest.approx(regression_mean_width_score(pairs)[0])
    assert gb.metrics.interval_score(Y, ONE) == pytest.approx(regression_mwi_score(Y, pairs, 0.9))


def test_several_levels_give_one_number_each():
    assert gb.metrics.coverage(Y, TWO).shape == (2,)
    assert gb.metrics.coverage(Y, TWO)[0] == gb.metrics.coverage(Y, ONE)
    assert gb.metrics.pinball(Y, TWO).shape == (3, 2)


@pytest.mark.parametrize("bands", [ONE, TWO])
@pytest.mark.parametrize("kind", [np.asarray, lambda own: torch.from_numpy(np.asarray(own)).requires_grad_()])
def test_what_a_network_puts_out_gives_the_same_numbers(bands, kind):
    out, rows = kind(bands), RNG.random((500, 2))
    y = Y if isinstance(out, np.ndarray) else torch.from_numpy(Y)
    for metric in (gb.metrics.coverage, gb.metrics.mean_length, gb.metrics.size_stratified_coverage):
        np.testing.assert_array_equal(metric(y, out), metric(Y, bands))
    worst = gb.metrics.worst_slab_coverage
    np.testing.assert_array_equal(worst(y, out, rows, directions=5), worst(Y, bands, rows, directions=5))
    for metric in (gb.metrics.interval_score, gb.metrics.pinball, gb.metrics.weighted_interval_score):
        found = metric(y, out, confidence_level=bands.confidence_level)
        np.testing.assert_array_equal(found, metric(Y, bands))
        with pytest.raises(ValueError, match=r"Pass confidence_level=\.\.\., such as 0\.9"):
            metric(y, out)
        with pytest.raises(ValueError, match="say their own confidence level"):
            metric(Y, bands, confidence_level=0.9)


def test_an_array_must_have_one_level_for_each_interval():
    with pytest.raises(ValueError, match="one confidence_level for each interval"):
        gb.metrics.interval_score(Y, np.asarray(TWO), confidence_level=0.9)
    with pytest.raises(ValueError, match=r"as \(n, 3\) or \(n, 3, L\), found \(500,\)"):
        gb.metrics.coverage(Y, Y)


def test_pinball_agrees_with_scikit_learn():
    expected = [
        mean_pinball_loss(Y, side, alpha=level)
        for side, level in ((ONE.lower, 0.05), (ONE.point, 0.5), (ONE.upper, 0.95))
    ]
    np.testing.assert_allclose(gb.metrics.pinball(Y, ONE), expected)


def test_weighted_interval_score_is_two_thirds_of_the_pinball_sum():
    total = gb.metrics.pinball(Y, ONE).sum()
    assert gb.metrics.weighted_interval_score(Y, ONE) == pytest.approx(total / 1.5)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="shape"):
        gb.metrics.coverage(Y[:10], ONE)


def test_size_stratified_coverage_is_the_worst_bin():
    lower, upper = np.r_[np.full(50, -1.0), np.full(50, -3.0)], np.r_[np.full(50, 1.0), np.full(50, 3.0)]
    y = np.r_[np.full(25, 0.0), np.full(25, 2.0), np.zeros(50)]
    bands = gb.Intervals(lower, np.zeros(100), upper, 0.9)
    assert gb.metrics.size_stratified_coverage(y, bands, bins=2) == 0.5
    constant = gb.Intervals(np.full(100, -1.0), np.zeros(100), np.full(100, 1.0), 0.9)
    assert np.isnan(gb.metrics.size_stratified_coverage(y, constant))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("width", [1e-3, 1.0, 100.0])
def test_lengths_that_differ_by_rounding_alone_are_constant(size, width):
    """The lengths of conf-fw: point and threshold, outward rounding included."""
    random = np.random.default_rng(0)
    point, y = size * random.standard_normal(1000), random.standard_normal(1000)
    rule = gb.BandCalibrator("conf-fw").fit(point - 1, point, point + 1, point + width * y)
    bands = rule.transform(point - 1, point, point + 1)
    assert size < 1e6 or len(np.unique(bands.upper - bands.lower)) > 1
    assert np.isnan(gb.metrics.size_stratified_coverage(point + width * y, bands))


def test_lengths_that_differ_by_more_than_rounding_are_not_constant():
    point = 1.7e9 + np.arange(100.0)  # seconds, with lengths of seconds
    bands = gb.Intervals(point - 1, point, point + 1 + np.linspace(0, 0.5, 100), 0.9)
    assert gb.metrics.size_stratified_coverage(point, bands) == 1
    infinite = gb.Intervals(np.full(100, -np.inf), np.zeros(100), np.full(100, np.inf), 0.9)
    assert np.isnan(gb.metrics.size_stratified_coverage(point, infinite))
    some = gb.Intervals(np.r_[-np.inf, np.full(99, -1.0)], np.zeros(100), np.ones(100), 0.9)
    assert gb.metrics.size_stratified_coverage(np.zeros(100), some) == 1


def test_worst_slab_is_honest_for_the_oracle_and_finds_a_bad_fixed_width():
    model = PaperModel(n_features=3, n_active=3)
    X, y = model.draw(4000, 0)
    oracle = model.oracle(X)
    half = np.quantile(np.abs(y - oracle.point), 0.9)
    fixed = gb.Intervals(oracle.point - half, oracle.point, oracle.point + half, 0.9)
    assert gb.metrics.worst_slab_coverage(y, oracle, X, directions=100) > 0.85
    assert gb.metrics.worst_slab_coverage(y, fixed, X, directions=100) < 0.82


def test_scorer_prefers_the_shorter_honest_interval():
    class Fixed:
        def __init__(self, half):
            self.half = half

        def predict_interval(self, X):
            return gb.Intervals(np.full(len(X), -self.half), np.zeros(len(X)), np.full(len(X), self.half), 0.9)

    scores = [gb.metrics.interval_score_scorer(Fixed(half), np.zeros((500, 1)), Y) for half in (0.3, 1.645, 9.0)]
    assert scores[1] == max(scores)


ONE_SIDED = gb.Intervals(np.full(4, -np.inf), np.zeros(4), np.array([1.0, 1.0, 2.0, 3.0]), 0.9)
TRUTH = np.array([0.5, 2.0, -1.0, 3.0])


def test_the_score_of_one_bound_is_its_quantile_loss():
    """Divided by alpha: a bound that is too high by 1 costs 1, one that is too low by 1 costs 9."""
    assert gb.metrics.interval_score(TRUTH, ONE_SIDED) == pytest.approx((0.5 + 9 + 3 + 0) / 4)
    _, _, loss = gb.metrics.pinball(TRUTH, ONE_SIDED)
    assert gb.metrics.interval_score(TRUTH, ONE_SIDED) == pytest.approx(loss / 0.1)
    mirrored = gb.Intervals(-ONE_SIDED.upper, np.zeros(4), np.full(4, np.inf), 0.9)
    assert gb.metrics.interval_score(-TRUTH, mirrored) == pytest.approx(gb.metrics.interval_score(TRUTH, ONE_SIDED))
    error = np.abs(TRUTH).mean()
    assert gb.metrics.weighted_interval_score(TRUTH, ONE_SIDED) == pytest.approx((error / 2 + loss) / 1.5)


def test_one_bound_is_covered_and_infinitely_wide():
    assert gb.metrics.coverage(TRUTH, ONE_SIDED) == 0.75
    assert gb.metrics.mean_length(TRUTH, ONE_SIDED) == np.inf
    assert np.isnan(gb.metrics.pinball(TRUTH, ONE_SIDED)[0])
    assert ONE_SIDED.side == "upper"
    np.testing.assert_array_equal(ONE_SIDED.reach, ONE_SIDED.upper)
    assert gb.metrics.size_stratified_coverage(TRUTH, ONE_SIDED, bins=2) == 0.5


def test_the_score_of_tails_weighs_each_side():
    n = 999
    y = np.random.default_rng(0).exponential(size=n)
    rule = gb.BandCalibrator(tails=(0.02, 0.08)).fit(np.full(n, -1.0), np.full(n, 0.7), np.full(n, 2.0), y)
    bands = rule.transform(np.full(2, -1.0), np.full(2, 0.7), np.full(2, 2.0))
    below, above = bands.lower[0] - 0.5, bands.upper[0] + 1.0
    width = bands.width[0]
    assert gb.metrics.interval_score([below, above], bands) == pytest.approx(width + (0.5 / 0.02 + 1 / 0.08) / 2)
    assert gb.metrics.interval_score([0.7, 0.7], bands) == pytest.approx(width)


def test_quantiles_have_the_lowest_score_of_one_bound():
    y = np.random.default_rng(1).exponential(size=20_000)

    def score(end):
        bands = gb.Intervals(np.full_like(y, -np.inf), np.zeros_like(y), np.full_like(y, end), 0.9)
        return gb.metrics.interval_score(y, bands)

    best = np.quantile(y, 0.9)
    assert score(best) < min(score(best - 0.2), score(best + 0.2))
