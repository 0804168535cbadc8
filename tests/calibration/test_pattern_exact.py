"""Thresholds in whole numbers beside their definition in fractions; more is in test_overlapping_groups_enumerated."""

from fractions import Fraction

import numpy as np
import pytest

from guardband.calibration import pattern_exact
from guardband.calibration.pattern_exact import exact_thresholds
from pattern_definition import by_definition

EVERY = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)


def exactly(scores, pattern, level, asked=EVERY, near=(0.0, 0.0, 0.0)):
    return exact_thresholds(np.asarray(scores, float), np.asarray(pattern), EVERY, level, asked, np.asarray(near))


@pytest.mark.parametrize("powers", [0, 15, 30, 600])
def test_no_threshold_is_below_that_of_the_definition(powers):
    rng = np.random.default_rng(powers)
    for case in range(15):
        n, level = int(rng.integers(3, 11)), Fraction(int(rng.integers(1, 10)), 10)
        pattern = np.r_[0, 1, rng.integers(0, 3, n)]
        scores = rng.choice([-1, 1], len(pattern)) * 10 ** rng.uniform(-powers / 2, powers / 2, len(pattern))
        found = exactly(scores, pattern, level)
        wanted = np.array(by_definition(scores, EVERY[pattern], level, EVERY))
        assert (found >= wanted).all(), case
        assert found.tolist() == pytest.approx(wanted.tolist(), rel=1e-15 if powers else 1e-13), case


def read(one, two, both):
    """Return the threshold of both groups together that goes through a row of each alone."""
    scores, near = np.array([one, two, both]), np.array([one, max(two, -1e308), np.inf])
    problem = pattern_exact._Problem(scores, np.arange(3), EVERY.astype(int), Fraction(1, 2), near)
    assert sorted(problem.basis) == [0, 1]
    return problem._read(np.array([1, 1], dtype=object))


@pytest.mark.parametrize(
    ("one", "two", "both", "threshold"),
    [
        (0.7, 0.1, 0.8, 0.8),  # the sum is less, and the row would be outside
        (0.1, 0.2, 0.3, 0.1 + 0.2),
        (1.0, 2.0**-60, 9.0, 1 + 2.0**-52),
        (1.0, -(2.0**-60), 9.0, 1.0),
        (1.0, 2.0**-60, 1 + 2.0**-51, 1 + 2.0**-51),
        (1.0, 2.0**-60, 1 + 2.0**-49, 1 + 2.0**-52),
        (1.5e308, 1.5e308, 0.0, np.inf),
        (1.0, -np.inf, 0.0, np.inf),
        (1.0, 2.0, 9.0, 3.0),
        (5e-324, 1.0, 9.0, 1 + 2.0**-52),
    ],
)
def test_a_threshold_is_rounded_up_and_one_that_is_a_score_but_for_rounding_is_no_less(one, two, both, threshold):
    assert read(one, two, both) == threshold


@pytest.mark.parametrize(("other", "threshold"), [(1.5 + 2.0**-52, 1.5 + 2.0**-52), (1.5 + 3 * 2.0**-52, 1.5)])
def test_half_a_sum_is_no_score_that_is_farther_away_than_rounding(other, threshold):
    pairs, scores = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]), np.array([1.0, 1.0, 1.0, other])
    near = np.array([1.0, 1.0, 1.0, -9.0])
    problem = pattern_exact._Problem(scores, np.arange(4), pairs, Fraction(1, 2), near)
    assert (sorted(problem.basis), problem.det) == ([0, 1, 2], 2)
    assert problem._read(np.array([1, 1, 1], dtype=object)) == threshold


@pytest.mark.parametrize("least", [0.0, -np.inf])
def test_neighbouring_floats_keep_their_order_and_minus_infinity_is_below_all(least):
    """For the definition, which knows finite scores only, minus infinity is one below all that occur."""
    rng, compared = np.random.default_rng(0), 0
    for case in range(20):
        pattern = np.r_[0, 1, 2, rng.integers(0, 3, 9)]
        scores = (1 + (pattern == 2)) * (1 + 8 * rng.choice(40, 12, replace=False) * 2.0**-52)
        scores[rng.choice(12, 6, replace=False)] = least
        level = Fraction(int(rng.integers(3, 8)), 10)
        found = exactly(scores, pattern, level, near=(1.0, 1.0, 2.0))
        wanted = by_definition(np.maximum(scores, -(2.0**60)), EVERY[pattern], level, EVERY)
        for one, own in zip(found, wanted, strict=True):
            if 0.5 < own < 9:  # a sum of infinite ones is none
                assert 0 <= one - own <= 2.0**-50, case
                compared += 1
    assert compared > 20


def test_distances_that_are_equal_when_rounded_are_compared_as_they_are():
    near, far = pattern_exact._Distance(2**80 + 1, 3, 0), pattern_exact._Distance(2**81 + 4, 6, 1)
    assert near.rounded() == far.rounded() == 2**80 / 3
    assert near < far
    assert not far < near
    assert not near < near
    assert pattern_exact._Distance(10**400, 1, 0).rounded() == np.inf
