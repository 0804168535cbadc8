import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, betabinom, binom

from guardband.bands.levels import Levels
from guardband.bands.ranks import (
    _least,
    average_coverage,
    average_rank,
    binomial_counts,
    coverage_bound,
    covered_counts,
    marginal_rank,
    order_statistic,
    pac_rank,
    selection_rank,
    shared_coverage_bound,
    shared_order_statistic,
    shared_simultaneous_bound,
    simultaneous_bound,
    simultaneous_rank,
    spread_ranks,
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
    for n in (2, 5, 40, 300):
        scores = np.random.default_rng(n).standard_normal(n)
        assert [order_statistic(scores, k) for k in range(1, n + 1)] == sorted(scores.tolist())


def test_of_zeros_with_a_sign_the_positive_one_is_taken():
    for zeros in ([-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]):
        assert [math.copysign(1, order_statistic(np.array(zeros), k)) for k in (1, 2)] == [1, 1]


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


@pytest.mark.parametrize(("n", "most"), [(7, 5), (11, 4), (1000, 7), (23, 22), (6, 6), (5, 9)])
def test_spread_ranks_are_the_middles_of_equal_shares(n, most):
    """The middle of share i of ``most`` is (2 i + 1) / 2 shares of n rows; the rank is the first that reaches it."""
    middles = [math.ceil(Fraction(2 * i + 1, 2) * Fraction(n, most)) for i in range(most)]
    assert spread_ranks(n, most).tolist() == (list(range(1, n + 1)) if n <= most else middles)


@pytest.mark.parametrize("level", ["0.9", "0.95", "0.7", "0.35"])
def test_average_rank_of_one_network_is_exact_and_of_two_is_the_least_that_reaches_the_level(level):
    share = Fraction(level)
    for n in range(1, 120):
        assert average_rank(share, n, 1) == math.ceil(share * (n + 1))
        k = average_rank(share, n, 2)
        assert k > n or average_coverage(k, n, 2) >= float(share)
        assert k == 1 or average_coverage(k - 1, n, 2) < float(share)


def test_every_order_statistic_is_the_sorted_entry():
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 20, 200):
        scores = rng.random(n)
        assert [order_statistic(scores, k) for k in range(1, n + 1)] == np.sort(scores).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_shared_order_statistic_adds_weights_in_exact_fractions(seed):
    """Weights such as 1/3 + 1/3 + 1/3 reach 1 exactly, where a sum of floats may fall short of it or exceed it."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(12), rng.choice([1, 3, 6, 7, 49], 12))
    scores = rng.random(len(entity))
    sizes = np.bincount(entity)
    order = np.argsort(scores)
    sums = list(itertools.accumulate(Fraction(1, int(sizes[entity[i]])) for i in order))
    wanted = [*sums, *(s + Fraction(1, 10**18) for s in sums[:-1]), *(s - Fraction(1, 10**18) for s in sums)]
    for weight in wanted:
        at = next(i for i, total in enumerate(sums) if total >= weight)
        assert shared_order_statistic(scores, entity, weight) == scores[order[at]]
    assert shared_order_statistic(scores, entity, Fraction(12) + Fraction(1, 10**18)) == np.inf


@pytest.mark.parametrize(("k", "n"), [(90, 100), (10, 100), (100, 100), (1800, 2000)])
def test_the_bound_for_shares_at_every_rank_is_where_the_gap_has_probability_delta(k, n):
    """e 2 exp(-2 n gap^2) = delta at the gap between k / n and the bound; no bound is below 0."""
    for delta in (0.01, 0.1, 0.5):
        bound = shared_simultaneous_bound(delta, k, n)
        assert bound >= 0
        if bound > 0:
            assert math.e * 2 * math.exp(-2 * n * (k / n - bound) ** 2) == pytest.approx(delta, rel=1e-9)
        else:
            assert math.e * 2 * math.exp(-2 * n * (k / n) ** 2) >= delta
    assert shared_simultaneous_bound(0.1, n + 1, n) == 1


def test_the_least_rank_is_found_wherever_it_is():
    for n in range(1, 12):
        for k in range(1, n + 2):
            asked = []
            assert _least(lambda own, k=k, asked=asked: asked.append(own) or own >= k, n) == k
            assert all(1 <= own <= n for own in asked)


def test_counts_are_probabilities():
    for counts in (covered_counts(30_000, 22_501, 25_000), covered_counts(5000, 3, 4000), covered_counts(7, 1, 1)):
        assert counts.max() <= 1
        assert counts.min() >= 0


def test_counts_are_the_two_laws_of_scipy():
    for m, k, n in ((7, 3, 9), (40, 45, 50), (3, 1, 1), (25, 50, 50), (60, 1, 4)):
        np.testing.assert_allclose(covered_counts(m, k, n), betabinom.cdf(np.arange(m + 1), m, k, n + 1 - k), rtol=1e-9)
    assert covered_counts(4, 10, 9).tolist() == [0, 0, 0, 0, 1]  # all are covered
    assert covered_counts(4, 0, 9).tolist() == [1, 1, 1, 1, 1]  # at least none is
    for m, share in ((1, 0.3), (40, 0.9), (25, 0.001)):
        np.testing.assert_allclose(binomial_counts(m, share), binom.cdf(np.arange(m + 1), m, share), rtol=1e-9)
    assert binomial_counts(3, 1.0).tolist() == [0, 0, 0, 1]


def test_the_bound_for_shares_is_that_of_rows_at_delta_over_e():
    for k, n in ((9, 10), (1, 10), (451, 500)):
        assert shared_coverage_bound(0.1, k, n) == pytest.approx(beta.ppf(0.1 / math.e, k, n + 1 - k), rel=1e-9)


def test_no_candidate_and_no_rank_have_the_coverage_of_their_ends():
    assert average_coverage(0, 20, 3) == 0
    assert average_coverage(21, 20, 3) == 1
    assert average_coverage(20, 20, 1) == pytest.approx(20 / 21)
    assert average_coverage(1, 20, 1) == pytest.approx(1 / 21)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_pac_ranks_are_those_of_counting_up(n):
    for level in ("0.05", "0.5", "0.9", "0.99"):
        for delta in (1e-6, 0.1, 0.9):
            counted = next((k for k in range(1, n + 1) if binom.sf(k - 1, n, float(level)) <= delta), n + 1)
            assert pac_rank(Fraction(level), n, delta) == counted


def test_a_rank_on_average_is_exact_for_one_network_and_takes_a_coverage_that_equals_the_level():
    """A level just above a half needs one row more than a half. Two networks and one row cover exactly a quarter."""
    above = Fraction(1, 2) + Fraction(1, 10**18)
    assert [average_rank(level, 9, 1) for level in (Fraction(1, 2), above)] == [5, 6]
    assert average_coverage(1, 1, 2) == 0.25
    assert [average_rank(level, 1, 2) for level in (Fraction(1, 4), Fraction(1, 4) + Fraction(1, 1000))] == [1, 2]
