"""The units of a target: transforms, bounds and whole numbers."""

import numpy as np
import pytest

from guardband.bands.distribution import Distribution
from guardband.bands.placement import ByResidual
from guardband.calibration.places import CalibratedPlaces
from guardband.data.target import Target
from guardband.data.target_units import TargetUnits


def units(transform=None, y_min=None, y_max=None, whole=False):
    return TargetUnits(Target(transform, y_min, y_max, whole=whole))


@pytest.mark.parametrize("name", ["log", "log1p", "asinh", "sqrt"])
def test_values_come_back_from_work_units(name):
    own, y = units(name), np.array([0.5, 1.0, 20.0])
    np.testing.assert_allclose(own.back(own.to_work(y)), y)
    assert own.back(np.array([np.inf]))[0] == np.inf
    np.testing.assert_array_equal(own.of_outcomes(y), own.to_work(y))


def test_values_that_no_outcome_has_are_infinite():
    assert units("log").to_work(np.array([-1.0, 0.0])).tolist() == [-np.inf, -np.inf]
    own = units(y_min=0.0, y_max=10.0)
    assert own.to_work(np.array([-1.0, 0.0, 9.0, 10.0, 11.0])).tolist() == [-np.inf, 0, 9, np.inf, np.inf]
    below = own.to_work(np.array([-1.0, 0.0, 9.0, 10.0, 11.0]), strictly=True)
    assert below.tolist() == [-np.inf, -np.inf, 9, 10, np.inf]
    assert own.back(np.array([-3.0, 4.0, 30.0])).tolist() == [0, 4, 10]


def test_functions_of_the_users_own():
    own = units((np.cbrt, lambda w: w**3))
    np.testing.assert_allclose(own.back(own.to_work(np.array([-8.0, 27.0]))), [-8, 27])
    assert own.back(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="returned NaN"):
        units((np.log, np.exp)).to_work(np.array([-1.0]))


def test_whole_numbers_are_rounded_within_their_bounds():
    own = units(whole=True, y_min=0.5, y_max=9.5)
    assert own.rounded(np.array([0.5, 1.4, 9.5, 9.9])).tolist() == [1, 1, 9, 9]
    assert own.rounded(np.array([1.5, 2.5])).tolist() == [1, 2]
    assert units().rounded(np.array([2.5])).tolist() == [2.5]


def test_whole_numbers_are_placed_half_way_to_the_next():
    own, asked = units(whole=True, y_min=0.5, y_max=9.5), np.array([0.9, 1.0, 2.5, 9.0])
    assert own.to_work(asked).tolist() == [-np.inf, 1.5, 2.5, np.inf]
    assert own.to_work(asked, strictly=True).tolist() == [-np.inf, -np.inf, 2.5, 8.5]
    assert units("log", whole=True).to_work(np.array([0.5, 1.0])).tolist() == [-np.inf, np.log(1.5)]
    ends = np.array([-np.inf, np.inf, 2.0**60])
    assert units(whole=True).to_work(ends).tolist() == ends.tolist()
    assert units(whole=True, y_max=2.0**60).to_work(ends, strictly=True)[2] < 2.0**60
    edge = units((np.sqrt, np.square), whole=True)
    assert edge.to_work(np.array([0.0]), strictly=True).tolist() == [0]  # -1 and -1/2 have no root


def test_probabilities_agree_with_quantiles_and_samples_of_whole_numbers():
    """Four of five rows are zero: the chance to exceed 0 is that to exceed a half, and no more than one in five."""
    rng = np.random.default_rng(1)
    y = rng.poisson(3.0, 400) * (rng.random(400) < 0.2)
    own = CalibratedPlaces.of("test", ByResidual(), rng.normal(0.4, 0.05, (400, 1)), y.astype(float))
    new, count = rng.normal(0.4, 0.05, (50, 1)), units(whole=True, y_min=0.0)
    rows = own.distribution(new, count)

    def stated(**asked):
        return own.probability(new, count, asked.get("above"), asked.get("below")).values

    np.testing.assert_array_equal(stated(above=0.0), stated(above=0.75))
    np.testing.assert_array_equal(stated(below=1.0), stated(below=0.75))
    np.testing.assert_allclose(stated(above=0.0) + rows.cdf(0.0), 400 / 401)
    assert (stated(above=0.0) + stated(below=0.75) <= 1).all()
    assert (stated(above=0.0) <= (y > 0).mean()).all()
    assert (stated(below=0.0) == 0).all()
    for p in (0.5, 0.8, 0.9):
        at = rows.quantile(p)
        assert (rows.cdf(at) >= p).all()
        assert (rows.cdf(at - 1) < p).all()
    drawn = (rows.sample(2000) <= 0).mean(axis=1)
    assert np.abs(drawn - rows.cdf(0.0)).max() < 0.06  # five standard errors, and 1 / 401


def test_rounding_keeps_the_promise_of_quantiles_of_whole_numbers():
    """No whole number lies strictly between a quantile and either whole number next to it."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.normal(size=99))
    new = rng.normal(scale=5, size=(50, 1))
    plain = Distribution(new, ByResidual(), places)
    whole = Distribution(new, ByResidual(), places, units(whole=True))
    y = np.round(rng.normal(scale=5, size=(50, 1)))
    for p in (0.1, 0.5, 0.9):
        a, b = plain.quantile(p)[:, None], whole.quantile(p)[:, None]
        assert ((y <= b) | (y > a)).all()  # at or below one, at or below the other
        assert ((y < a) | (y >= b)).all()  # and nothing more lies strictly below


def test_only_a_plain_target_has_a_density():
    assert units().has_density
    assert not any(own.has_density for own in (units("log"), units(y_min=0.0), units(whole=True)))


def test_a_value_at_the_largest_outcome_is_not_thought_impossible():
    """Rows at the largest value that y can have lie there often: none of them lies below it."""
    own = CalibratedPlaces.of("test", ByResidual(), np.zeros((9, 1)), np.full(9, 10.0))
    stated = own.probability(np.zeros((2, 1)), units(y_max=10.0), None, 10.0)
    assert (stated.values == 0).all()
    assert (own.probability(np.zeros((2, 1)), units(y_max=10.0), 10.0, None).values == 0).all()
    assert (own.probability(np.zeros((2, 1)), units(y_max=10.0), None, 10.5).values == 0.9).all()
