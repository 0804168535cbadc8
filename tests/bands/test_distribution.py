"""Distributions: quantiles with the exact law of their rank, and whatever else follows, against second statements."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import guardband as gb
from guardband.bands import distribution as module
from guardband.bands.distribution import MOST_POINTS, Distribution
from guardband.bands.placement import ByQuantiles, ByResidual, ByScale
from laws import SIGNIFICANCE, total_count_band

LEVELS = (0.1, 0.5, 0.9)


def scaled(n, n2, seed):
    """Return the distributions of n rows with scales of their own, by n2 places, and the true values."""
    rng = np.random.default_rng(seed)
    predictions = np.column_stack([rng.normal(size=n), 0.5 + rng.random(n)])
    own = Distribution(predictions, ByScale(), np.sort(rng.normal(size=n2)))
    return own, predictions[:, 0] + predictions[:, 1] * rng.normal(size=n)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_the_share_at_or_below_a_quantile_has_the_law_of_its_rank(p):
    n, m, replications, inside = 40, 50, 400, 0
    for seed in range(replications):
        own, y = scaled(m, n, seed)
        inside += int((y <= own.quantile(p)).sum())
    low, high = total_count_band(SIGNIFICANCE, replications, m, int(np.ceil(round(p * (n + 1), 9))), n)
    assert low <= inside <= high


def test_quantiles_increase_and_are_the_inverse_of_the_distribution_function():
    own, _ = scaled(30, 57, 0)
    levels = np.linspace(0.01, 0.98, 98)
    values = own.quantile(levels)
    assert (np.diff(values, axis=1) >= 0).all()
    for i, level in enumerate(levels):
        reached = own.cdf(values[:, i] + 1e-9)
        assert (reached >= level - 1e-12).all()
        assert (own.cdf(values[:, i] - 1e-9) < level).all()


def test_a_level_with_too_few_rows_is_infinite():
    own, _ = scaled(3, 9, 0)
    assert np.isposinf(own.quantile(0.95)).all()
    assert np.isfinite(own.quantile(0.9)).all()
    largest = own.predictions[:, 0] + own.predictions[:, 1] * own.places[-1]
    np.testing.assert_allclose(own.quantile(0.9), largest, rtol=1e-14)


def test_the_distribution_function_counts_places():
    own, y = scaled(20, 30, 1)
    places = (y - own.predictions[:, 0]) / own.predictions[:, 1]
    by_hand = [(own.places <= place).sum() / 31 for place in places]
    np.testing.assert_array_equal(own.cdf(y), by_hand)
    np.testing.assert_array_equal(own.cdf(np.column_stack([y, y + 1]))[:, 0], by_hand)
    assert own.cdf(0.0).shape == (20,)


def crps_by_definition(points, y):
    """Return E|X - y| - E|X - X'| / 2 by two loops."""
    to_truth = np.mean([abs(point - y) for point in points])
    return to_truth - np.mean([abs(a - b) for a in points for b in points]) / 2


def crps_by_integral(points, y):
    """Return the integral of (F - 1[y <= z])^2, piece by piece."""
    knots = np.sort([*points, y])
    shares = [np.mean(points <= left) for left in knots[:-1]]
    pieces = zip(shares, knots, knots[1:], strict=False)
    return sum((share - (left >= y)) ** 2 * (right - left) for share, left, right in pieces)


def test_crps_is_that_of_equally_likely_outcomes_at_the_places():
    own, y = scaled(25, 40, 2)
    for row, score in enumerate(own.crps(y)):
        points = own.predictions[row, 0] + own.predictions[row, 1] * own.places
        assert score == pytest.approx(crps_by_definition(points, y[row]), abs=1e-12)
        assert score == pytest.approx(crps_by_integral(points, y[row]), abs=1e-12)


def test_many_places_are_thinned_to_some_in_the_middle_of_equal_shares():
    n = 10 * MOST_POINTS
    own = Distribution(np.zeros((1, 1)), ByResidual(), np.arange(1.0, n + 1))
    assert own.mean()[0] == pytest.approx((n + 1) / 2, rel=1e-3)
    whole = crps_by_integral(own.places, 0.3 * n)
    assert own.crps([0.3 * n])[0] == pytest.approx(whole, rel=1e-3)


def test_samples_are_outcomes_at_places_drawn_alike():
    own, _ = scaled(4, 5, 3)
    drawn = own.sample(20_000, seed=1)
    possible = own.predictions[:, :1] + own.predictions[:, 1:] * own.places
    for row in range(4):
        counts = (drawn[row][:, None] == possible[row]).sum(0)
        assert counts.sum() == 20_000
        # each count is Bin(20000, 1/5): Hoeffding at 1e-6 for twenty of them
        assert np.abs(counts - 4000).max() <= np.sqrt(20_000 * np.log(2 * 20 / 1e-6) / 2)
    np.testing.assert_array_equal(drawn, own.sample(20_000, seed=1))
    assert (own.sample(3, seed=1) != own.sample(3, seed=2)).any()
    with pytest.raises(ValueError, match="at least 1, found 0"):
        own.sample(0)


def test_the_mean_is_that_of_the_outcomes():
    own, _ = scaled(6, 7, 4)
    np.testing.assert_allclose(own.mean(), own.predictions[:, 0] + own.predictions[:, 1] * own.places.mean())


def test_infinite_places_are_left_out_where_outcomes_must_be_finite():
    own = Distribution(np.array([[1.0, 2.0]]), ByScale(), np.array([-np.inf, -1.0, 0.0, 2.0, np.inf]))
    few = Distribution(own.predictions, ByScale(), own.places[1:-1])
    assert own.mean() == few.mean()
    assert own.crps([3.0]) == few.crps([3.0])
    assert np.isfinite(own.sample(100)).all()
    np.testing.assert_allclose(own.quantile([0.1, 0.5, 0.8]), [[-np.inf, 1.0, np.inf]], rtol=1e-14)
    with pytest.raises(ValueError, match="No calibration row has a finite place"):
        Distribution(own.predictions, ByScale(), np.array([np.inf])).mean()


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    own = Distribution(np.sort(rng.normal(size=(50, 3)), axis=1), ByQuantiles.of(LEVELS), np.sort(rng.random(20)))
    y = rng.normal(size=50)
    whole = own.quantile([0.1, 0.5]), own.crps(y), own.mean(), own.cdf(y), own.sample(4)
    monkeypatch.setattr(module, "AT_ONCE", 64)
    for a, b in zip(whole, (own.quantile([0.1, 0.5]), own.crps(y), own.mean(), own.cdf(y)), strict=False):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole[4], own.sample(4))


def test_rows_are_taken_and_tables_are_made():
    own, _ = scaled(6, 99, 6)
    few = own[[1, 3]]
    np.testing.assert_array_equal(few.quantile(0.5), own.quantile(0.5)[[1, 3]])
    assert len(own[2]) == 1
    frame = own.to_pandas([0.05, 0.5])
    assert list(frame) == ["quantile_0.05", "quantile_0.5"]
    assert isinstance(own.to_polars([0.5]), pl.DataFrame)
    named = Distribution(
        own.predictions, own.placement, own.places, index=pd.Index(list("abcdef")), input_names=("quantile_0.5",)
    )
    assert list(named.to_pandas([0.5])) == ["guardband_quantile_0.5"]
    assert list(named[[1, 3]].to_pandas().index) == ["b", "d"]
    assert repr(own) == "Distribution of 6 rows by 99 calibration rows"


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0, "level of a quantile must lie strictly between 0 and 1"),
        (95, "Write 0.95 for 95%"),
        ([0.5, 0.5], "must not name a level twice"),
        (None, "Say which quantiles"),
    ],
)
def test_levels_that_cannot_be_are_refused(p, said):
    with pytest.raises(ValueError, match=said):
        scaled(2, 9, 0)[0].quantile(p)


def test_values_of_another_number_of_rows_are_refused():
    own, _ = scaled(3, 9, 0)
    with pytest.raises(ValueError, match="one for each of 3 rows"):
        own.crps([1.0, 2.0])
    with pytest.raises(ValueError, match="missing value in row 1"):
        own.cdf([0.0, np.nan, 1.0])


PRICES = np.array([0.1, 0.3, 4.99, 14.99, 19.99, 29.99])


@pytest.mark.parametrize("levels", [None, (0.1, 0.5, 0.9), (0.05, 0.25, 0.5, 0.75, 0.95)])
def test_outcomes_that_tie_with_a_quantile_lie_at_or_below_it_however_they_are_rounded(levels):
    """Without a slack, up to all rows at the quantile lie above it by a unit in the last place."""
    rng = np.random.default_rng(5)
    lost = 0
    for _ in range(50):
        y = rng.choice(PRICES, 199)
        own = rng.uniform(0, 200) if levels is None else np.sort(rng.uniform(0, 30, len(levels)))
        predictions = np.full(199, own) if levels is None else np.tile(own, (199, 1))
        rule = gb.DistributionCalibrator(levels).fit(predictions, y).transform(predictions)
        for p in (0.1, 0.3, 0.5, 0.6, 0.9):
            k = math.ceil(Fraction(str(p)) * 200)
            assert (y <= rule.quantile(p)).sum() >= k
            assert (rule.cdf(rule.quantile(p)) >= p).all()
            plain = rule.placement.outcome(rule.predictions[:1], rule.places[[k - 1]])[0, 0]
            lost += (y <= plain).sum() < k
    assert lost > 0  # so that the slack is needed here
