"""A risk: what may be asked for, and the loss of a row."""

import numpy as np
import pytest

import guardband as gb


def test_the_distance_outside_counts_up_to_the_cap():
    y, lower, upper = np.array([-3.0, 0.0, 1.0, 2.0, 99.0]), np.zeros(5), np.ones(5)
    assert gb.Risk(1, 10).losses(y, lower, upper).tolist() == [3, 0, 0, 1, 10]
    assert gb.Risk(1, 10).losses(y, np.full(5, -np.inf), np.full(5, np.inf)).tolist() == [0] * 5


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 1), "limit of a Risk must be a positive number, found 0"),
        ((1, float("inf")), "cap of a Risk must be a positive number"),
        ((float("nan"), 1), "limit of a Risk must be"),
        ((True, 2), "limit of a Risk must be"),
        (("1", 2), "limit of a Risk must be"),
        ((5, 5), "limit must be below cap"),
    ],
)
def test_a_risk_that_says_nothing_is_refused(numbers, words):
    with pytest.raises(ValueError, match=words):
        gb.Risk(*numbers)


def test_a_loss_of_another_name_is_refused():
    with pytest.raises(ValueError, match="loss must be"):
        gb.Risk(1, 2, loss="square")


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda y, lower, upper: y - 1, "must lie between 0 and cap=2, found -1"),
        (lambda y, lower, upper: np.full(len(y), 2.5), "found 2.5"),
        (lambda y, lower, upper: np.full(len(y), np.nan), "found nan"),
        (lambda y, lower, upper: 1.0, "one number for each of 3 rows"),
    ],
)
def test_what_a_loss_of_the_users_own_returns_is_checked(loss, words):
    with pytest.raises(ValueError, match=words):
        gb.Risk(1, 2, loss).losses(np.zeros(3), np.zeros(3), np.ones(3))


def test_risks_are_equal_by_their_numbers():
    assert gb.Risk(1, 2) == gb.Risk(1.0, 2.0) != gb.Risk(1, 3)
    assert gb.Risk(1, 2, max).name == "own"


def test_a_loss_of_other_arguments_is_refused():
    with pytest.raises(TypeError, match=r"Write it as loss\(y, lower, upper\)"):
        gb.Risk(1, 2, lambda y: y)
    assert callable(gb.Risk(1, 2, lambda *arrays: arrays[0]).loss)
