"""Weights by a classifier: near the truth where it is known, limited, and kept as plain arrays."""

import numpy as np
import pytest

from guardband.learning.density_ratio import MOST, REACHED_BY, DensityRatio, some_rows


def rows(n, seed, shifted=False, d=3):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d)).astype(np.float32)
    x[:, 0] = x[:, 0] ** (1 / 3) if shifted else x[:, 0]
    return x


def error(weights, exact):
    return np.abs(weights / weights.mean() - exact / exact.mean()).mean() / 2


@pytest.fixture(scope="module")
def ratio():
    return DensityRatio.learn(rows(2000, 0), rows(1500, 1, shifted=True))


def test_weights_come_near_the_ratio_of_densities(ratio):
    new = rows(4000, 2)
    exact = 3 * new[:, 0] ** 2
    assert error(ratio.weights(new), exact) < error(np.ones(4000), exact) / 4
    assert ratio.weights(new).mean() == pytest.approx(1, abs=0.1)


def test_without_a_difference_weights_are_nearly_equal():
    same = DensityRatio.learn(rows(2000, 0), rows(1500, 1))
    assert error(same.weights(rows(4000, 2)), np.ones(4000)) < 0.03


def test_indices_of_categories_are_told_apart():
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 100, (3000, 1)), rng.integers(0, 50, (3000, 1))
    both = [np.concatenate([rows(3000, i), own.astype(np.float32)], axis=1) for i, own in enumerate((source, target))]
    found = DensityRatio.learn(*both, sizes=(100,))
    weights = found.weights(both[0])
    assert weights[source[:, 0] < 36].mean() > 3 * weights[(source[:, 0] >= 50) & (source[:, 0] < 64)].mean()


def test_weights_are_limited_to_what_some_training_rows_reach(ratio):
    new = rows(4000, 3)
    above = np.exp(ratio.log_ratios(new)) > ratio.largest
    assert ratio.weights(new).max() == ratio.largest
    assert 0 < above.sum() < 4 * REACHED_BY * 4000 / 2000
    assert (ratio.weights(new)[above] == ratio.largest).all()


def test_arrays_hold_all_of_it_and_others_are_refused(ratio):
    arrays = ratio.to_arrays()
    again = DensityRatio.from_arrays(arrays, 3, ())
    assert (again.weights(rows(50, 4)) == ratio.weights(rows(50, 4))).all()
    for changed, words in (
        ({"center": np.zeros(4)}, "other columns"),
        ({"coefficients": np.full(len(arrays["coefficients"]), np.nan)}, "infinity or NaN"),
        ({"scale": np.zeros(3)}, "not positive"),
        ({"numbers": np.array([0.0, -1.0])}, "not positive"),
        ({"more": np.zeros(1)}, "other columns"),
    ):
        with pytest.raises(ValueError, match=words):
            DensityRatio.from_arrays(arrays | changed, 3, ())


def test_the_same_rows_give_the_same_weights_and_many_are_drawn_from():
    one, other = (DensityRatio.learn(rows(100, 0), rows(100, 1, True)).coefficients for _ in range(2))
    assert (one == other).all()
    assert len(some_rows(np.arange(MOST + 5), np.random.default_rng(0))) == MOST
