import numpy as np
import pytest

from guardband.data.target import Target, read_target
from guardband.exceptions import TargetWarning


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, np.nan, 2.0], r"contains NaN.*row 1"),
        ([np.inf, 1.0, -np.inf], r"contains infinity.*rows 0, 2"),
        ([1.0, 2.0], "same number of rows, found 3 and 2"),
        ([[1.0], [2.0], [3.0]], r"shape \(n,\)"),
        (["a", "b", "c"], "must hold numbers"),
    ],
)
def test_what_is_no_response_is_refused_with_the_rows_named(y, words):
    with pytest.raises(ValueError, match=words):
        read_target(np.array(y), 3)


def test_responses_are_standardised_on_d1():
    y = np.array([1.0, 3.0, 5.0])
    target = Target(None, None, None).learn(y)
    learnt = target.to_learn(y)
    assert learnt.mean() == pytest.approx(0)
    assert learnt.std() == pytest.approx(1)
    np.testing.assert_allclose(target.scales[0].center + target.scales[0].scale * learnt[0], y)


def test_a_constant_response_warns():
    with pytest.warns(TargetWarning, match="constant"):
        target = Target(None, None, None).learn(np.full(5, 7.0))
    assert target.to_learn(np.array([7.0])) == 0


def test_log_intervals_come_back_with_every_row_inside():
    y = 10 ** np.random.default_rng(0).uniform(-12, 12, 5000)
    target = Target("log", None, None).learn(y)
    work = target.to_work(y)
    lower, _, upper = target.to_units(work, work, work)
    assert ((lower <= y) & (y <= upper)).all()
    assert (upper - lower <= 1e-14 * y * (1 + np.abs(np.log(y)))).all()


def test_log_and_bounds_refuse_responses_outside():
    with pytest.raises(ValueError, match="positive for target_transform"):
        Target("log", None, None).learn(np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"at least y_min = 0.*found -1: see row 1"):
        Target(None, 0, None).learn(np.array([1.0, -1.0]))


def test_bounds_cut_intervals_off():
    target = Target(None, 0.0, 10.0)
    lower, point, upper = target.to_units(np.array([-3.0]), np.array([-1.0]), np.array([np.inf]))
    assert (lower[0], point[0], upper[0]) == (0, 0, 10)


def test_dates_are_no_response_and_masked_rows_are_missing():
    with pytest.raises(ValueError, match="must hold numbers, found datetime64"):
        read_target(np.array(["2024-01-01", "NaT"], dtype="datetime64[s]"), 2)
    with pytest.raises(ValueError, match=r"NaN.*row 1"):
        read_target(np.ma.masked_array([1.0, 2.0], [False, True]), 2)
