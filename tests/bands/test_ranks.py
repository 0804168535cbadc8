from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from guardband.bands.levels import Levels
from guardband.bands.ranks import (
    average_coverage,
    average_rank,
    coverage_bound,
    marginal_rank,
    order_statistic,
    pac_rank,
    selection_rank,
    simultaneous_bound,
    simultaneous_rank,
)

NINETY = Fraction(9, 10)


def test_rank_equals_integer_arithmetic_for_every_alpha_and_n():
    for thousandths in range(1, 500):
        level = Levels.of(alpha=thousandths / 1000).values[0]
        for n in range(1, 2001):
            assert marginal_rank(level, n) == -(-(1000 - thousandths) * (n + 1) // 1000)


def test_nine_rows_are_the_fewest_at_ninety_percent():
    assert marginal_rank(NINETY, 8) > 8
    assert marginal_rank(NINETY, 9) == 9


def test_pac_rank_of_the_published_sizes():
    assert [pac_rank(NINETY, n, 0.1) for n in (500, 1000, 4000, 25000)] == [460, 913, 3625, 22562]


@pytest.mark.parametrize("n", [21, 22, 50, 500])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_pac_rank_is_the_least_that_meets_delta(n, delta):
    k = pac_rank(NINETY, n, delta)
    assert binom.sf(k - 1, n, 0.9) <= delta or k == n + 1
    assert k == 1 or binom.sf(k - 2, n, 0.9) > delta


def test_pac_needs_twenty_two_rows_at_ninety_percent():
    assert pac_rank(NINETY, 21, 0.1) == 22
    assert pac_rank(NINETY, 22, 0.1) == 22


def test_order_statistic_is_the_sorted_entry_and_infinite_beyond():
    scores = np.random.default_rng(0).random(101)
    assert [order_statistic(scores, k) for k in (1, 50, 101)] == list(np.sort(scores)[[0, 49, 100]])
    assert order_statistic(scores, 102) == np.inf


@pytest.mark.parametrize(("k", "n"), [(9, 10), (451, 500), (10, 10)])
def test_coverage_bound_is_a_beta_quantile(k, n):
    assert coverage_bound(0.1, k, n) == pytest.approx(beta.ppf(0.1, k, n + 1 - k), rel=1e-10)


def test_coverage_bound_at_the_ends():
    assert coverage_bound(0.1, 11, 10) == 1
    assert coverage_bound(0.1, 0, 10) == 0


@pytest.mark.parametrize("candidates", [1, 2, 10])
@pytest.mark.parametrize(("k", "n"), [(450, 500), (19, 20), (20, 20), (1, 20)])
def test_average_coverage_is_its_integral(k, n, candidates):
    integral, _ = quad(
        lambda t: 1 - min(1, candidates * binom.sf(k - 1, n, t)), 0, 1, limit=400, points=[(k - 0.5) / n]
    )
    assert average_coverage(k, n, candidates) == pytest.approx(integral, abs=1e-6)


def test_average_rank_of_the_published_table():
    for n, share in ((500, 0.926), (1000, 0.917), (4000, 0.9085), (25000, 0.9034)):
        assert average_rank(NINETY, n, 10) / n == pytest.approx(share, abs=6e-4)
    assert average_rank(NINETY, 500, 1) == marginal_rank(NINETY, 500)


def test_average_rank_is_the_least_that_reaches_the_level():
    k = average_rank(NINETY, 1000, 10)
    assert average_coverage(k, 1000, 10) >= 0.9 > average_coverage(k - 1, 1000, 10)


def test_selection_rank_asks_for_the_share_itself():
    assert selection_rank(NINETY, 1000) == 900
    assert selection_rank(NINETY, 1001) == 901


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [7, 200, 1500])
def test_simultaneous_bound_holds_for_all_ranks_at_once(n, delta):
    rng, replications = np.random.default_rng(3), 4000
    bounds = np.array([simultaneous_bound(delta, k, n) for k in range(1, n + 1)])
    uniform = np.sort(rng.random((replications, n)), axis=1)  # coverage of every order statistic
    broken = (uniform < bounds).any(axis=1).sum()
    assert broken <= binom.isf(1e-5, replications, delta)
    if n <= 1000:  # exact there
        assert broken >= binom.ppf(1e-5, replications, 0.998 * delta)
    assert simultaneous_bound(delta, n + 1, n) == 1


def test_simultaneous_bound_costs_what_the_theory_says():
    """The losses of THEORY's simulation at levels 0.9 and 0.99; beyond 1,000 rows they are a few percent larger."""
    for n, nine, ninety_nine in ((500, 0.0392, 0.0160), (1000, 0.0278, 0.0108), (4000, 0.0140, 0.0051)):
        for level, loss in ((Fraction("0.9"), nine), (Fraction("0.99"), ninety_nine)):
            found = float(level) - simultaneous_bound(0.1, marginal_rank(level, n), n)
            assert loss - 2e-4 <= found <= loss * (1.05 if n > 1000 else 1) + 2e-4


@pytest.mark.parametrize("n", [30, 500, 5000])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.9])
def test_simultaneous_rank_is_the_least_whose_bound_reaches_the_level(n, delta):
    for level in (Fraction("0.5"), NINETY, Fraction("0.99")):
        k = simultaneous_rank(level, n, delta)
        assert simultaneous_bound(delta, k, n) >= float(level) > simultaneous_bound(delta, k - 1, n)


def test_a_bound_below_the_whole_line_is_below_one():
    assert coverage_bound(1 - 1e-16, 10**6, 10**6) < 1
