"""A rule finds from counts what it finds from all scores, and says what it cannot find any more."""

import numpy as np
import pytest

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary, Joined, Known, Remembered
from guardband.calibration.counted_at import KnownAt, SharedFound, Weighed, in_words, summary_from
from guardband.calibration.cut import MarginalCut, PacCut, SharedCut
from guardband.calibration.each import EachConformal
from guardband.calibration.group_ranks import GroupScores
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.joint import JointConformal
from guardband.calibration.rejection_cut import RejectionCut, kept_rows
from guardband.calibration.score import Additive, Scaled
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Summary
from guardband.calibration.weighted_cut import WeightedCut
from guardband.doors.model_checks import check_counted
from guardband.doors.weight_checks import check_known_weights, check_shared

LEVELS = Levels.of([0.8, 0.9, 0.99], None)
N = 500


def rule_of(cut, score=Scaled()):  # noqa: B008
    return Conformal("conf-nn", LEVELS, score, cut, LEVELS)


def rows(groups=0):
    rng = np.random.default_rng(0)
    point = rng.standard_normal((1, 1, N))
    y = point[0, 0] + rng.standard_normal(N)
    group = rng.integers(-1, groups, N) if groups else None
    return PredictedInterval(point - 1, point, point + 1), y, Context(group=group)


def counted(rule, summary, groups=0):
    def of(name):
        scores = summary.rows(name)
        return Remembered(GroupScores.of(scores, summary.rows("group")[:, None], groups) if groups else Joined(scores))

    summary = Summary(summary.n, {}, tuple(map(rule.countable, summary.blocks)))
    names = [name for name in summary.blocks[0] if name.startswith("score")]
    return CountedSummary(summary.n, {}, (), {name: of(name) for name in names})


def one(cut, groups=0):
    return cut if not groups else GroupedCut(cut, tuple("abc"[:groups]), "letter")


@pytest.mark.parametrize("score", [Scaled(), Additive()])
@pytest.mark.parametrize("groups", [0, 3])
@pytest.mark.parametrize("cut", [MarginalCut(), PacCut(), PacCut(joint=True)])
def test_counts_give_the_thresholds_and_the_promise_of_all_scores(cut, groups, score):
    rule, block = rule_of(one(cut, groups), score), rows(groups)
    summary = rule.summarise(*block)
    whole, found = rule.calibrate(summary), rule.calibrate(counted(rule, summary, groups))
    assert found.promise == whole.promise
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)


def test_rows_that_weights_keep_are_counted_as_they_calibrate():
    rng = np.random.default_rng(5)
    scores, weights, cut = rng.random(N), rng.random(N), RejectionCut(PacCut(), 1.0)
    whole = cut.calibrate(scores, Context(weight=weights), LEVELS, False)
    kept = np.sort(scores[kept_rows(scores, weights, 1.0)])
    every = np.arange(1, len(kept) + 1)
    known = Known(len(kept), np.array([len(kept)]), np.array([0]), every[None], kept[None], before=N)
    found = cut.calibrate_counted(known, LEVELS, False)
    assert found.promise == whole.promise
    assert [own.in_words() for own in found.remarks] == [own.in_words() for own in whole.remarks]
    np.testing.assert_array_equal(found.arrays["threshold"], whole.arrays["threshold"])


@pytest.mark.parametrize("options", [{"side": "upper"}, {"tails": (0.02, 0.08)}])
def test_each_side_is_counted_apart(options):
    from guardband.methods.method import Request
    from guardband.methods.registry import method_named

    rule = method_named("conf-nn").rule(Request.of(**options))
    assert isinstance(rule, Sided)
    summary = rule.summarise(*rows())
    whole, found = rule.calibrate(summary), rule.calibrate(counted(rule, summary))
    assert found.promise == whole.promise
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)


@pytest.mark.parametrize("cut", [MarginalCut(), PacCut()])
@pytest.mark.parametrize("kind", [JointConformal, EachConformal])
def test_several_targets_are_counted_by_their_largest_score_or_each_apart(kind, cut):
    rng, (predicted, y, context) = np.random.default_rng(2), rows()
    rule = kind("conf-nn", LEVELS, ("a", "b"), Scaled(), cut)
    Y = np.stack([y, 2 * rng.standard_normal(N)], axis=1)
    if kind is EachConformal:
        Y[rng.random((N, 2)) < 0.2] = np.nan
    summary = rule.summarise(PredictedSeveral((predicted, predicted)), Y, context)
    own = counted(rule, summary)
    rule.calibrate(own)  # whose answers are kept
    for counts in (own, summary_from(own.to_arrays())):
        for whole, found in (
            (rule.calibrate(summary), rule.calibrate(counts)),
            *((rule.target_found(j, summary), rule.target_found(j, counts)) for j in range(2)),
        ):
            assert found.promise == whole.promise
            np.testing.assert_array_equal(found.arrays["threshold"], whole.arrays["threshold"])
        assert rule.calibration_scores(counts) is None
        assert rule.of_target(0).calibration_scores(rule.target_summary(0, counts)) is None


def test_what_was_asked_for_is_known_after_the_scores_are_gone():
    rule = rule_of(MarginalCut())
    summary = counted(rule, rule.summarise(*rows()))
    before = Calibrated.from_blocks(rule, [], gather=lambda own: [summary])
    again = summary_from(summary.to_arrays())
    assert isinstance(again, CountedSummary)
    assert isinstance(again.counted["score"], Known)
    after = Calibrated.by(rule, again)
    np.testing.assert_array_equal(after.found.arrays["threshold"], before.found.arrays["threshold"])
    assert after.certificate == before.certificate
    with pytest.raises(ValueError, match="keeps the thresholds of the levels that were asked for"):
        after.at(0.5, None)


def test_groups_with_fewer_answers_than_others_keep_theirs():
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], [200, 3])
    own = Remembered(GroupScores.of(rng.standard_normal(203), codes[:, None], 2))
    ranks = np.array([[100, 150], [2, 4]])
    found = own.smallest(ranks)
    assert found[1, 1] == np.inf
    known = own.known()
    np.testing.assert_array_equal(known.smallest(ranks), found)
    assert known.ranks.tolist() == [[100, 150], [2, 2]]


@pytest.mark.parametrize("cut", [SharedCut(), WeightedCut(), GroupedCut(MarginalCut(), ("a", "b"), "two", 2)])
def test_a_cut_that_needs_all_scores_refuses_counts(cut):
    with pytest.raises(ValueError, match="scores of all 3 calibration rows"):
        cut.calibrate_counted(Joined(np.arange(3.0)), LEVELS, False)


def test_rows_that_were_only_counted_are_not_there():
    summary = CountedSummary(9, {}, (), {"score": Joined(np.arange(9.0))})
    with pytest.raises(ValueError, match="scores of all 9 calibration rows"):
        summary.rows("score")
    assert rule_of(MarginalCut()).calibration_scores(summary) is None
    assert summary.joined() is summary


def test_a_plain_summary_comes_back_plain():
    rule = rule_of(MarginalCut())
    summary = rule.summarise(*rows())
    again = summary_from(summary.to_arrays())
    assert type(again) is Summary
    np.testing.assert_array_equal(again.rows("score"), summary.rows("score"))


KNOWN = {
    "number": np.array([5, 4]),
    "beyond": np.array([1, 0]),
    "ranks": np.array([[2, 5], [3, 3]]),
    "scores": np.array([[0.5, np.inf], [1.0, 1.0]]),
}


def checked(name="score", n=9, **changed):
    like = Summary(1, {}, ({"score": np.zeros(1), "group": np.zeros(1, dtype=int)},))
    check_counted(CountedSummary(n, {}, (), {name: Known(n, **KNOWN | changed)}), like)


def test_counts_of_a_file_that_can_be_true_are_taken():
    checked()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "score_lower"}, "left other scores"),
        ({"n": 4}, "more rows than there are"),
        ({"beyond": np.array([6, 0])}, "more rows than there are"),
        ({"beyond": np.array([-1, 0])}, "more rows than there are"),
        ({"ranks": np.array([[2, 6], [3, 3]])}, "more rows than there are"),
        ({"ranks": np.array([[5, 2], [3, 3]])}, "not in order"),
        ({"scores": np.array([[0.5, 0.4], [1.0, 1.0]])}, "not in order"),
        ({"scores": np.array([[0.5, np.nan], [1.0, 1.0]])}, "not in order"),
        ({"scores": np.zeros((2, 3))}, "wrong type or shape"),
        ({"number": np.array([5.0, 4.0])}, "wrong type or shape"),
        ({"beyond": np.array([1])}, "wrong type or shape"),
    ],
)
def test_counts_of_a_file_that_contradict_each_other_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        checked(**changed)


WEIGHED = {"scores": [1.0, 2.0], "most_weight": [[0.5, 3.0]], "shares": [5.0, 0.3, 0.1], "infinite": [1]}
SHARED = {"thresholds": [1.5], "entities": [4, 0, 1], "least": [-1.0]}


@pytest.mark.parametrize(
    ("good", "changes"),
    [
        (WEIGHED, {"scores": [2.0, 1.0]}),
        (WEIGHED, {"scores": [1.0, np.nan]}),
        (WEIGHED, {"scores": [1.0]}),
        (WEIGHED, {"most_weight": [[3.0, 0.5]]}),
        (WEIGHED, {"most_weight": [[0.5, np.inf]]}),
        (WEIGHED, {"shares": [10.1, 0.3, 0.1]}),
        (WEIGHED, {"shares": [0.9, 0.3, 0.1]}),
        (WEIGHED, {"shares": [5.0, 1.3, 0.1]}),
        (WEIGHED, {"shares": [5.0, 0.3]}),
        (WEIGHED, {"infinite": [11]}),
        (SHARED, {"thresholds": [np.nan]}),
        (SHARED, {"thresholds": [[1.5]]}),
        (SHARED, {"entities": [0, 0, 1]}),
        (SHARED, {"entities": [11, 0, 1]}),
        (SHARED, {"entities": [4, 0, -1]}),
        (SHARED, {"least": [np.nan]}),
    ],
)
def test_what_a_file_says_of_scores_that_are_gone_is_checked(good, changes):
    kind, check = (Weighed, check_known_weights) if good is WEIGHED else (SharedFound, check_shared)
    known = {name: np.array(own) for name, own in good.items()}
    found = kind.from_arrays(known)
    assert check(found, 10) is None
    for name, array in found.to_arrays().items():
        np.testing.assert_array_equal(array, known[name])
    assert check(kind.from_arrays(known | {name: np.array(own) for name, own in changes.items()}), 10) is not None


@pytest.mark.parametrize("are_alike", [True, False])
def test_entities_that_were_counted_give_the_promise_of_their_scores(are_alike):
    rng, levels = np.random.default_rng(6), Levels.of([0.5, 0.9])
    entity = rng.integers(0, 40, 300)
    scores = rng.normal(size=40)[entity] if are_alike else rng.normal(size=300)
    one = SharedCut().calibrate(scores, Context(entity=entity), levels, False)
    found = SharedFound(one.arrays["threshold"], len(np.unique(entity)), are_alike, 0, float(scores.min()))
    many = SharedCut().calibrate_counted(KnownAt(300, in_words(levels), found), levels, False)
    assert many.promise == one.promise
    with pytest.raises(ValueError, match="name all levels"):
        SharedCut().calibrate_counted(KnownAt(300, in_words(levels), found), Levels.of(0.8), False)
