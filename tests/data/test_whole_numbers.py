import numpy as np
import pytest
import torch

from guardband.data.target import Target
from guardband.data.whole_numbers import on_whole_numbers
from guardband.exceptions import TargetWarning


def ends(*triple):
    return tuple(np.array([float(value)]) for value in triple)


@pytest.mark.parametrize(
    ("given", "rounded"),
    [
        ((0.2, 1.7, 3.9), (1, 2, 3)),
        ((-0.4, 0.3, 0.8), (0, 0, 0)),
        ((2.2, 2.3, 2.4), (2, 2, 2)),
        ((2.6, 2.7, 2.8), (3, 3, 3)),
        ((1 + 1e-12, 1.5, 4 - 1e-12), (1, 2, 4)),
        ((-np.inf, 0.1, np.inf), (-np.inf, 0, np.inf)),
        ((-np.inf, 2.0, 5.5), (-np.inf, 2, 5)),
        ((2.0**53 + 2, 2.0**60, 1e300), (2.0**53 + 2, 2.0**60, 1e300)),
        ((3.0, 3.0, 3.0), (3, 3, 3)),
    ],
)
def test_ends_are_whole_numbers_inside(given, rounded):
    found = on_whole_numbers(*ends(*given), None, None)
    assert tuple(float(value[0]) for value in found) == rounded
    assert not any(np.signbit(value[0]) and value[0] == 0 for value in found)


def test_no_whole_number_is_lost_and_levels_stay_nested():
    random = np.random.default_rng(0)
    point = random.normal(0, 5, 2000)
    widths = np.sort(random.exponential(2, (2000, 3)), axis=1)
    lower, upper = point[:, None] - widths, point[:, None] + widths
    low, middle, high = on_whole_numbers(lower, point, upper, None, None)
    for y in range(-20, 21):
        assert (((low <= y) & (y <= high)) >= ((lower <= y) & (y <= upper))).all()
    assert (np.diff(low, axis=1) <= 0).all()
    assert (np.diff(high, axis=1) >= 0).all()
    assert ((low <= middle[:, None]) & (middle[:, None] <= high)).all()
    assert (np.floor(low) == low).all()
    assert (high - low).mean() < (upper - lower).mean()
    torches = on_whole_numbers(*map(torch.from_numpy, (lower, point, upper)), None, None, torch)
    for own, other in zip((low, middle, high), torches, strict=True):
        np.testing.assert_array_equal(own, other.numpy())


def test_a_point_that_is_no_number_leaves_the_ends():
    low, point, high = on_whole_numbers(np.array([-np.inf]), np.array([np.nan]), np.array([np.inf]), None, None)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isnan(point[0])


def test_bounds_are_kept_and_zero_is_inside():
    target = Target(None, 0.0, 10.5, integer=None).decided(np.arange(5.0))
    lower, point, upper = target.to_units(*ends(-3.2, -0.7, 0.6))
    assert (lower[0], point[0], upper[0]) == (0, 0, 0)
    lower, point, upper = target.to_units(*ends(9.7, 10.9, 20))
    assert (lower[0], point[0], upper[0]) == (10, 10, 10)
    positive = Target("log", None, None, integer=True).decided(np.arange(1.0, 5))
    assert positive.to_units(*ends(-np.inf, np.log(2.4), np.log(7.5)))[2][0] == 7


WHOLE, BROKEN = np.array([0.0, 3.0, 1e300]), np.array([0.0, 2.5, 3.0])


@pytest.mark.parametrize(
    ("integer", "y", "whole"),
    [
        (None, WHOLE, True),
        (None, BROKEN, False),
        (False, WHOLE, False),
        (True, WHOLE, True),
        (None, WHOLE + 1e20, False),
    ],
)
def test_whole_numbers_are_seen_unless_said(integer, y, whole):
    assert Target(None, None, None, integer=integer).decided(y).whole == whole


def test_a_number_that_is_not_whole_is_named_if_all_were_said_to_be():
    with pytest.raises(ValueError, match=r"every target must be a whole number, but 2.5 in row 1 is not\. Correct"):
        Target(None, None, None, integer=True).decided(BROKEN)
    with pytest.raises(ValueError, match=r"2\.5 in row 1"):
        Target(None, None, None, integer=True).decided(WHOLE).decided_again(BROKEN)


def test_later_rows_that_are_not_whole_end_the_rounding():
    target = Target(None, None, None, integer=None).decided(WHOLE)
    assert target.decided_again(WHOLE) is target
    with pytest.warns(TargetWarning, match=r"but 2\.5 in row 1 is not.*no longer rounds.*integer=False"):
        after = target.decided_again(BROKEN)
    assert not after.whole
    assert after.notes == ()
