from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import smirnov

from guardband.bands.cross_bounds import _mean_excess, minmax_missed, missed_given_data, plus_missed
from guardband.bands.ranks import marginal_rank

SIZES = [(n, folds) for n in (10, 40, 200, 1000) for folds in (2, 5, 10)]


@pytest.mark.parametrize(("n", "folds"), SIZES)
@pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.2", "0.3"])
def test_the_bound_of_cv_plus_is_at_least_the_published_one(n: int, folds: int, alpha: str) -> None:
    k, m = marginal_rank(1 - Fraction(alpha), n), n // folds
    published = 2 * float(alpha) + min(2 * (1 - 1 / folds) / (m + 1), (1 - folds / n) / (folds + 1))
    assert plus_missed(k, [m] * folds) <= min(1.0, published) + 1e-12


@pytest.mark.parametrize(("n", "folds"), SIZES)
def test_minmax_is_bounded_by_less_than_plus_and_for_folds_of_one_row_by_the_level(n: int, folds: int) -> None:
    k = marginal_rank(Fraction("0.9"), n)
    assert minmax_missed(k, [n // folds] * folds) <= plus_missed(k, [n // folds] * folds)
    assert minmax_missed(k, [1] * n) <= 0.1 + 1e-12


def test_too_few_rows_miss_nothing() -> None:
    sizes = [4, 4]
    assert plus_missed(9, sizes) == minmax_missed(9, sizes) == missed_given_data(9, sizes, 0.1, 2) == 0.0


def test_unequal_folds_have_the_bound_that_needs_no_equal_ones() -> None:
    assert plus_missed(90, [33, 33, 34]) == 2 * (100 - 90 + 3) / 103
    near, equal = minmax_missed(91, [33, 33, 34]), minmax_missed(91, [33, 33, 33])
    assert near == pytest.approx(0.09 + 0.33 * 2 * _mean_excess(33) + 0.34 * _mean_excess(34))
    assert equal != near


@pytest.mark.parametrize("m", [1, 2, 7, 50, 1000])
def test_the_mean_excess_is_that_of_its_law(m: int) -> None:
    assert _mean_excess(m) == pytest.approx(quad(lambda t: float(smirnov(m, t)), 0, 1, limit=500)[0], rel=1e-5)


def test_the_bound_given_the_data_is_at_least_that_of_bian_and_barber() -> None:
    for n, folds in SIZES:
        k, m = marginal_rank(Fraction("0.9"), n), n // folds
        theirs = 0.2 + np.sqrt(2 * np.log(folds / 0.1) / m)
        assert missed_given_data(k, [m] * folds, 0.1, 2) <= min(1.0, theirs) + 1e-12
        assert missed_given_data(k, [m] * folds, 0.1, 1) <= missed_given_data(k, [m] * folds, 0.1, 2)


def test_bounds_improve_with_rows_and_approach_what_they_can() -> None:
    few, many = ([n // 8] * 8 for n in (800, 800_000))
    k = [marginal_rank(Fraction("0.9"), sum(own)) for own in (few, many)]
    for bound, limit in ((plus_missed, 0.2), (minmax_missed, 0.1)):
        assert bound(k[0], few) > bound(k[1], many)
        assert bound(k[1], many) == pytest.approx(limit, abs=0.003)


def exceeds(m: int, t: float) -> float:
    """Return P(sup (F_m - F) > t) as Birnbaum and Tingey (1951) state it."""
    terms = (math.comb(m, j) * (t + j / m) ** (j - 1) * (1 - t - j / m) ** (m - j) for j in range(m) if j < m * (1 - t))
    return t * math.fsum(terms)


FOLDS = ([1] * 9, [3] * 4, [7, 9, 9], [25] * 8, [33, 33, 34])


@pytest.mark.parametrize("sizes", FOLDS, ids=str)
def test_what_is_missed_given_the_data_is_the_law_of_each_fold_at_its_share_of_delta(sizes: list[int]) -> None:
    n = sum(sizes)
    for delta in (0.01, 0.1, 0.5):
        share = delta / len(sizes)
        each = {m: brentq(lambda t, m=m, share=share: exceeds(m, t) - share, 1e-9, 1 - 1e-12) for m in set(sizes)}
        excess = sum(m * each[m] for m in sizes) / n
        for k in (1, n // 2, n - 1, n):
            for most in (1, 2):
                expected = min(1.0, most * ((n - k) / n + excess))
                assert missed_given_data(k, sizes, delta, most) == pytest.approx(expected, abs=1e-9)
        assert missed_given_data(n + 1, sizes, delta, 2) == 0


@pytest.mark.parametrize("sizes", FOLDS, ids=str)
def test_what_is_missed_on_average_is_the_least_of_what_is_proved(sizes: list[int]) -> None:
    n, folds, m = sum(sizes), len(sizes), sizes[0]
    means = {size: quad(lambda t, size=size: exceeds(size, t), 0, 1, limit=500)[0] for size in set(sizes)}
    excess = sum(size * means[size] for size in sizes) / n
    for k in range(1, n + 1):
        plus = [Fraction(1), Fraction(2 * (n - k + folds), n + folds)]
        minmax = [(n - k) / n + excess]
        if len(set(sizes)) == 1:
            plus.append(Fraction(2 * (n - k) + m, n + m))
            minmax.append((n - k + m) / (n + m))
        assert plus_missed(k, sizes) == pytest.approx(float(min(plus)), rel=1e-12)
        assert minmax_missed(k, sizes) == pytest.approx(min(float(min(plus)), *minmax), rel=1e-5)
