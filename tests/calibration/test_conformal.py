"""Split conformal, held to its exact laws."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom, kstest, norm

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.ranks import pac_rank
from guardband.calibration.conformal import ROWS_AT_A_TIME, Conformal
from guardband.calibration.cut import MarginalCut, PacCut, SharedCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rejection_cut import RejectionCut
from guardband.calibration.score import Scaled
from guardband.calibration.weighted_cut import WeightedCut
from laws import SIGNIFICANCE

# A band that is wrong in every way: biased, skewed, and blind to the noise that grows with x.


def draw(rng, *shape):
    x = rng.random(shape)
    y = x + (0.5 + x) * rng.standard_normal(shape)
    return x, y


def wrong_bands(x):
    return x - 1.2, x + 0.1, x + 0.9 + x**2


GRID = np.linspace(0, 1, 2001)[:-1] + 1 / 4000


def true_coverage(scale):
    """Return P(Y in interval | calibration rows) for the scaled wrong bands, by integrating over x."""
    lower, point, upper = wrong_bands(GRID)
    scale = np.asarray(scale)[..., None]
    low, high = point - scale * (point - lower), point + scale * (upper - point)
    deviation = 0.5 + GRID
    return (norm.cdf((high - GRID) / deviation) - norm.cdf((low - GRID) / deviation)).mean(-1)


def calibrated_scales(n, replications, seed, **asked):
    rng = np.random.default_rng(seed)
    scales = []
    for _ in range(replications):
        x, y = draw(rng, n)
        rule = gb.BandCalibrator("conf-nn", **asked).fit(*wrong_bands(x), y)
        lower, point, _ = (v[0] for v in wrong_bands(GRID[:1]))
        scales.append((point - rule.transform([lower], [point], [point + 1]).lower[0]) / (point - lower))
    return np.array(scales)


@pytest.mark.parametrize("n", [50, 500])
def test_coverage_given_the_data_has_the_beta_law(n):
    k = -(-9 * (n + 1) // 10)
    found = true_coverage(calibrated_scales(n, 2000, seed=n))
    assert kstest(found, beta(k, n + 1 - k).cdf).pvalue > SIGNIFICANCE


def test_twelve_rows_cover_twelve_thirteenths():
    found = true_coverage(calibrated_scales(12, 3000, seed=0))
    error = np.sqrt(beta.var(12, 1) / 3000)
    assert abs(found.mean() - 12 / 13) <= norm.isf(SIGNIFICANCE / 2) * error


def test_nineteen_rows_cover_exactly_eighteen_twentieths():
    """A rank that is off by one would be 24 standard errors away."""
    found = true_coverage(calibrated_scales(19, 1000, seed=1))
    error = np.sqrt(beta.var(18, 2) / 1000)
    assert abs(found.mean() - 18 / 20) <= norm.isf(SIGNIFICANCE / 2) * error


def test_pac_keeps_its_level_with_probability_one_minus_delta():
    found = true_coverage(calibrated_scales(200, 1000, seed=2, guarantee="pac", delta=0.1))
    realised = binom.sf(pac_rank(Fraction(9, 10), 200, 0.1) - 1, 200, 0.9)  # the law at the least rank that meets 0.1
    low, high = binom.ppf([SIGNIFICANCE / 2, 1 - SIGNIFICANCE / 2], 1000, realised)
    assert low <= (found < 0.9).sum() <= high


def test_joint_levels_are_those_of_a_joint_promise_for_one():
    apart = gb.BandCalibrator(confidence_level=[0.9, 0.8], guarantee="pac")
    joint = gb.BandCalibrator(confidence_level=[0.9, 0.8], guarantee="pac", joint=True)
    one = gb.BandCalibrator(confidence_level=0.9, guarantee="pac", joint=True)
    rng = np.random.default_rng(0)
    x, y = draw(rng, 300)
    ranks = [rule.fit(*wrong_bands(x), y).certificate.rank for rule in (apart, joint, one)]
    assert ranks[0][0] < ranks[1][0] == ranks[2]


def fitted(n, **asked):
    rng = np.random.default_rng(5)
    x, y = draw(rng, n)
    return gb.BandCalibrator("conf-nn", **asked).fit(*wrong_bands(x), y)


def test_eight_rows_are_the_whole_line_and_nine_are_finite():
    words = "90% intervals with this guarantee need at least 9 calibration rows, but there are 8"
    with pytest.warns(gb.InsufficientCalibrationWarning, match=words):
        rule = fitted(8)
    bands = rule.transform([0.0], [1.0], [2.0])
    assert (bands.lower[0], bands.upper[0]) == (-np.inf, np.inf)
    assert rule.certificate.rank == 9
    assert rule.certificate.coverage_bound(0.1) == 1
    assert np.isfinite(fitted(9).transform([0.0], [1.0], [2.0]).upper).all()


def test_one_row_is_the_whole_line():
    with pytest.warns(gb.InsufficientCalibrationWarning):
        assert np.isinf(fitted(1).transform([0.0], [1.0], [2.0]).lower).all()


def test_pac_needs_twenty_two_rows():
    with pytest.warns(gb.InsufficientCalibrationWarning, match="at least 22"):
        fitted(21, guarantee="pac")
    assert fitted(22, guarantee="pac").certificate.rank == 22


def test_too_few_rows_raise_when_asked():
    with pytest.raises(gb.InsufficientCalibrationError, match="at least 9"):
        fitted(8, on_insufficient="raise")


def test_infinite_scores_beyond_the_level_warn_of_infinite_intervals():
    with pytest.warns(gb.DegenerateBandWarning, match="20 of 100 calibration rows"):
        rule = gb.BandCalibrator().fit(
            np.zeros(100), np.zeros(100), np.ones(100), np.r_[np.full(20, -1.0), np.ones(80)]
        )
    assert np.isinf(rule.transform([0.0], [0.5], [1.0]).upper[0])
    assert rule.certificate.whole_line
    assert rule.certificate.expected_coverage == 91 / 101  # on average over calibration rows, whatever these have given
    assert "The intervals are infinite" in str(rule.certificate)
    with pytest.raises(gb.InsufficientCalibrationError, match="20 of 100"):
        gb.BandCalibrator(on_insufficient="raise").fit(
            np.zeros(100), np.zeros(100), np.ones(100), np.r_[np.full(20, -1.0), np.ones(80)]
        )


def test_order_of_the_calibration_rows_does_not_matter():
    rng = np.random.default_rng(5)
    x, y = draw(rng, 400)
    order = rng.permutation(400)
    a = gb.BandCalibrator().fit(*wrong_bands(x), y).transform([0.0], [0.3], [1.0])
    b = gb.BandCalibrator().fit(*wrong_bands(x[order]), y[order]).transform([0.0], [0.3], [1.0])
    assert a.lower[0] == b.lower[0]
    assert a.upper[0] == b.upper[0]


@pytest.mark.parametrize(("a", "b"), [(3.0, -7.0), (1e-6, 100.0), (1e6, 0.0)])
@pytest.mark.parametrize("method", ["conf-nn", "pav"])
def test_intervals_follow_a_change_of_units(method, a, b):
    rng = np.random.default_rng(5)
    x, y = draw(rng, 400)
    shape = (lambda v: v) if method == "conf-nn" else (lambda v: np.stack([v, v]))
    asked = {} if method == "conf-nn" else {"taus": [0.1, 0.01]}
    sides = [shape(side) for side in wrong_bands(x)]
    if method == "pav":
        sides[0][1] -= 3
        sides[2][1] += 3
    plain = gb.BandCalibrator(method, **asked).fit(*sides, y).transform(*sides)
    moved = [a * side + b for side in sides]
    other = gb.BandCalibrator(method, **asked).fit(*moved, a * y + b).transform(*moved)
    np.testing.assert_allclose(other.lower, a * plain.lower + b, rtol=1e-9, atol=1e-9 * (a + abs(b)))
    np.testing.assert_allclose(other.upper, a * plain.upper + b, rtol=1e-9, atol=1e-9 * (a + abs(b)))


def test_every_row_with_a_score_up_to_the_threshold_lies_inside():
    rng = np.random.default_rng(5)
    x, y = draw(rng, 999)
    for level in (0.5, 0.9, 0.99):
        rule = gb.BandCalibrator(confidence_level=level).fit(*wrong_bands(x), y)
        bands = rule.transform(*wrong_bands(x))
        assert round(gb.metrics.coverage(y, bands) * 999) == rule.certificate.rank


def test_several_levels_are_nested_and_equal_to_each_alone():
    together = fitted(500, confidence_level=[0.9, 0.5, 0.99])
    bands = together.transform([0.0, 1.0], [0.5, 1.5], [2.0, 2.0])
    assert bands.lower.shape == (2, 3)
    for i, level in enumerate((0.9, 0.5, 0.99)):
        alone = fitted(500, confidence_level=level).transform([0.0, 1.0], [0.5, 1.5], [2.0, 2.0])
        assert (alone.lower == bands.lower[:, i]).all()
    assert (bands.lower[:, 2] <= bands.lower[:, 0]).all()
    assert (bands.lower[:, 0] <= bands.lower[:, 1]).all()


def test_a_level_may_be_chosen_later_and_the_certificate_says_so():
    rule = fitted(500)
    later = rule.transform([0.0], [0.5], [2.0], confidence_level=0.8)
    direct = fitted(500, confidence_level=0.8).transform([0.0], [0.5], [2.0])
    assert later.lower[0] == direct.lower[0]
    assert later.certificate.promise.chosen_after
    assert not direct.certificate.promise.chosen_after
    assert not rule.transform([0.0], [0.5], [2.0], alpha=0.1).certificate.promise.chosen_after


def test_a_level_that_was_asked_for_is_not_chosen_after():
    rule = fitted(500, confidence_level=[0.9, 0.5])
    assert not rule.transform([0.0], [0.5], [2.0], confidence_level=0.5).certificate.promise.chosen_after
    assert rule.transform([0.0], [0.5], [2.0], confidence_level=[0.5, 0.6]).certificate.promise.chosen_after


def test_one_of_joint_levels_keeps_its_rank():
    rule = fitted(500, confidence_level=[0.9, 0.8], guarantee="pac", joint=True)
    one = rule.transform([0.0], [0.5], [2.0], confidence_level=0.8)
    assert one.certificate.rank == rule.certificate.rank[1]


def test_joint_needs_pac():
    with pytest.raises(ValueError, match='must go with guarantee="pac"'):
        gb.BandCalibrator(joint=True)


def test_every_call_is_warned_of_at_the_callers_line(recwarn):
    warnings.simplefilter("default")
    for _ in range(2):
        fitted(5)
    gb.BandCalibrator().fit(np.zeros(3), np.ones(3), np.full(3, 2.0), np.ones(3))
    assert {w.filename for w in recwarn} == {__file__}
    assert len({w.lineno for w in recwarn}) == 2


def rule_of(cut, levels=(0.9, 0.5)):
    return Conformal("conf-nn", Levels.of(list(levels)), Scaled(), cut)


def rows_of(rng, n):
    parts = np.sort(rng.standard_normal((3, 1, 1, n)), axis=0)
    return PredictedInterval(*parts), rng.standard_normal(n)


GROUPED = GroupedCut(MarginalCut(), ("a", "b"), "kind")


def test_many_rows_have_the_ends_of_few_at_a_time():
    rng = np.random.default_rng(0)
    rule = rule_of(GROUPED)
    known, y = rows_of(rng, 300)
    found = rule.calibrate(rule.summarise(known, y, Context(group=rng.integers(0, 2, 300)))).arrays
    n = ROWS_AT_A_TIME + 7
    new, group = rows_of(rng, n)[0], rng.integers(0, 2, n)
    together = rule.ends(new, Context(group=group), found)
    assert together[0].shape == together[2].shape == (n, 2)
    for first in range(0, n, 5000):
        rows = slice(first, first + 5000)
        few = rule.ends(new.rows(rows), Context(group=group[rows]), found)
        for one, other in zip(few, together, strict=True):
            np.testing.assert_array_equal(one, other[rows])
    np.testing.assert_array_equal(together[1], new.point[0, 0])


def test_many_rows_have_the_scores_of_few_at_a_time():
    rng = np.random.default_rng(0)
    rule, n = rule_of(GROUPED), ROWS_AT_A_TIME + 7
    new, y = rows_of(rng, n)
    together = rule.scores(new, y, Context())
    for first in range(0, n, 5000):
        rows = slice(first, first + 5000)
        np.testing.assert_array_equal(rule.scores(new.rows(rows), y[rows], Context()), together[rows])


def test_thresholds_of_rows_take_the_precision_of_the_predictions_in_torch():
    rng = np.random.default_rng(0)
    rule = rule_of(GROUPED)
    known, y = rows_of(rng, 300)
    group = rng.integers(0, 2, 300)
    found = rule.calibrate(rule.summarise(known, y, Context(group=group))).arrays
    arrays = {name: torch.from_numpy(array) for name, array in found.items()}
    single = known.map(lambda part: torch.from_numpy(part).float())
    ends = rule.ends(single, Context(group=torch.from_numpy(group)), arrays, torch)
    assert {end.dtype for end in ends} == {torch.float32}
    for one, other in zip(ends, rule.ends(known, Context(group=group), found), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-5)


def test_what_a_rule_says_of_its_groups():
    plain, groups = rule_of(MarginalCut()), rule_of(GROUPED)
    kept = rule_of(RejectionCut(GroupedCut(PacCut(), ("a", "b"), "kind", 2), 3.0))
    assert [own.group_columns for own in (plain, groups, kept)] == [0, 1, 2]
    assert plain.for_groups(("a", "b")).cut == GroupedCut(MarginalCut(), ("a", "b"))
    assert plain.for_groups(("a", "b")).group_columns == 1
    assert plain.for_groups(("a", "b"), "kind", 2).group_columns == 2
    assert groups.without_groups() == plain
    assert plain.without_groups() == plain
    assert kept.without_groups() == rule_of(RejectionCut(PacCut(), 3.0))
    weighted = rule_of(RejectionCut(PacCut(), 3.0))
    assert weighted.without_groups() == weighted


def test_which_rules_have_other_levels_at_little_cost():
    """Patterns are solved for at each level, and each level has a table of weights."""
    patterns = GroupedCut(MarginalCut(), ("a", "b"), "kind", 2)
    quick = [MarginalCut(), GROUPED, GroupedCut(PacCut(), ("a", "b"), "kind", 2), RejectionCut(PacCut(), 2.0)]
    assert [rule_of(cut).has_quick_levels for cut in quick] == [True] * 4
    assert [rule_of(cut).has_quick_levels for cut in (patterns, WeightedCut())] == [False] * 2


@pytest.mark.parametrize("groups", [1, 3])
def test_rows_for_a_group_are_those_of_the_highest_level_at_its_share_of_delta(groups):
    assert rule_of(MarginalCut(), (0.5, 0.9, 0.8)).rows_for_a_group(groups) == 9
    needed = rule_of(PacCut(0.1), (0.5, 0.9, 0.8)).rows_for_a_group(groups)
    assert 0.9**needed <= 0.1 / groups < 0.9 ** (needed - 1)


def test_the_scores_of_entities_are_those_of_one_row_each():
    rng = np.random.default_rng(0)
    entity = np.repeat(np.arange(20), 3)
    rule = rule_of(SharedCut())
    known, y = rows_of(rng, 60)
    summary = rule.summarise(known, y, Context(entity=entity))
    every = Scaled().of(known, y)[0, 0]
    np.testing.assert_array_equal(rule_of(MarginalCut()).calibration_scores(summary), every)
    one_each = rule.calibration_scores(summary)
    assert len(one_each) == 20
    place = [int(np.flatnonzero(every == own)[0]) for own in one_each]
    assert entity[place].tolist() == list(range(20))


def test_a_rule_adds_what_patterns_of_new_rows_need():
    rng = np.random.default_rng(0)
    rule = rule_of(GroupedCut(MarginalCut(), ("a", "b"), "kind", 2))
    known, y = rows_of(rng, 200)
    group = np.array([[0, -1], [-1, 1], [0, 1]])[rng.integers(0, 3, 200)]
    summary = rule.summarise(known, y, Context(group=group))
    found = rule.calibrate(summary)
    new = Context(group=group[:20])
    assert np.isinf(rule.ends(known.rows(slice(20)), new, found.arrays)[0]).all()
    rule.complete(found, summary, new)
    complete = rule.calibrate_complete(summary)
    for one, other in zip(
        rule.ends(known.rows(slice(20)), new, found.arrays),
        rule.ends(known.rows(slice(20)), new, complete.arrays),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all()
