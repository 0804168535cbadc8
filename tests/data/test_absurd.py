import numpy as np
import pytest

from guardband.data.absurd import CHANCE, absurd


def prices(n=2000, seed=0):
    return np.exp(13 + 0.5 * np.random.default_rng(seed).standard_normal(n))


WRONG = [1e12, -1e12, 1e300, -1.7e308, 999_999_999.0]


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("count", [1, 10])
def test_a_few_values_beyond_all_others_are_found(value, count):
    y = prices()
    y[5 : 5 + count] = value
    np.testing.assert_array_equal(np.flatnonzero(absurd(y)), np.arange(5, 5 + count))


def test_absurd_values_on_both_sides_and_far_apart_are_all_found():
    y = prices()
    y[[3, 4, 5, 6]] = 1e300, -1e12, 1e10, -1e300
    np.testing.assert_array_equal(np.flatnonzero(absurd(y)), [3, 4, 5, 6])


def test_small_tables_have_absurd_values_too():
    y = prices(40)
    y[7] = 1e12
    assert np.flatnonzero(absurd(y)).tolist() == [7]


def claims(random, n):
    return np.where(random.random(n) < 0.95, 0.0, np.exp(7 + 2 * random.standard_normal(n)))


TAILS = {
    "normal": lambda random, n: random.standard_normal(n),
    "lognormal, sigma 3": lambda random, n: np.exp(3 * random.standard_normal(n)),
    "Cauchy": lambda random, n: random.standard_cauchy(n),
    "claims, 95% zeros": claims,
    "counts": lambda random, n: random.negative_binomial(0.1, 0.001, n).astype(float),
    "rare ones": lambda random, n: (random.random(n) < 0.003).astype(float),
    "99.5% zeros": lambda random, n: np.where(random.random(n) < 0.995, 0, random.random(n) * 100),
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("n", [60, 1000])
def test_heavy_tails_are_left_alone(tail, n):
    """Ten spacings are looked at with n = 1,000, each found wide with at most this chance: 500 tables, 1e-5."""
    from scipy.stats import binom

    random = np.random.default_rng(1)
    found = sum(absurd(TAILS[tail](random, n)).any() for _ in range(500))
    assert found <= binom.isf(1e-5, 500, CHANCE * max(1, n // 100))


def test_more_than_a_hundredth_belongs_to_the_target():
    y = prices()
    y[:25] = 1e12
    assert not absurd(y).any()


@pytest.mark.parametrize("y", [np.full(50, 7.0), np.zeros(50), np.r_[np.zeros(50), 1e12], np.array([1.0, 2.0, 1e12])])
def test_without_a_spread_nothing_is_absurd(y):
    assert not absurd(y).any()
