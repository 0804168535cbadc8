import numpy as np
import pytest

from guardband.data.row_numbers import rows_known_as
from guardband.data.table import read_table
from guardband.data.target import Target
from guardband.exceptions import TargetWarning
from guardband.learning.architecture import Architecture
from guardband.learning.training_rows import TrainingRows

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((500, 2))
PRICES = np.exp(13 + 0.5 * RANDOM.standard_normal(500))
SHAPE = Architecture((4,), "relu", 0.0, "softplus")
PLAIN = Target(None, None, None)


def rows_of(y, target=PLAIN, weight=None, rows=None):
    return TrainingRows.of(read_table(X[: len(y)]), y, weight, 0, SHAPE, target, rows)


def test_clean_targets_are_all_learnt_from():
    own = rows_of(PRICES)
    assert own.kept.tolist() == list(range(500))
    np.testing.assert_array_equal(own.y, PLAIN.learn(PRICES).to_learn(PRICES))


@pytest.mark.parametrize("value", [1e12, -1e12, 1e300, -1.7e308])
def test_absurd_targets_are_left_out(value):
    y = PRICES.copy()
    y[[5, 90]] = value
    with pytest.warns(TargetWarning, match=r"2 of 500 training targets are far beyond.*in row 5, .*in row 90\. guardb"):
        own = rows_of(y, weight=np.arange(500.0))
    assert own.kept.tolist() == np.delete(np.arange(500), [5, 90]).tolist()
    np.testing.assert_array_equal(own.y, PLAIN.learn(y[own.kept]).to_learn(y[own.kept]))
    assert len(own.x) == len(own.weight) == 498
    assert np.isfinite(own.y.astype(np.float32)).all()


def test_they_are_looked_for_on_the_scale_that_is_learnt():
    y = PRICES.copy()
    y[5] = 1e9
    assert len(rows_of(y, Target("log", None, None)).x) == 500


def test_rows_are_named_by_the_users_numbers():
    y = PRICES.copy()
    y[3] = 1e12
    words = r'1 of 500 .* is far beyond all others: 1,000,000,000,000 in row 1007\. .*train on it.*"log1p"'
    with rows_known_as(np.arange(4000) + 1), pytest.warns(TargetWarning, match=words):
        rows_of(y, rows=np.arange(1003, 1503))
    with rows_known_as(np.array([10, 20])), pytest.raises(ValueError, match="see row 20"):
        Target(None, 0, None).to_work(np.array([1.0, -1.0]))
