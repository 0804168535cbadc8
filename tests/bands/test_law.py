import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom

from guardband.bands.law import Expectation, Law
from guardband.bands.ranks import binomial_counts, coverage_bound, covered_counts
from promised import promise


@pytest.mark.parametrize(("m", "k", "n"), [(1, 9, 9), (50, 90, 99), (2000, 901, 1000), (30_000, 22_501, 25_000)])
def test_covered_rows_follow_the_beta_binomial_law(m, k, n):
    counts = np.unique(np.linspace(0, m, 40).astype(int))
    np.testing.assert_allclose(covered_counts(m, k, n)[counts], betabinom.cdf(counts, m, k, n + 1 - k), atol=1e-9)


@pytest.mark.parametrize(("m", "share"), [(1, 0.5), (500, 0.9), (20_000, 0.87)])
def test_binomial_counts_are_the_binomial_law(m, share):
    np.testing.assert_allclose(binomial_counts(m, share), binom.cdf(np.arange(m + 1), m, share), atol=1e-12)


def test_the_whole_line_covers_every_row():
    for counts in (covered_counts(5, 10, 9), binomial_counts(5, 1.0)):
        assert counts.tolist() == [0, 0, 0, 0, 0, 1]
    assert Law(share=1.0).band(5, 0.005) == (5, 5)
    assert Law(share=1.0).p_value(5, 5) == 1


def test_a_rank_of_nothing_covers_nothing():
    assert covered_counts(3, 0, 9).tolist() == [1, 1, 1, 1]


def test_band_holds_99_percent_with_equal_tails():
    low, high = Law((901, 1000)).band(1000, 0.005)
    law = betabinom(1000, 901, 100)
    assert (low, high) == (law.ppf(0.005), law.ppf(0.995))
    assert (low / 1000, high / 1000) == (0.863, 0.932)  # the published band


def test_least_is_the_first_count_that_is_not_significant():
    law, exact = Law((901, 1000)), betabinom(2000, 901, 100)
    least = law.least(2000, 0.01)
    assert exact.cdf(least - 1) < 0.01 <= exact.cdf(least)
    assert law.p_value(least - 1, 2000) < 0.01 <= law.p_value(least, 2000)


def test_a_choice_among_k_multiplies_the_chance_of_a_small_count():
    one, ten = Law((90, 99)), Law((90, 99), candidates=10, open=True)
    assert ten.p_value(70, 100) == pytest.approx(10 * one.p_value(70, 100))
    assert ten.band(100, 0.005)[0] < one.band(100, 0.005)[0]
    assert ten.band(100, 0.005)[1] == 100
    assert ten.p_value_above(100, 100) == 1


def test_counts_from_above():
    assert Law(share=0.5).p_value_above(2, 2) == pytest.approx(0.25)
    assert Law(share=0.5).p_value_above(0, 2) == 1


def expectations(kind, level=0.9, n=99, rank=90, **more):
    return promise(kind, level, n, rank=rank, **more).expectations()


def test_a_marginal_promise_is_tested_by_its_own_law():
    (own,) = expectations("marginal")
    assert own.expected == Law((90, 99))
    assert own.tests == (own.expected,)
    assert own.share is None


def test_a_pac_promise_is_tested_at_the_level_and_by_the_law_of_its_rank():
    (own,) = expectations("pac", rank=95, delta=0.1)
    assert own.expected == Law((95, 99))
    assert own.tests == (own.expected, Law(share=0.9))


@pytest.mark.parametrize("m", [50, 2000, 20_000, 200_000])
@pytest.mark.parametrize(("k", "n"), [(49, 50), (913, 1000)])
def test_a_pac_promise_is_called_broken_no_more_often_than_the_significance(k, n, m):
    (own,) = expectations("pac", rank=k, n=n, delta=0.1)
    least = own.least(m, 0.01)
    over_calibration_sets, at_the_level = betabinom.cdf(least - 1, m, k, n + 1 - k), binom.cdf(least - 1, m, 0.9)
    assert max(over_calibration_sets, at_the_level) < 0.01
    assert own.p_value(least - 1, m) < 0.01 <= own.p_value(least, m)


def test_a_pav_promise_is_tested_at_its_bound():
    (own,) = expectations("pav", delta=0.1, rule="fixed-sequence", candidates=10, covered=93, tau=0.1)
    assert own.expected == Law((90, 99), open=True)
    assert own.tests == (own.expected, Law(share=coverage_bound(0.1, 90, 99)))
    (paper,) = expectations("pav", delta=0.1, rule="paper", candidates=10, covered=93, tau=0.1)
    assert paper.tests[1] == Law(share=coverage_bound(0.01, 93, 99))
    assert paper.expected.candidates == 10
    (asked,) = expectations("pav", aim="pac", delta=0.1, rule="nested", covered=93, tau=0.1)
    assert asked.tests[1] == Law(share=0.9)
    (average,) = expectations("pav", aim="average", rule="nested", covered=93, tau=0.1)
    assert average.tests == (average.expected,)


def test_where_nothing_is_promised_the_level_is_the_yardstick():
    (own,) = expectations("none", n=50, rank=None)
    assert own.expected == Law(share=0.9)
    assert own.tests == (own.expected,)


def test_each_level_has_its_promise():
    both = expectations("marginal", level=(0.9, 0.5), rank=(90, 50), whole_line=(True, False))
    assert [own.expected for own in both] == [Law(share=1.0), Law((50, 99))]


def test_the_least_share_is_what_the_law_exceeds_but_for_the_significance():
    """With Beta(k, n + 1 - k) its quantile, at the significance divided by the candidates; else the share itself."""
    ranked, fixed = Law((90, 99), candidates=4), Law(share=0.8)
    assert ranked.least_share(0.02) == pytest.approx(beta.ppf(0.005, 90, 10), rel=1e-9)
    assert fixed.least_share(0.02) == 0.8
    own = Expectation(0.9, ranked, (ranked, fixed), None)
    assert own.least_share(0.02) == min(ranked.least_share(0.02), 0.8)
    assert Expectation(0.9, fixed, (fixed, Law(share=0.7)), None).least_share(0.02) == 0.7


def test_a_p_value_is_at_most_one_also_with_candidates_and_without_rows():
    assert Law((90, 99), candidates=10).p_value(100, 100) == 1
    assert Law((90, 99), candidates=10).p_value(0, 0) == 1
    assert Law().p_value(3, 3) == 1
    assert Law().p_value(2, 3) == 0
    assert Law().least_share(0.01) == 1
