import math

import numpy as np
import pytest
from scipy.special import betaincinv, gammaln
from scipy.stats import binom

from guardband.bands.simultaneous import _some_fail, _some_fail_at_most, delta_for_each_rank


def bounds_at(n, eta):
    k = np.arange(1, n + 1)
    return betaincinv(k, n + 1 - k, eta)


@pytest.mark.parametrize("eta", [0.001, 0.05, 0.4])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_exact_law_is_the_determinant_of_steck(n, eta):
    """P(U_(k) >= b_k for all k) = n! det((1 - b_j)^(j - i + 1) / (j - i + 1)!), with 0 below the subdiagonal."""
    above = 1 - bounds_at(n, eta)
    matrix = np.zeros((n, n))
    for i in range(n):
        for j in range(max(0, i - 1), n):
            matrix[i, j] = above[j] ** (j - i + 1) / math.factorial(j - i + 1)
    assert _some_fail(n, eta) == pytest.approx(1 - math.factorial(n) * np.linalg.det(matrix), abs=1e-12)


def test_exact_law_is_that_of_uniform_numbers():
    n, replications, rng = 1000, 4000, np.random.default_rng(0)
    uniform = np.sort(rng.random((replications, n)), axis=1)
    for eta in (0.0005, 0.003, 0.03, 0.15):
        failed = int((uniform < bounds_at(n, eta)).any(axis=1).sum())
        low, high = binom.ppf([1e-5, 1 - 1e-5], replications, _some_fail(n, eta))
        assert low <= failed <= high


@pytest.mark.parametrize("n", [60, 300, 1000])
def test_what_is_used_for_many_rows_is_above_the_exact_law_and_close(n):
    for eta in (1e-9, 1e-4, 0.003, 0.05, 0.2):
        exact, bound = _some_fail(n, eta), _some_fail_at_most(n, eta)
        assert exact <= bound
        if exact <= 0.1:
            assert bound <= 1.25 * exact


@pytest.mark.parametrize("n", [1001, 20_000])
def test_the_sum_over_some_ranks_is_above_the_sum_over_all(n):
    k = np.arange(1, n + 1)
    for eta in (1e-6, 0.002, 0.05):
        bounds = bounds_at(n, eta)
        slopes = np.diff(bounds, append=1)
        assert np.diff(slopes[:-1]).min() > -1e-15  # convex, as its proof needs
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        last = np.exp(ways + k * np.log(bounds) + (n - k) * np.log1p(-bounds))
        every = (last * (1 - (n - k) * slopes / (1 - bounds))).sum()
        assert every <= _some_fail_at_most(n, eta) <= 1.06 * every


@pytest.mark.parametrize("n", [1, 2, 5, 100, 1000, 1001, 10**5, 10**7])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_any_delta_and_any_number_of_rows_has_its_eta(n, delta):
    eta = delta_for_each_rank(n, delta)
    assert delta / n <= eta <= delta
    if n > 1 and 1e-200 < delta < 0.9:
        fail = _some_fail(n, eta) if n <= 1000 else _some_fail_at_most(n, eta)
        assert 0.998 * delta <= fail <= delta


@pytest.mark.parametrize("n", [1001, 2000, 20_001, 10**6])
@pytest.mark.parametrize("eta", [1e-9, 0.002, 0.05])
def test_the_sum_over_some_ranks_is_the_trapezoidal_rule_at_ranks_two_percent_apart(n, eta):
    ranks, k = {1, n}, 1
    while k < n // 2:
        k = min(n // 2, max(k + 1, math.floor(1.02 * k)))
        ranks |= {k, n + 1 - k}
    ranks, total, before, bound_before = sorted(ranks), 0.0, 0, 0.0
    for i, k in enumerate(ranks):
        bound = float(betaincinv(k, n + 1.0 - k, eta))
        slope = (bound - bound_before) / (k - before)
        after = ranks[i + 1] if i + 1 < len(ranks) else n + 1
        none_later = max(0.0, 1 - (n - k) * slope / (1 - bound))
        total += (after - before) / 2 * binom.pmf(k, n, bound) * none_later
        before, bound_before = k, bound
    assert _some_fail_at_most(n, eta) == pytest.approx(total, rel=1e-6)


def test_bounds_that_are_not_convex_are_told():
    """Where eta is large the bounds rise steeply first: then the proof does not hold, and nothing is used."""
    for n in (1001, 20_000):
        for eta in (0.3, 0.5, 0.6, 0.7, 0.9, 0.999999):
            bounds = bounds_at(n, eta)
            convex = np.diff(np.diff(bounds, prepend=0)).min() > -1e-9 / n
            assert np.isinf(_some_fail_at_most(n, eta)) == (not convex)


@pytest.mark.parametrize("n", [2, 50, 1001])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_eta_is_the_first_step_that_uses_delta_up_to_a_thousandth(n, delta):
    fails = _some_fail if n <= 1000 else _some_fail_at_most
    eta = delta / n
    while fails(n, eta) < 0.999 * delta:
        eta *= delta / fails(n, eta)
    assert delta_for_each_rank(n, delta) == pytest.approx(eta, rel=1e-12)


def test_no_row_and_next_to_no_delta_have_their_eta():
    assert delta_for_each_rank(0, 0.1) == 0.1
    assert 0 <= delta_for_each_rank(50, 5e-324) <= 5e-324


def test_a_billion_rows_have_more_than_bonferronis_share():
    """Slopes then differ by less than a millionth from one rank to the next."""
    assert 1e-4 < delta_for_each_rank(10**9, 0.1) < 0.1
