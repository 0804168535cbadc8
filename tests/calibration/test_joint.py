"""All of several targets at once: the largest score of a row has the law of one score."""

import numpy as np
import pytest
from scipy.stats import beta, binom, kstest, norm

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval, PredictedPoint
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import Cut, MarginalCut, PacCut, SharedCut
from guardband.calibration.each import EachConformal
from guardband.calibration.joint import InUnits, JointConformal, learnt_scale
from guardband.calibration.score import Additive, Residual, Scaled
from guardband.calibration.several import EACH
from guardband.calibration.summary import Summary
from guardband.calibration.target_calibrated import target_calibrated

NONE = Context()
RHO, SCALES, NAMES = 0.8, (1.0, 1.3, 0.7), ("a", "b", "c")
LEVEL = Levels.of(0.9)
FAMILY_WISE = 1e-6


def intervals(n, targets=3):
    one = np.ones((1, 1, n))
    return PredictedSeveral((PredictedInterval(-one, 0 * one, one),) * targets)


def correlated(random, *shape):
    """Draw targets with one common factor: correlations are RHO."""
    common = random.standard_normal((*shape[:-1], 1))
    return np.sqrt(RHO) * common + np.sqrt(1 - RHO) * random.standard_normal(shape)


def true_coverage(threshold):
    """Return the chance that all targets lie within their scale times the threshold, by integrating over the factor."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    within = 1.0
    for scale in SCALES:
        end = scale * np.asarray(threshold)[..., None]
        sides = [norm.cdf((side - np.sqrt(RHO) * nodes) / np.sqrt(1 - RHO)) for side in (end, -end)]
        within = within * (sides[0] - sides[1])
    return (within * weights).sum(-1) / weights.sum()


def thresholds(cut, n, replications, seed):
    random = np.random.default_rng(seed)
    rule = JointConformal("conf-nn", LEVEL, NAMES, Scaled(), cut, scales=SCALES)
    predicted = intervals(n)
    draws = (correlated(random, n, 3) for _ in range(replications))
    return np.array([rule.calibrate(rule.summarise(predicted, y, NONE)).arrays["threshold"][0] for y in draws])


def test_joint_coverage_given_the_data_is_beta():
    n, k = 99, 90
    covered = true_coverage(thresholds(MarginalCut(), n, 2000, 0))
    assert kstest(covered, beta(k, n + 1 - k).cdf).pvalue > FAMILY_WISE


def test_a_pac_promise_for_all_targets_fails_no_more_often_than_delta():
    covered = true_coverage(thresholds(PacCut(0.1), 200, 2000, 1))
    failed = int((covered < 0.9).sum())
    exact = binom.sf(PacCut(0.1).rank(LEVEL.values[0], 200) - 1, 200, 0.9)
    assert failed <= binom.isf(FAMILY_WISE, 2000, 0.1)
    assert binom.ppf(FAMILY_WISE, 2000, exact) <= failed <= binom.isf(FAMILY_WISE, 2000, exact)


def test_each_target_alone_has_the_law_of_one_target():
    n, k, random = 99, 90, np.random.default_rng(2)
    rule = EachConformal("conf-nn", LEVEL, NAMES, Scaled(), MarginalCut())
    predicted = intervals(n)
    found = [rule.calibrate(rule.summarise(predicted, correlated(random, n, 3), NONE)).arrays for _ in range(2000)]
    ends = np.array([own["threshold"][:, 0] for own in found])
    for j in range(3):
        covered = norm.cdf(ends[:, j]) - norm.cdf(-ends[:, j])
        assert kstest(covered, beta(k, n + 1 - k).cdf).pvalue > FAMILY_WISE


@pytest.mark.parametrize("score", [Scaled(), Additive(), Additive(relative=True), Residual()])
@pytest.mark.parametrize("cut", [MarginalCut(), PacCut()])
@pytest.mark.parametrize("kind", [JointConformal, EachConformal])
def test_with_one_target_it_is_the_ordinary_rule_bit_by_bit(score, cut, kind):
    random, levels = np.random.default_rng(3), Levels.of([0.9, 0.5])
    point = random.standard_normal((1, 1, 500))
    one = PredictedInterval(point - random.random((1, 1, 500)), point, point + random.random((1, 1, 500)))
    y = point[0, 0] + random.standard_normal(500)
    ordinary = Conformal("m", levels, score, cut)
    several = kind("m", levels, ("only",), score, cut)
    alone = ordinary.calibrate(ordinary.summarise(one, y, NONE))
    both = several.calibrate(several.summarise(PredictedSeveral((one,)), y[:, None], NONE))
    expected = ordinary.ends(one, NONE, alone.arrays)
    found = several.ends(PredictedSeveral((one,)), NONE, both.arrays)
    for side, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(side[:, 0], other)
    if kind is JointConformal:
        assert both.promise == alone.promise
    else:
        assert both.promise.of_each == (alone.promise,)


@pytest.mark.parametrize("score", [Scaled(), Additive(), Residual()])
def test_a_row_lies_in_its_own_box_exactly_if_its_score_is_at_most_the_threshold(score):
    random = np.random.default_rng(4)
    rule = JointConformal("m", LEVEL, NAMES, score, MarginalCut(), scales=(0.3, 7.1, 1e-3))
    point = random.standard_normal((3, 1, 1, 1000)) * 100
    predicted = PredictedSeveral(tuple(PredictedInterval(own - 1, own, own + 2) for own in point))
    y = point[:, 0, 0].T + random.standard_normal((1000, 3))
    summary = rule.summarise(predicted, y, NONE)
    found = rule.calibrate(summary)
    lower, _, upper = (side[..., 0] if side.ndim == 3 else side for side in rule.ends(predicted, NONE, found.arrays))
    inside = ((lower <= y) & (y <= upper)).all(axis=1)
    np.testing.assert_array_equal(inside, rule.scores(predicted, y, NONE) <= found.arrays["threshold"][0])
    assert inside.sum() == found.promise.rank[0]


def test_boxes_are_narrower_than_bonferronis_on_correlated_targets():
    random, q = np.random.default_rng(5), 3
    y, predicted = correlated(random, 4000, q), intervals(4000)
    joint = JointConformal("m", LEVEL, NAMES, Scaled(), MarginalCut())
    corrected = EachConformal("m", Levels.of(1 - 0.1 / q), NAMES, Scaled(), MarginalCut())
    widths = []
    for rule in (joint, corrected):
        lower, _, upper = rule.ends(predicted, NONE, rule.calibrate(rule.summarise(predicted, y, NONE)).arrays)
        widths.append(np.exp(np.log(upper - lower).mean()))
    assert widths[0] < 0.97 * widths[1]


def test_scales_let_targets_of_other_units_share_the_misses():
    random = np.random.default_rng(6)
    y = random.standard_normal((5000, 2)) * np.array([1.0, 1000.0])
    predicted = PredictedSeveral((PredictedPoint(np.zeros((1, 1, 5000))),) * 2)
    scales = tuple(learnt_scale(np.abs(own), 0.9) for own in (random.standard_normal((5000, 2)) * [1, 1000]).T)
    rule = JointConformal("conf-fw", LEVEL, ("a", "b"), Residual(), MarginalCut(), scales=scales)
    lower, _, upper = rule.ends(predicted, NONE, rule.calibrate(rule.summarise(predicted, y, NONE)).arrays)
    shares = ((lower[..., 0] <= y) & (y <= upper[..., 0])).mean(axis=0)
    assert abs(shares[0] - shares[1]) < 0.02  # the standard error of the difference is 0.004


def test_the_scale_of_scores_does_not_move_with_an_additive_shift():
    scores = np.random.default_rng(7).standard_normal(1000)
    assert learnt_scale(scores - 10, 0.9) == pytest.approx(learnt_scale(scores - 20, 0.9))
    assert learnt_scale(np.array([np.inf, np.nan]), 0.9) == learnt_scale(np.zeros(5), 0.9) == 1.0


def test_a_target_alone_is_promised_at_least_what_all_are():
    random = np.random.default_rng(8)
    rule = JointConformal("conf-nn", LEVEL, NAMES, Scaled(), MarginalCut())
    calibrated = Calibrated.from_blocks(rule, [(intervals(99), correlated(random, 99, 3), NONE)])
    alone = target_calibrated(calibrated, 1)
    assert calibrated.found.promise.targets == 3
    assert alone.found.promise.targets == 1
    assert alone.found.promise.extended
    assert alone.found.promise.rank == calibrated.found.promise.rank


def test_what_cannot_be_is_refused():
    class Own(Cut):
        word = "own"

        def calibrate(self, *_):
            raise NotImplementedError

    with pytest.raises(ValueError, match="needs guarantee="):
        JointConformal("m", LEVEL, NAMES, Scaled(), Own())
    with pytest.raises(ValueError, match="different names"):
        JointConformal("m", LEVEL, ("a", "a"), Scaled(), MarginalCut())
    for scales in ((1.0, 2.0), (1.0, 2.0, 0.0), (1.0, 2.0, np.inf)):
        with pytest.raises(ValueError, match="one positive number for each of 3 targets"):
            JointConformal("m", LEVEL, NAMES, Scaled(), MarginalCut(), scales=scales)
    rule = JointConformal("m", LEVEL, NAMES, Scaled(), MarginalCut())
    with pytest.raises(ValueError, match="Expected predictions of 3 targets, found 2"):
        rule.check(intervals(5, targets=2), NONE)
    with pytest.raises(ValueError, match="needs lower, point and upper"):
        rule.check(PredictedSeveral((PredictedPoint(np.zeros((1, 1, 5))),) * 3), NONE)
    for refused in (lambda: rule.for_groups(("g",)), rule.for_weights):
        with pytest.raises(ValueError, match="Several targets"):
            refused()
    with pytest.raises(ValueError, match="needs all targets of every calibration row"):
        rule.calibrate(rule.summarise(intervals(5), np.full((5, 3), np.nan), NONE))


def test_a_score_in_units_is_the_score_divided():
    random = np.random.default_rng(9)
    one, y = intervals(50).targets[0], random.standard_normal(50)
    np.testing.assert_array_equal(InUnits(Scaled(), 4.0).of(one, y), Scaled().of(one, y) / 4)


@pytest.mark.parametrize("threshold", [1.0, -1.0, 0.0])
def test_a_threshold_in_units_is_raised_by_four_units_in_the_last_place(threshold):
    """And not at all in units of 1, which need no division."""
    one, eps = intervals(2).targets[0], np.finfo(np.float64).eps
    raised = 0.5 * threshold + 0.5 * abs(threshold) * 4 * eps
    for found, wanted in zip(
        InUnits(Additive(), 0.5).around(one, np.float64(threshold)),
        Additive().around(one, np.float64(raised)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(
        InUnits(Additive(), 1.0).around(one, np.float64(threshold)),
        Additive().around(one, np.float64(threshold)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    assert InUnits(Additive(), 2.0).extends is True
    assert InUnits(Scaled(), 2.0).extends is False
    assert InUnits(Residual(), 2.0).takes is Residual().takes


@pytest.mark.parametrize(
    ("scores", "level", "scale"),
    [
        ([1, 2, 3, 4, 5], 0.75, 4),
        ([-3, -2, -1, 0, 1], 0.75, 1),  # from the median, -1, up to 0
        ([-3, -2, -1, 0, 1, np.inf, np.nan], 0.75, 1),
        ([-2, -1, 1, 2, 3], 0.75, 2),  # the median is positive: scores count from 0
        ([0, 0, 0, 0, 5], 0.5, 1),
        ([7], 0.9, 7),
        ([0.25, 0.5, 0.5], 0.5, 0.5),
        ([-8, -6, -6, -4, -2], 0.75, 2),  # all lie below 0
        ([], 0.9, 1),
    ],
)
def test_the_scale_of_a_target_is_the_quantile_of_its_scores(scores, level, scale):
    assert learnt_scale(np.array(scores, dtype=float), level) == scale


def joint_summary(cut, entity=None):
    random = np.random.default_rng(10)
    rule = JointConformal("m", LEVEL, NAMES, Scaled(), cut, scales=SCALES)
    y = correlated(random, 60, 3)
    return rule, y, rule.summarise(intervals(60), y, Context(entity=entity))


def test_all_targets_rank_the_largest_score_and_each_compares_its_own():
    rule, y, summary = joint_summary(MarginalCut())
    each = np.abs(y) / SCALES
    np.testing.assert_allclose(rule.calibration_scores(summary), each.max(axis=1))
    np.testing.assert_allclose(rule.scores(intervals(60), y, NONE), each.max(axis=1))
    threshold = np.sort(each.max(axis=1))[int(np.ceil(0.9 * 61)) - 1]
    assert rule.calibrate(summary).arrays["threshold"][0] == pytest.approx(threshold)
    for j in range(3):
        own = rule.of_target(j).calibration_scores(rule.target_summary(j, summary))
        np.testing.assert_allclose(own, each[:, j])
        found = rule.target_found(j, summary)
        assert found.arrays["threshold"][0] == pytest.approx(threshold)
        assert rule.target_arrays(j, found.arrays) is found.arrays
        assert found.promise.targets == 1


def test_of_entities_one_row_counts_in_all_targets():
    entity = np.repeat(np.arange(20), 3)
    rule, y, summary = joint_summary(SharedCut(), entity)
    largest, own = (np.abs(y) / SCALES).max(axis=1), np.abs(y[:, 1]) / SCALES[1]
    for found, every in (
        (rule.calibration_scores(summary), largest),
        (rule.of_target(1).calibration_scores(rule.target_summary(1, summary)), own),
    ):
        assert len(found) == 20
        rows = [int(np.abs(every - score).argmin()) for score in found]
        np.testing.assert_allclose(every[rows], found)
        assert entity[rows].tolist() == list(range(20))


def test_targets_without_scales_have_the_scale_of_one():
    assert JointConformal("m", LEVEL, NAMES, Scaled(), MarginalCut()).scales == (1.0, 1.0, 1.0)


def test_a_row_that_lacks_one_target_is_refused():
    rule, _, summary = joint_summary(MarginalCut())
    each = summary.rows(EACH).copy()
    each[7, 1] = np.nan
    with pytest.raises(ValueError, match="needs all targets of every calibration row"):
        rule.calibrate(Summary(summary.n, {}, ({EACH: each},)))
