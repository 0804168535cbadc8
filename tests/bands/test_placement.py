"""Placements: places and outcomes undo each other and keep their order, tails included."""

import numpy as np
import pytest

from guardband.bands.placement import PRIOR_ROWS, ByQuantiles, ByResidual, ByScale

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
RNG = np.random.default_rng(0)
N = 300
QUANTILES = np.sort(RNG.normal(size=(N, len(LEVELS))), axis=1)
CASES = {
    "quantiles": (ByQuantiles.of(LEVELS), QUANTILES),
    "two": (ByQuantiles.of((0.1, 0.9)), QUANTILES[:, 1:3]),
    "residual": (ByResidual(), QUANTILES[:, :1]),
    "scale": (ByScale(), np.column_stack([QUANTILES[:, 0], np.exp(QUANTILES[:, 1])])),
}


@pytest.mark.parametrize("name", CASES)
def test_places_and_outcomes_undo_each_other(name):
    placement, predictions = CASES[name]
    y = RNG.normal(scale=5, size=N)
    places = placement.place(predictions, y)
    np.testing.assert_allclose(placement.outcome(predictions, places[:, None])[:, 0], y, rtol=1e-9, atol=1e-9)
    wanted = np.array([-3.0, 0.0, 0.02, 0.05, 0.4, 0.95, 0.99, 4.0])
    outcomes = placement.outcome(predictions, wanted)
    for place, own in zip(wanted, outcomes.T, strict=True):
        np.testing.assert_allclose(placement.place(predictions, own), place, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_both_keep_the_order_whatever_is_rounded(name):
    placement, predictions = CASES[name]
    near = np.concatenate([np.nextafter(predictions, 9), predictions, np.nextafter(predictions, -9)], axis=1)
    y = np.sort(np.concatenate([near, RNG.normal(size=(N, 20))], axis=1), axis=1)
    places = np.stack([placement.place(predictions, column) for column in y.T], axis=1)
    assert (np.diff(places, axis=1) >= 0).all()
    grid = np.sort(np.concatenate([np.linspace(-1, 2, 500), np.nextafter(LEVELS, 1), LEVELS, np.nextafter(LEVELS, 0)]))
    assert (np.diff(placement.outcome(predictions, grid), axis=1) >= 0).all()


@pytest.mark.parametrize("name", CASES)
def test_infinite_places_have_infinite_outcomes_and_the_reverse(name):
    placement, predictions = CASES[name]
    ends = np.array([-np.inf, np.inf])
    assert (placement.outcome(predictions, ends) == ends).all()
    for end in ends:
        assert (placement.place(predictions, np.full(N, end)) == end).all()


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_those_of_places(name):
    placement, predictions = CASES[name]
    y, step = RNG.normal(scale=3, size=N), 1e-7
    rises = (placement.place(predictions, y + step) - placement.place(predictions, y)) / step
    np.testing.assert_allclose(placement.slope(predictions, y), rises, rtol=1e-4)


def test_between_quantiles_a_place_is_the_probability():
    placement = ByQuantiles.of(LEVELS)
    predictions = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])
    for y, place in ((0.0, 0.05), (0.5, 0.15), (2.0, 0.5), (3.5, 0.85), (4.0, 0.95)):
        assert placement.place(predictions, np.array([y]))[0] == pytest.approx(place)


def test_equal_quantiles_have_the_largest_place_that_leads_to_them():
    placement, predictions = ByQuantiles.of(LEVELS), np.array([[0.0, 1.0, 1.0, 1.0, 2.0]])
    assert placement.place(predictions, np.array([1.0]))[0] == 0.75
    assert (placement.outcome(predictions, np.array([0.25, 0.5, 0.75])) == 1.0).all()
    flat = np.full((1, 5), 3.0)
    places = [placement.place(flat, np.array([y]))[0] for y in (2.0, 3.0, 4.0)]
    assert places == [-np.inf, 0.95, np.inf]
    assert (placement.outcome(flat, np.array([-5.0, 0.3, 7.0])) == 3.0).all()


def test_tails_are_exponential_with_the_mean_excess_of_the_rows_beyond():
    rng = np.random.default_rng(1)
    n = 4000
    predictions = np.tile([-1.0, 0.0, 2.0], (n, 1))
    y = np.zeros(n)
    y[:400], y[400:700] = -1 - rng.exponential(0.7, 400), 2 + rng.exponential(3, 300)
    own = ByQuantiles.learn((0.05, 0.5, 0.95), predictions, y)
    below, above = -1 - y[:400], (y[400:700] - 2) / 2
    start = 1 / np.log(10)
    assert own.below == pytest.approx((PRIOR_ROWS * start + below.sum()) / (PRIOR_ROWS + 400))
    assert own.above == pytest.approx((PRIOR_ROWS * start + above.sum()) / (PRIOR_ROWS + 300))


def test_a_side_of_no_width_has_a_share_of_the_other():
    placement, predictions = ByQuantiles.of((0.05, 0.5, 0.95)), np.array([[0.0, 1.0, 1.0]])
    place = placement.place(predictions, np.array([1.5]))[0]
    assert place == pytest.approx(0.95 + 0.05 * 0.5 / (0.02 * placement.above))


def test_without_rows_the_tails_are_those_of_a_laplace_distribution():
    levels = (0.05, 0.5, 0.95)
    own = ByQuantiles.of(levels)
    laplace = np.array([[np.log(0.1), 0.0, -np.log(0.1)]])
    for y in (-7.0, 5.0, 9.0):
        place = own.place(laplace, np.array([y]))[0]
        tail = 0.5 * np.exp(-abs(y))
        wanted = 0.05 + 0.05 * np.log(tail / 0.05)
        assert place == pytest.approx(wanted if y < 0 else 1 - wanted)


def test_outcomes_at_the_levels_are_the_quantiles_to_the_bit():
    placement, predictions = CASES["quantiles"]
    np.testing.assert_array_equal(placement.outcome(predictions, np.array(LEVELS)), predictions)
    np.testing.assert_array_equal(placement.outcome(predictions, np.tile(LEVELS, (N, 1))), predictions)


def test_an_outcome_goes_no_further_than_the_next_quantile():
    """The largest float below 1 times a step never rounds to the step."""
    placement = ByQuantiles((0.1, 0.3, 0.9), 1.0, 1.0)
    ends = np.array([[0.0, start, end] for start, end in np.random.default_rng(3).normal(size=(2000, 2)).tolist()])
    predictions = np.sort(ends, axis=1)
    outcomes = placement.outcome(predictions, np.nextafter(np.array(placement.levels), 0))
    assert (outcomes[:, 1:] <= predictions[:, 1:]).all()
    each = np.tile(np.nextafter(np.array(placement.levels), 0), (len(predictions), 1))
    np.testing.assert_array_equal(placement.outcome(predictions, each), outcomes)


def test_infinite_places_have_infinite_outcomes_where_there_is_no_width():
    placement, flat, ends = ByQuantiles.of(LEVELS), np.full((2, 5), 3.0), np.array([-np.inf, np.inf])
    assert (placement.outcome(flat, ends) == ends).all()
    assert (placement.outcome(flat, np.tile(ends, (2, 1))) == ends).all()


def test_beyond_an_infinite_quantile_a_place_is_that_of_the_lower_one():
    places = ByQuantiles((0.1, 0.5, 0.9), 1.0, 1.0).place(np.array([[-np.inf, 1.0, 2.0]]), np.array([0.0]))
    assert places.tolist() == [0.1]


def test_each_tail_has_a_scale_of_its_own():
    placement, predictions = ByQuantiles((0.1, 0.5, 0.9), 0.5, 3.0), np.array([[0.0, 1.0, 3.0]])
    y = np.array([-1.0, 9.0])
    places = np.concatenate([placement.place(predictions, one) for one in y[:, None]])
    np.testing.assert_allclose(places, [0.1 - 0.1 * 1 / (0.5 * 1), 0.9 + 0.1 * 6 / (3 * 2)])
    np.testing.assert_allclose(placement.outcome(predictions, places)[0], y)
    np.testing.assert_allclose(placement.slope(np.tile(predictions, (2, 1)), y), [0.1 / 0.5, 0.1 / 6])
    # at a quantile it is the slope to the right
    np.testing.assert_allclose(placement.slope(predictions, np.array([0.0])), 0.4)
    np.testing.assert_allclose(placement.slope(predictions, np.array([1.0])), 0.4 / 2)


def test_rounding_may_bring_an_outcome_so_far_and_no_further():
    eps = float(np.finfo(np.float64).eps)
    outcomes = np.array([[-7.0, 2.0]])
    np.testing.assert_array_equal(ByResidual().slack(np.array([[-3.0]]), outcomes), 8 * eps * np.array([[10.0, 5.0]]))
    scaled = np.array([[-3.0, 100.0]])
    np.testing.assert_array_equal(ByScale().slack(scaled, outcomes), 8 * eps * np.array([[10.0, 5.0]]))
    wide = {
        "between": ByQuantiles((0.1, 0.15, 0.9), 0.5, 0.5),  # the least step counts: 0.05, 0.2 and 0.2
        "below": ByQuantiles((0.1, 0.5, 0.8), 4.0, 0.5),  # 0.3, 0.025 and 0.4
        "above": ByQuantiles((0.1, 0.5, 0.8), 0.5, 8.0),  # 0.3, 0.2 and 0.025
    }
    for name, least in (("between", 0.05), ("below", 0.025), ("above", 0.025)):
        found = wide[name].slack(np.array([[-3.0, 1.0, 4.0]]), outcomes)
        np.testing.assert_allclose(found, 8 * eps * (3 + 4 + np.abs(outcomes) + 7 / least), rtol=1e-12)


def test_a_scale_of_nothing_has_places_at_the_point_and_beyond_all():
    predictions = np.array([[5.0, 2.0], [5.0, 2.0], [5.0, 0.0], [5.0, 0.0], [5.0, 0.0]])
    places = ByScale().place(predictions, np.array([6.0, 4.0, 5.0, 6.0, 4.0]))
    assert places.tolist() == [0.5, -0.5, 0.0, np.inf, -np.inf]


def test_the_middle_is_halfway_between_two_quantiles_if_their_number_is_even():
    levels = (0.1, 0.3, 0.8, 0.9)
    own = ByQuantiles.of(levels)
    laplace = np.log(2 * np.array([0.1, 0.3])), -np.log(2 * (1 - np.array([0.8, 0.9])))
    center = (laplace[0][1] + laplace[1][0]) / 2
    assert own.below == pytest.approx(1 / (center - laplace[0][0]))
    assert own.above == pytest.approx(1 / (laplace[1][1] - center))
    # the middle of 0, 1, 3 and 7 is 2, so that the upper side is 5 wide
    place = own.place(np.array([[0.0, 1.0, 3.0, 7.0]]), np.array([9.0]))[0]
    assert place == pytest.approx(0.9 + 0.1 * 2 / (5 * own.above))


def test_tails_count_rows_beyond_the_quantile_of_a_side_that_has_a_width():
    """Ten rows of the Laplace distribution come first. A row at the quantile, or on no width at all, says nothing."""
    predictions = np.array([[-1.0, 0.0, 2.0]] * 3 + [[5.0, 5.0, 5.0]])
    own = ByQuantiles.learn((0.05, 0.5, 0.95), predictions, np.array([-2.5, -1.0, -0.5, 3.0]))
    start = 1 / np.log(10)
    assert own.below == pytest.approx((10 * start + 1.5) / 11)
    assert own.above == pytest.approx(start)
