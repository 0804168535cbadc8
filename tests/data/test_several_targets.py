"""Several targets: each on its own scale, with missing values where they are missing."""

import numpy as np
import pandas as pd
import pytest

from guardband.data.several_targets import SeveralTargets, average_of, key_of, read_targets, without_absurd
from guardband.data.target import Target
from guardband.exceptions import TargetWarning


def targets(*each):
    return SeveralTargets(names=tuple(f"t{j}" for j in range(len(each))), each=each)


def test_each_target_is_brought_to_its_scale_and_back():
    y = np.array([[1.0, 10.0], [np.nan, 20.0], [3.0, 40.0], [4.0, np.nan]])
    own = targets(Target(None, None, None), Target("log", None, None)).decided(y).learn(y)
    work = own.to_work(y)
    np.testing.assert_allclose(work[[0, 2], 1], np.log([10, 40]))
    np.testing.assert_array_equal(np.isnan(work), np.isnan(y))
    assert own.to_learn(y).shape == (1, 4, 2)
    known = work[[0, 2]]
    lower, point, upper = own.to_units(known[..., None] - 1, known, known[..., None] + 1)
    np.testing.assert_allclose(point, y[[0, 2]])
    np.testing.assert_allclose(upper[:, 1, 0], y[[0, 2], 1] * np.e)
    assert lower.shape == (2, 2, 1)


def test_a_target_with_one_scale_takes_it_in_every_turn():
    random = np.random.default_rng(0)
    long = np.exp(3 * random.standard_normal(2000))
    y = np.stack([random.standard_normal(2000), long], axis=1)
    plain = Target(None, None, None, quantiles=True)
    own = targets(plain, plain).decided(y).learn(y)
    learnt = own.to_learn(y)
    assert [len(each.scales) for each in own.each] == [1, 2]
    assert learnt.shape == (2, 2000, 2)
    np.testing.assert_array_equal(learnt[0, :, 0], learnt[1, :, 0])
    assert len(own.scales) == 3


def test_errors_and_warnings_name_their_target():
    y = np.array([[1.0, 10.0], [2.0, -20.0], [3.0, 5.0]])
    with pytest.raises(ValueError, match=r"Target 't1': y must be .*row"):
        targets(Target(None, None, None), Target("log", None, None)).decided(y)
    with pytest.warns(TargetWarning, match="Target 't0': y is constant"):
        targets(Target(None, None, None), Target(None, None, None)).learn(np.array([[1.0, 2.0], [1.0, 3.0]]))
    with pytest.raises(ValueError, match="'t0' is missing in every row"):
        targets(Target(None, None, None)).decided(np.full((3, 1), np.nan))


def test_targets_are_read_by_name_and_counted_without_names():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, None]})
    values, names = read_targets(frame, 2)
    assert names == ("a", "b")
    assert np.isnan(values[1, 1])
    assert read_targets(frame, 2, ("b", "a"))[0][0].tolist() == [3.0, 1.0]
    assert read_targets(np.ones((2, 3)), 2)[1] == ("target 1", "target 2", "target 3")


@pytest.mark.parametrize(
    ("y", "names", "says"),
    [
        (None, (), "requires y"),
        (np.ones(3), (), r"one column for each, \(n, q\), found shape \(3,\)"),
        (np.ones((3, 1)), (), "at least 2 columns in y, found 1"),
        (np.ones((4, 2)), (), "Target 'target 1': X and y must have the same number of rows"),
        (np.array([[1, np.inf]] * 3), (), "Target 'target 2': Input y contains infinity"),
        (pd.DataFrame({"a": [1] * 3, "b": ["x"] * 3}), (), "Target 'b': y must hold numbers"),
        (pd.DataFrame({"a": [1] * 3, "b": [1] * 3}), ("a", "c"), "y lacks the target 'c'"),
        (np.ones((3, 3)), ("a", "b"), "must have the 2 targets"),
    ],
)
def test_what_is_no_table_of_targets_is_refused(y, names, says):
    with pytest.raises(ValueError, match=says):
        read_targets(y, 3, names)


def test_equal_rows_have_equal_keys_and_others_do_not():
    y = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, np.nan], [1.0, np.nan]])
    key = key_of(y)
    assert key[0] == key[2]
    assert key[3] == key[4]
    assert len(set(key.tolist())) == 3


def test_an_average_is_of_what_is_known():
    y = np.array([[0.0, 100.0], [2.0, 300.0], [np.nan, 200.0]])
    found = average_of(y)
    assert found[2] == pytest.approx(0)
    assert found[0] == pytest.approx(-found[1])


def test_an_absurd_value_is_left_out_of_its_target_alone():
    y = np.random.default_rng(0).standard_normal((500, 2))
    y[3, 1] = 1e9
    own = targets(Target(None, None, None), Target(None, None, None))
    with pytest.warns(TargetWarning, match="Target 't1': 1 of 500 training targets is far beyond"):
        found, gone = without_absurd(own, y, np.arange(500))
    assert np.isnan(found[3, 1])
    assert found[3, 0] == y[3, 0]
    assert not gone.any()
