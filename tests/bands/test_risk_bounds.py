"""The bounds behind a risk: never below an exact law, and the off-by-one that a budget must not have."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from guardband.bands.ranks import pac_rank
from guardband.bands.risk_bounds import (
    excess_p_value,
    largest_mean,
    mean_above,
    mean_below,
    most_total,
    risk_budget,
    risk_rows,
)


@pytest.mark.parametrize("n", [5, 40, 300])
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_the_bound_is_never_below_the_chance_of_a_count(n, mean):
    for count in range(n + 1):
        assert mean_below(n, count, mean) >= stats.binom.cdf(count, n, mean) - 1e-12
        assert mean_above(n, count, mean) >= stats.binom.sf(count - 1, n, mean) - 1e-12


def test_the_bound_is_the_least_of_hoeffding_and_bentkus():
    n, total, mean = 50, 3.4, 0.2
    x = total / n
    entropy = x * math.log(x / mean) + (1 - x) * math.log((1 - x) / (1 - mean))
    wanted = min(math.exp(-n * entropy), math.e * stats.binom.cdf(4, n, mean))
    assert mean_below(n, total, mean) == pytest.approx(wanted)
    assert mean_below(n, n * mean, mean) == 1


@pytest.mark.parametrize(("n", "mean", "delta"), [(50, 0.1, 0.1), (500, 0.05, 0.01), (2000, 0.3, 0.2), (40, 0.9, 0.5)])
def test_the_largest_sum_is_unlikely_and_no_larger_one_is(n, mean, delta):
    most = most_total(n, mean, delta)
    assert mean_below(n, most, mean) <= delta < mean_below(n, most + 1e-6, mean)


@pytest.mark.parametrize(("n", "total", "delta"), [(50, 3.0, 0.1), (500, 0.0, 0.01), (7, 7.0, 0.1)])
def test_the_largest_mean_is_where_the_sum_becomes_unlikely(n, total, delta):
    found = largest_mean(n, total, delta)
    if total == n:
        assert found == 1
    else:
        assert mean_below(n, total, found) <= delta < mean_below(n, total, found - 1e-9)


def test_on_average_the_budget_leaves_room_for_one_more_row_of_size_cap():
    assert risk_budget(0.1, 1, 19) == 1
    assert risk_budget(0.3, 2, 20) == pytest.approx(4.3)
    for n in range(1, 200):
        exact = Fraction("0.07") * (n + 1) - Fraction("1.3")
        found = Fraction(risk_budget(0.07, 1.3, n))
        assert found <= exact < Fraction(math.nextafter(float(found), math.inf))


def test_given_the_data_the_budget_is_below_that_of_the_exact_law_of_counts():
    for n in (50, 300, 2000):
        misses = n - pac_rank(Fraction(9, 10), n, 0.1)
        budget = risk_budget(0.1, 1, n, 0.1)
        assert misses - 0.05 * n - 2 < budget
        assert math.floor(budget) <= misses


@pytest.mark.parametrize("delta", [None, 0.1, 0.01])
def test_the_rows_needed_are_the_fewest_with_a_budget(delta):
    for limit, cap in ((5, 100), (0.1, 1), (0.7, 0.9)):
        n = risk_rows(limit, cap, delta)
        assert risk_budget(limit, cap, n, delta) >= 0
        assert n == 1 or risk_budget(limit, cap, n - 1, delta) < 0
    assert risk_rows(5, 100) == 19
    assert risk_rows(5, 100, 0.1) == math.ceil(math.log(0.1) / math.log(0.95))


@pytest.mark.parametrize(("n", "misses", "m"), [(19, 1, 30), (99, 9, 400), (999, 99, 2000)])
def test_the_p_value_holds_over_both_samples(n, misses, m):
    """With a loss of 1 for a miss the risk is Beta(misses + 1, n - misses): the law of the total is exact."""
    law = stats.betabinom(m, misses + 1, n - misses)
    found = np.array([excess_p_value(n, misses, m, total) for total in range(m + 1)])
    chances = law.pmf(np.arange(m + 1))
    for level in (0.2, 0.05, 0.01, 0.001):
        assert chances[found <= level].sum() <= level
    assert found[0] == 1
    assert found[-1] < 0.05
