"""Promises for groups over thousands of calibration sets, against their exact laws; each limit also refutes a rule that
is off by one.

Scores are uniform, so that a threshold is the coverage of those rows whose threshold it is. Limits are exact binomial
quantiles, one part in a million for all tests together.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.bands.ranks import marginal_rank, pac_rank
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.overlapping_groups import pattern_thresholds
from guardband.doors.bands import BandCalibrator

SETS = 2_000
SIGNIFICANCE = 1e-6 / 12
"""There are six limits of two sides."""
SIZES = np.array([9, 29])
"""Calibration rows of groups that do not overlap."""
NAMES = ("a", "b", "c")


def at_most(count, sets, probability):
    """Return whether a count is not too large for so many independent trials."""
    return binom.sf(count - 1, sets, probability) > SIGNIFICANCE


def at_least(count, sets, probability):
    """Return whether a count is not too small."""
    return binom.cdf(count, sets, probability) > SIGNIFICANCE


def test_each_group_apart_is_covered_as_its_rank_says():
    """A new row of a group is inside with probability k / (n + 1), exactly; through the front door.

    Groups that do not overlap are calibration sets of their own, so that one rule has thousands of them.
    """
    rng, level = np.random.default_rng(0), Fraction(9, 10)
    sizes = np.repeat(SIZES, SETS)
    groups, new = np.repeat(np.arange(len(sizes)), sizes), np.arange(len(sizes))
    y, outcomes = rng.random(len(groups)), rng.random(len(sizes))
    rule = BandCalibrator("conf-fw").fit(None, np.zeros(len(y)), None, y, groups=groups.astype(str))
    upper = rule.transform(None, np.zeros(len(new)), None, groups=new.astype(str)).upper
    less = np.array([np.sort(own)[marginal_rank(level, len(own)) - 2] for own in np.split(y, np.cumsum(sizes)[:-1])])
    for n in SIZES:
        exact = marginal_rank(level, n) / (n + 1)
        inside = int((outcomes <= upper)[sizes == n].sum())
        assert at_least(inside, SETS, exact)
        assert at_most(inside, SETS, exact)
    assert not at_least(int((outcomes <= less)[sizes == 9].sum()), SETS, float(level))  # one rank less is refuted


def test_all_groups_apart_hold_at_once_as_often_as_their_ranks_say():
    """Given the data: the product of the groups' exact probabilities, which is 1 - delta or more."""
    rng = np.random.default_rng(1)
    sizes, level, delta = np.array([60, 90, 120]), Fraction(4, 5), 0.3
    codes, levels = np.repeat([0, 1, 2], sizes)[:, None], Levels.of(0.8)
    cut = GroupedCut(PacCut(delta), NAMES)
    scores = rng.random((SETS, len(codes)))
    tables = [cut.calibrate(own, Context(group=codes), levels, False).arrays["group_threshold"] for own in scores]
    held = int((np.array(tables)[:, 2:, 0] >= 0.8).all(axis=1).sum())
    ranks = [pac_rank(level, n, delta / 3) for n in sizes]
    exact = np.prod([binom.cdf(k - 1, n, 0.8) for k, n in zip(ranks, sizes, strict=True)])
    assert exact >= 1 - delta
    assert at_least(held, SETS, exact)
    assert at_most(held, SETS, exact)
    one_each = [
        np.sort(scores[:, codes[:, 0] == g], axis=1)[:, pac_rank(level, n, delta) - 1] for g, n in enumerate(sizes)
    ]
    assert not at_least(int((np.array(one_each) >= 0.8).all(axis=0).sum()), SETS, 1 - delta)  # delta is to be shared


def test_all_groups_that_overlap_hold_at_once():
    """Given the data: a row takes the largest threshold of its groups. One row in ten belongs to both."""
    levels, delta, both = Levels.of(0.8), 0.3, 10
    codes = np.concatenate([np.tile([0, -1], (100, 1)), np.tile([-1, 1], (100, 1)), np.tile([0, 1], (both, 1))])
    kinds = np.array([[0, -1], [-1, 1], [0, 1]])

    def held(cut):
        count = 0
        for scores in np.random.default_rng(3).random((SETS, len(codes))):
            found = cut.calibrate(scores, Context(group=codes), levels, False)
            a, b, most = cut.thresholds(found.arrays, Context(group=kinds))[:, 0]
            share = both / (100 + both)
            count += min((1 - share) * a + share * most, (1 - share) * b + share * most) >= 0.8
        return count

    assert at_least(held(GroupedCut(PacCut(delta), ("a", "b"), columns=2)), SETS, 1 - delta)
    # twice the delta is what each group would have if it were not shared
    assert not at_least(held(GroupedCut(PacCut(2 * delta), ("a", "b"), columns=2)), SETS, 1 - delta)


@pytest.mark.parametrize("less", [0, 2])
def test_groups_that_overlap_are_covered_on_average(less):
    """Gibbs, Cherian & Candès: between the level and the level + G / ((n + 1) P(g)); with two ranks less, below it.

    Coverage of each set is known exactly. Its mean is judged by Maurer & Pontil's empirical Bernstein bound (2009).
    """
    rng = np.random.default_rng(4)
    n, level, share, scale = 24, Fraction(4, 5), 0.6, np.array([1.0, 2.0, 3.0])
    patterns, weights = np.array([[True, False], [False, True], [True, True]]), np.array([0.4, 0.4, 0.2])
    asked = level - Fraction(less, int(share * n) + 1)
    covered = np.empty((SETS, 2))
    for i in range(SETS):
        own = rng.choice(3, n, p=weights)
        thresholds = pattern_thresholds(rng.random(n) * scale[own], own, patterns, asked, patterns)
        covered[i] = np.minimum(thresholds / scale, 1) * weights @ patterns / share
    log = np.log(2 / SIGNIFICANCE)
    slack = np.sqrt(2 * covered.var(axis=0, ddof=1) * log / SETS) + 7 * log / (3 * (SETS - 1))
    holds = covered.mean(axis=0) + slack >= float(level)
    assert (covered.mean(axis=0) - slack <= float(level) + 2 / ((n + 1) * share)).all()
    assert holds.all() if less == 0 else not holds.any()


def test_no_finite_interval_without_a_promise():
    """A group with a row too few is infinite, and one with just enough is not."""
    for cut in (MarginalCut(), PacCut(0.1)):
        grouped = GroupedCut(cut, NAMES[:2])
        needed = grouped.of_each.rows_needed(Fraction(9, 10))
        codes = np.repeat([0, 1], [needed - 1, needed])[:, None]
        scores = np.random.default_rng(5).random(len(codes))
        table = grouped.calibrate(scores, Context(group=codes), Levels.of(0.9), False).arrays["group_threshold"]
        assert np.isinf(table[2, 0])
        assert np.isfinite(table[3, 0])
