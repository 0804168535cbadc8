"""Small trees that stand in for the networks."""

import numpy as np

from guardband.learning.proxy import Inputs


def test_a_column_without_values_where_trees_train_is_left_out():
    """In a table of polls, two columns had 30 values in 4,208 rows: folds had none, and scikit-learn refused them."""
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=200), np.full(200, np.nan)], axis=1)
    x[150:, 1] = rng.normal(size=50)
    y, trains = 3 * x[:, 0] + 0.1 * rng.normal(size=200), np.arange(200) < 150
    inputs = Inputs(x, np.array([False, False]))
    expected = inputs.only([True, False]).errors_of(y, trains)
    np.testing.assert_array_equal(inputs.errors_of(y, trains), expected)
    assert np.isfinite(inputs.errors(y, np.arange(200) // 50)).all()
    np.testing.assert_array_equal(inputs.only([False, True]).errors_of(y, trains), y - y[trains].mean())
