import numpy as np
import pytest
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
