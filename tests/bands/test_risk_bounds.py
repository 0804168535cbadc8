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


def stated(n, total, mean):
    """Return the bound on a sum of at most ``total`` by its two formulas, from scipy's binomial and by hand."""
    if total >= n * mean:
        return 1.0
    x = max(total / n, 0.0)
    first = x * math.log(x / mean) if x else 0.0
    second = (1 - x) * math.log((1 - x) / (1 - mean)) if mean < 1 else math.inf
    return min(1.0, math.exp(-n * (first + second)), math.e * stats.binom.cdf(max(math.ceil(total), 0), n, mean))


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_both_bounds_are_their_two_formulas_for_any_sum(n):
    for mean in (0.03, 0.3, 0.5, 0.8, 0.99):
        for total in [*np.linspace(0, n, 25), 0.4, n - 0.4]:
            assert mean_below(n, total, mean) == pytest.approx(stated(n, total, mean), rel=1e-9)
            above = stated(n, n - total, 1 - mean) if total > n * mean else 1.0
            assert mean_above(n, total, mean) == pytest.approx(above, rel=1e-9)
    several = np.array([0.2, 0.4, 0.9])
    assert mean_below(n, 0.3, several).tolist() == [mean_below(n, 0.3, mean) for mean in several]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 45, 200])
def test_the_largest_sum_is_the_last_float_that_is_unlikely(n):
    for mean in (0.01, 0.05, 0.3, 0.7, 0.95):
        for delta in (0.001, 0.05, 0.3, 0.7, 0.95):
            most = most_total(n, mean, delta)
            if most < 0:
                assert most == -1
                assert stated(n, 0.0, mean) > delta
            else:
                assert mean_below(n, most, mean) <= delta < mean_below(n, math.nextafter(most, math.inf), mean)


def test_the_largest_mean_is_the_first_float_that_makes_a_sum_unlikely():
    for n, total, delta in ((1, 0.0, 0.1), (1, 0.5, 0.3), (50, 3.3, 0.1), (500, 0.0, 0.01), (80, 79.5, 0.2)):
        found = largest_mean(n, total, delta)
        assert mean_below(n, total, found) <= delta < mean_below(n, total, math.nextafter(found, 0))
    assert largest_mean(7, 7.0, 0.1) == largest_mean(7, 7.5, 0.1) == 1


@pytest.mark.parametrize("cap", [0.7, 1, 2.5, 100])
def test_given_the_data_the_budget_is_the_largest_sum_in_units_of_the_cap_rounded_down(cap):
    signs = set()
    for n in (1, 9, 22, 44, 45, 46, 100, 700):
        for share in (0.05, 0.3):
            most, budget = most_total(n, share * cap / cap, 0.1), risk_budget(share * cap, cap, n, 0.1)
            signs.add(np.sign(budget))
            if most < 0:
                assert budget == -cap
            else:
                exact = Fraction(cap) * Fraction(most)
                assert Fraction(budget) <= exact
                assert budget == pytest.approx(cap * most, rel=1e-14)
    assert {-1, 1} <= signs


@pytest.mark.parametrize("delta", [None, 0.5, 0.1, 0.01])
def test_the_rows_needed_are_found_by_counting(delta):
    for limit, cap in ((5, 100), (0.1, 1), (0.7, 0.9), (9.5, 10), (0.3, 1), (0.5, 1)):
        every = (n for n in range(1, 1000) if risk_budget(limit, cap, n, delta) >= 0)
        assert risk_rows(limit, cap, delta) == next(every)


def test_the_p_value_is_the_least_sum_of_both_chances_over_256_risks():
    for n, budget, m, total in (
        (50, 3.0, 40, 9.0),
        (50, 0.0, 40, 2.5),
        (50, -1.0, 40, 40.0),
        (1, 0.3, 5, 5.0),
        (900, 88.2, 300, 41.7),
        (10**6, 0.0, 5, 5.0),  # the first of the 256 is the best
        (20, 2.0, 3, 0.5),  # none says anything
    ):
        low, high = max(budget, 0) / n, total / m
        risks = [low + (high - low) * i / 256 for i in range(1, 257)]
        sums = [stated(n, max(budget, 0), risk) + stated(m, m - total, 1 - risk) for risk in risks]
        assert excess_p_value(n, budget, m, total) == pytest.approx(min(1.0, *sums), rel=1e-6)
    assert excess_p_value(50, 5.0, 40, 4.0) == excess_p_value(50, 5.0, 40, 3.0) == 1


def test_a_sum_that_cannot_be_is_as_unlikely_as_the_largest_that_can():
    for mean in (0.2, 0.7):
        assert (
            mean_above(5, 6.2, mean) == mean_above(5, 5.4, mean) == mean_above(5, 5.0, mean) == pytest.approx(mean**5)
        )
        assert mean_below(5, -1.2, mean) == mean_below(5, 0.0, mean) == pytest.approx((1 - mean) ** 5)
        assert mean_below(5, 6.2, mean) == 1
