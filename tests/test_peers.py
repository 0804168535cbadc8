"""Where other libraries are right we agree with them; where they are not, the test says so."""

import numpy as np
import pytest
from crepes import ConformalRegressor
from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin

import guardband as gb

RNG = np.random.default_rng(0)


class Zero(RegressorMixin, BaseEstimator):
    """Predicts 0, so that residuals are the responses."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))


def our_half_width(y, level):
    """With widths of one on both sides the scaled score is the absolute residual."""
    rule = gb.BandCalibrator(confidence_level=level).fit(-np.ones(len(y)), np.zeros(len(y)), np.ones(len(y)), y)
    return rule.transform([-1.0], [0.0], [1.0]).upper[0]


def mapie_half_width(y, level):
    X = np.zeros((len(y), 1))
    model = SplitConformalRegressor(Zero().fit(X, y), confidence_level=level, prefit=True).conformalize(X, y)
    return model.predict_interval(X[:1])[1][0, 1, 0]


def crepes_half_width(y, level):
    model = ConformalRegressor().fit(residuals=y)
    return model.predict_int(np.zeros(1), confidence=level)[0, 1]


@pytest.mark.parametrize("n", [50, 100, 137, 1000])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_mapie_and_crepes_agree_on_the_rank(n, level):
    y = RNG.standard_normal(n)
    ours = our_half_width(y, level)
    assert mapie_half_width(y, level) == pytest.approx(ours, rel=1e-12)
    assert crepes_half_width(y, level) == pytest.approx(ours, rel=1e-12)


def test_crepes_slips_a_rank_where_level_times_rows_is_whole():
    """The float 1 - 0.9 is a little less than 0.1: n = 9 becomes infinite, n = 29 and 999 a rank too wide."""
    for n, rank in ((29, 27), (999, 900)):
        y = RNG.standard_normal(n)
        ordered = np.sort(np.abs(y))
        assert our_half_width(y, 0.9) == pytest.approx(ordered[rank - 1], rel=1e-12)
        assert crepes_half_width(y, 0.9) == pytest.approx(ordered[rank], rel=1e-12)
    y = RNG.standard_normal(9)
    assert our_half_width(y, 0.9) == pytest.approx(np.abs(y).max(), rel=1e-12)
    with pytest.warns(UserWarning, match="calibration examples is too small"):
        assert np.isinf(crepes_half_width(y, 0.9))


def test_mapie_refuses_nine_rows_that_are_enough():
    y = RNG.standard_normal(9)
    with pytest.raises(ValueError, match="Number of samples of the score is too low"):
        mapie_half_width(y, 0.9)
    assert np.isfinite(our_half_width(y, 0.9))


class Offset(Zero):
    """Predicts a constant."""

    def __init__(self, value=0.0):
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)


def test_mapie_cqr_of_a_constant_band_is_our_interval():
    """With a symmetric constant band the additive and the scaled score rank rows alike."""
    y = RNG.standard_normal(200)
    X = np.zeros((200, 1))
    triple = [Offset(v).fit(X, y) for v in (-1.0, 1.0, 0.0)]  # lower, upper, median: their order
    model = ConformalizedQuantileRegressor(triple, confidence_level=0.9, prefit=True).conformalize(X, y)
    _, theirs = model.predict_interval(X[:1], symmetric_correction=True)
    assert theirs[0, 1, 0] == pytest.approx(our_half_width(y, 0.9), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_mapie_agrees_on_cqr(level):
    """Also where the threshold is negative, as long as the shortened band contains the point."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (301, 1))
    y = (1 + x[:, 0]) * rng.standard_normal(301)

    class Quantile(Zero):
        def __init__(self, slope=0.0):
            self.slope = slope

        def predict(self, X):
            return self.slope * (1 + X[:, 0])

    triple = [Quantile(slope).fit(x, y) for slope in (-1.0, 1.2, 0.0)]  # MAPIE's order: lower, upper, median
    theirs = ConformalizedQuantileRegressor(triple, confidence_level=level, prefit=True).conformalize(x, y)
    _, found = theirs.predict_interval(x, symmetric_correction=True)
    lower, upper, point = (one.predict(x) for one in triple)
    ours = gb.BandCalibrator("cqr", confidence_level=level).fit(lower, point, upper, y).transform(lower, point, upper)
    np.testing.assert_allclose(found[:, 0, 0], ours.lower, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1, 0], ours.upper, rtol=1e-12)
