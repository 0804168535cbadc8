"""Rows are split by what they hold: not by their order, their file or the order of columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

from guardband.data.hash_split import HashSplit
from guardband.data.table import read_table


def rows(n=4000, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": random.standard_normal(n), "who": random.integers(0, 200, n).astype(str)})
    return frame, random.standard_normal(n)


def prints(split, frame, y):
    return split.prints(read_table(frame), np.asarray(y))


@pytest.mark.parametrize("several", [False, True])
def test_the_split_and_the_order_depend_on_the_rows_alone(several):
    frame, y = rows()
    if several:
        y = np.stack([y, np.where(y > 1, np.nan, frame["x"])], axis=1)
    split, mixed = HashSplit(0, 0.25), np.random.default_rng(1).permutation(len(y))
    one = prints(split, frame, y)
    other = prints(split, frame.iloc[mixed][["who", "x"]], y[mixed])
    np.testing.assert_array_equal(one[mixed], other)
    np.testing.assert_array_equal(split.calibrates(one)[mixed], split.calibrates(other))
    np.testing.assert_array_equal(y[split.order(one, y)], y[mixed][split.order(other, y[mixed])])


def test_equal_rows_stay_together_and_so_do_equal_keys():
    frame, y = rows()
    twice = pd.concat([frame, frame.astype({"x": np.float32})], ignore_index=True)
    split = HashSplit(0, 0.25)
    one, other = np.split(split.calibrates(prints(split, twice, np.r_[y, y])), 2)
    np.testing.assert_array_equal(one, other)
    by_key = HashSplit(0, 0.25, ("who",))
    calibrates = pd.Series(by_key.calibrates(prints(by_key, frame, y)))
    assert (calibrates.groupby(frame["who"]).nunique() == 1).all()
    assert 0 < calibrates.mean() < 1


@pytest.mark.parametrize("seed", range(3))
def test_shares_and_folds_are_those_of_a_fair_draw(seed):
    frame, y = rows(20_000)
    split = HashSplit(seed, 0.3)
    known = prints(split, frame, y)
    calibrates = split.calibrates(known)
    assert 1e-4 < binom.cdf(calibrates.sum(), len(y), 0.3) < 1 - 1e-4
    for some in (known[calibrates], known[~calibrates]):
        counts = np.bincount(split.folds(some, 8), minlength=8)
        expected = len(some) / 8
        assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 7) > 1e-4
    assert 1e-4 < binom.cdf(split.sampled(known, 0.1).sum(), len(y), 0.1) < 1 - 1e-4


def test_another_seed_splits_otherwise():
    frame, y = rows()
    one, other = (HashSplit(seed, 0.5) for seed in (0, 1))
    same = (one.calibrates(prints(one, frame, y)) == other.calibrates(prints(other, frame, y))).mean()
    assert 0.45 < same < 0.55  # 4000 fair coins lie outside once in 10^9
