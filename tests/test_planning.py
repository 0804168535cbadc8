from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom

from guardband import planning
from guardband.bands.levels import Levels
from guardband.bands.ranks import average_coverage, pac_rank

SIZES = (100, 500, 1000, 4000, 25000)


def test_epsilon_of_the_published_table():
    paper = [planning.theorem2_epsilon(n, 0.1, 10) for n in SIZES]
    union = [planning.pav_epsilon(0.9, n, 0.1, 10) for n in SIZES]
    free = [planning.pav_epsilon(0.9, n, 0.1) for n in SIZES]
    conformal = [planning.conformal_epsilon(0.9, n, 0.1) for n in SIZES]
    np.testing.assert_allclose(paper, [0.1517, 0.0679, 0.0480, 0.0240, 0.0096], atol=5e-5)
    np.testing.assert_allclose(union, [0.0913, 0.0355, 0.0242, 0.0116, 0.0045], atol=5e-5)
    np.testing.assert_allclose(free, [0.0499, 0.0194, 0.0133, 0.0064, 0.0025], atol=5e-5)
    np.testing.assert_allclose(conformal, [0.0384, 0.0173, 0.0122, 0.0061, 0.0024], atol=5e-5)


def test_rows_of_theorem_2():
    assert [planning.theorem2_rows(e, 0.1, 10) for e in (0.05, 0.02, 0.01)] == [922, 5757, 23026]
    for n in (50, 1000):
        assert planning.theorem2_rows(planning.theorem2_epsilon(n, 0.1, 10), 0.1, 10) in (n, n + 1)


@pytest.mark.parametrize(("candidates", "published"), [(10, [247, 1393, 5166]), (1, [85, 407, 1595])])
def test_rows_of_pav_are_enough_from_there_on(candidates, published):
    # The published sizes lie on the saw-tooth between the first n that holds and the one from which all hold.
    for epsilon, near in zip((0.05, 0.02, 0.01), published, strict=True):
        n = planning.pav_rows(0.9, epsilon, 0.1, candidates)
        first = next(m for m in range(9, n + 1) if planning.pav_epsilon(0.9, m, 0.1, candidates) <= epsilon)
        assert first <= near <= n
        later = np.arange(n, n + 300)
        k = np.ceil(0.9 * later - 1e-9)
        assert (0.9 - beta.ppf(0.1 / candidates, k, later + 1 - k) <= epsilon + 1e-12).all()
        assert planning.pav_epsilon(0.9, n - 1, 0.1, candidates) > epsilon


def test_rows_of_conformal_are_enough_from_there_on():
    for epsilon, near in ((0.05, 52), (0.02, 316), (0.01, 1433)):
        n = planning.conformal_rows(0.9, epsilon, 0.1)
        first = next(m for m in range(9, n + 1) if planning.conformal_epsilon(0.9, m, 0.1) <= epsilon)
        assert first <= near <= n
        assert planning.conformal_epsilon(0.9, n, 0.1) <= epsilon < planning.conformal_epsilon(0.9, n - 1, 0.1)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_fewest_rows_for_a_finite_interval(level):
    n = planning.marginal_rows(level)
    assert np.ceil(level * (n + 1) - 1e-9) <= n < np.ceil(level * n - 1e-9) + 1
    m = planning.pac_rows(level, 0.1)
    assert binom.sf(m - 1, m, level) <= 0.1 + 1e-12
    assert level ** (m - 1) > 0.1


def test_corollary_is_vacuous_below_1050_rows():
    assert planning.corollary_epsilon(0.9, 1040, 10) is None
    assert planning.corollary_epsilon(0.9, 1060, 10) is not None


def test_corollary_epsilon_is_the_least_its_rows_allow():
    for n, published in ((4000, 0.0540), (25000, 0.0231)):
        epsilon = planning.corollary_epsilon(0.9, n, 10)
        assert epsilon == pytest.approx(published, abs=5e-5)
        assert planning.corollary_rows(0.9, epsilon, 10) <= n < planning.corollary_rows(0.9, epsilon * 0.999, 10)


def test_corollary_refuses_an_epsilon_beyond_alpha():
    with pytest.raises(ValueError, match="between 0 and 1 - level"):
        planning.corollary_rows(0.9, 0.1, 10)


def test_sharp_average_needs_far_fewer_rows_than_the_corollary():
    n = planning.average_rows(0.9, 0.02, 10)
    assert n < planning.corollary_rows(0.9, 0.02, 10) / 10
    for later in range(n, n + 200):
        assert average_coverage(int(np.ceil(0.92 * later - 1e-9)), later, 10) >= 0.9


def test_fewest_rows_for_average_coverage():
    n = planning.average_fewest_rows(0.9, 10)
    assert average_coverage(n, n, 10) >= 0.9 > average_coverage(n - 1, n - 1, 10)
    assert planning.average_fewest_rows(0.9, 1) == planning.marginal_rows(0.9)
    assert planning.corollary_fewest_rows(0.9, 10) == pytest.approx(1050, abs=10)


def test_pac_rows_of_a_level_next_to_one():
    assert planning.pac_rows(1 - Fraction(1, 10**17), 0.1) == pytest.approx(np.log(10) * 1e17)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("epsilon", [0.2, 0.05, 0.01, 0.005])
def test_rows_of_conformal_by_brute_force(level, epsilon, delta):
    fewest, enough = planning.marginal_rows(level), planning.theorem2_rows(epsilon, delta, 1)
    n = np.arange(fewest, max(enough, fewest + 200))
    k = np.ceil(level * (n + 1) - 1e-9)
    failing = n[level - beta.ppf(delta, k, n + 1 - k) > epsilon]
    expected = failing[-1] + 1 if len(failing) else fewest
    assert planning.conformal_rows(level, epsilon, delta) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: planning.pav_rows(0.9, 0, 0.1),
        lambda: planning.conformal_rows(0.9, 0, 0.1),
        lambda: planning.average_rows(0.9, 0.2, 10),
        lambda: planning.theorem2_rows(0.01, 90, 10),
        lambda: planning.pav_epsilon(0.9, 100, 2),
        lambda: planning.pav_epsilon(0.9, 100, 0.1, candidates=0),
        lambda: planning.marginal_rows([0.9, 0.99]),
    ],
)
def test_what_cannot_be_planned_is_refused(call):
    with pytest.raises(ValueError, match=r"must|one level"):
        call()


def test_fewest_rows_agree_with_the_rank_at_exact_boundaries():
    for level, delta in ((0.58, 0.58**5), (0.9, 0.9**3), (0.5, 0.125)):
        n = planning.pac_rows(level, delta)
        exact = Levels.of(level).values[0]
        assert pac_rank(exact, n, delta) <= n
        assert pac_rank(exact, n - 1, delta) > n - 1


def test_groups_need_the_rows_of_one_with_its_share_of_delta():
    """Each promise is finite from so many rows on, and not with one less; all groups share delta."""
    for groups in (1, 5, 40):
        assert planning.group_rows(0.9, groups) == planning.marginal_rows(0.9)
        n = planning.group_rows(0.9, groups, delta=0.1)
        assert pac_rank(Fraction(9, 10), n, 0.1 / groups) <= n
        assert pac_rank(Fraction(9, 10), n - 1, 0.1 / groups) > n - 1
        within = planning.group_rows(0.9, groups, delta=0.1, epsilon=0.03)
        assert planning.conformal_epsilon(0.9, within, 0.1 / groups) <= 0.03
    for wrong in ({"groups": 0}, {"groups": 2, "epsilon": 0.1}, {"groups": 2, "delta": 1.0}):
        with pytest.raises(ValueError, match=r"groups must be|Give delta too|delta must lie"):
            planning.group_rows(0.9, **wrong)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_rows_in_all_are_the_fewest_that_give_a_group_its_own(share):
    n = planning.rows_in_all(38, share)
    assert binom.sf(37, n, share) >= 0.99
    assert share == 1 or binom.sf(37, n - 1, share) < 0.99
    with pytest.raises(ValueError, match="share must be above 0"):
        planning.rows_in_all(38, 0.0)
