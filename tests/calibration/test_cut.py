"""A cut of one's own: ranks within groups, for every score, in a few lines and without a change of the package."""

import inspect
import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import guardband as gb
from guardband.bands.law import Law
from guardband.bands.levels import Levels
from guardband.bands.rank_promise import RankPromise
from guardband.bands.ranks import (
    average_coverage,
    coverage_bound,
    marginal_rank,
    order_statistic,
    pac_rank,
    simultaneous_bound,
    simultaneous_rank,
)
from guardband.calibration.cut import MarginalCut, PacCut, SharedCut
from guardband.calibration.rule import Calibration
from guardband.planning import marginal_rows, pac_rows
from laws import SIGNIFICANCE, total_count_band


@dataclass(frozen=True, kw_only=True)
class GroupPromise(RankPromise):
    kind, on_average = "test-group", True
    assumption = "within each group, calibration rows and new rows are exchangeable"
    sizes: tuple[int, ...]

    def law(self, i):
        return Law(share=self.confidence_level[i], open=True)

    def expected_coverage(self):
        return self._least(average_coverage)

    def coverage_bound(self, delta):
        return self._least(lambda k, n: coverage_bound(delta / len(self.sizes), k, n))

    def _least(self, of):
        exact = [Fraction(str(level)) for level in self.confidence_level]
        return tuple(min(of(marginal_rank(level, n), n) for n in self.sizes) for level in exact)


class GroupCut(gb.Cut):
    word, uses = "group", frozenset({"group"})

    def calibrate(self, scores, context, levels, chosen_after):
        groups, sizes = np.unique(context.group, return_counts=True)
        ranks = np.array([[marginal_rank(level, n) for level in levels.values] for n in sizes])
        each = zip(groups, ranks, strict=True)
        thresholds = np.array([[order_statistic(scores[context.group == g], k) for k in own] for g, own in each])
        numbers = {"rank": ranks.sum(0), "whole_line": np.isinf(thresholds).all(0), "sizes": sizes}
        of_levels = {"confidence_level": levels.floats, "n_calibration": len(scores), "chosen_after": chosen_after}
        promise = GroupPromise(**of_levels, **{name: tuple(own.tolist()) for name, own in numbers.items()})
        return Calibration({"groups": groups, "threshold": thresholds}, promise)

    def thresholds(self, arrays, context, xp=np):
        same = context.group[:, None] == arrays["groups"]  # a group without calibration rows is the whole line
        return xp.where(same.any(1)[:, None], arrays["threshold"][same.argmax(1)], xp.inf)


SCORES = pytest.mark.parametrize("method", ["conf-nn", "conf-fw", "cqr", "cqr-r"])
SIZES = {"calm": 99, "rough": 40, "wild": 12}


def draw(rng, sizes):
    """Return groups, bands that know nothing of them, and outcomes whose noise differs between them."""
    group = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
    noise = np.select([group == "calm", group == "rough"], [0.5, 2.0], 5.0)
    x = rng.random(len(group))
    y = x + noise * (0.5 + x) * rng.standard_normal(len(group))
    return group, (x - 1.0, x + 0.1, x + 0.8 + x), y


def fitted(method, group, bands, y, **asked):
    rule = gb.BandCalibrator(method, guarantee=GroupCut(), **asked)
    return rule.fit(*bands, y, context=gb.Context(group=group))


def test_a_cut_and_its_promise_are_short():
    lines = [line for own in (GroupCut, GroupPromise) for line in inspect.getsource(own).splitlines() if line.strip()]
    assert len(lines) < 40


@SCORES
@pytest.mark.parametrize("level", [0.9, (0.9, 0.5)], ids=str)
def test_thresholds_of_a_group_are_those_of_a_calibration_of_its_own(method, level):
    rng = np.random.default_rng(0)
    group, bands, y = draw(rng, SIZES)
    new_group, new_bands, _ = draw(rng, {"rough": 5, "wild": 4, "calm": 6})
    rule = fitted(method, group, bands, y, confidence_level=level)
    out = rule.transform(*new_bands, context=gb.Context(group=new_group))
    found = rule.calibration_.found.arrays
    for i, own in enumerate(sorted(SIZES)):
        rows, new_rows = group == own, new_group == own
        alone = gb.BandCalibrator(method, confidence_level=level).fit(*(side[rows] for side in bands), y[rows])
        np.testing.assert_array_equal(found["threshold"][i], alone.calibration_.found.arrays["threshold"])
        theirs = alone.transform(*(side[new_rows] for side in new_bands))
        np.testing.assert_array_equal(out.lower[new_rows], theirs.lower)
        np.testing.assert_array_equal(out.upper[new_rows], theirs.upper)


@SCORES
def test_coverage_within_each_group_follows_the_law_of_its_own_rows(method):
    rng, replications, m = np.random.default_rng(1), 200, 60
    covered = dict.fromkeys(SIZES, 0)
    together = dict.fromkeys(SIZES, 0)
    for _ in range(replications):
        group, bands, y = draw(rng, SIZES)
        new_group, new_bands, new_y = draw(rng, dict.fromkeys(SIZES, m))
        out = fitted(method, group, bands, y).transform(*new_bands, context=gb.Context(group=new_group))
        blind = gb.BandCalibrator(method).fit(*bands, y).transform(*new_bands)
        for own in SIZES:
            rows = new_group == own
            covered[own] += int(((out.lower <= new_y) & (new_y <= out.upper))[rows].sum())
            together[own] += int(((blind.lower <= new_y) & (new_y <= blind.upper))[rows].sum())
    for own, n in SIZES.items():
        low, high = total_count_band(SIGNIFICANCE, replications, m, marginal_rank(Fraction(9, 10), n), n)
        assert low <= covered[own] <= high
        assert not low <= together[own] <= high  # one threshold for all is too long for some, too short for others


def test_a_group_without_calibration_rows_gets_the_whole_line():
    group, bands, y = draw(np.random.default_rng(2), SIZES)
    out = fitted("conf-nn", group, bands, y).transform(
        [0.0] * 2, [1.0] * 2, [2.0] * 2, context=gb.Context(group=np.array(["calm", "new"]))
    )
    assert np.isfinite(out.upper).tolist() == [True, False]
    assert np.isfinite(out.lower).tolist() == [True, False]


def test_groups_are_asked_for_at_both_ends():
    group, bands, y = draw(np.random.default_rng(2), SIZES)
    with pytest.raises(ValueError, match="conf-nn needs the group of every row"):
        gb.BandCalibrator(guarantee=GroupCut()).fit(*bands, y)
    with pytest.raises(ValueError, match="conf-nn needs the group of every row"):
        fitted("conf-nn", group, bands, y).transform(*bands)


@SCORES
@pytest.mark.parametrize("level", [0.9, (0.9, 0.5)], ids=str)
def test_its_certificate_speaks_for_the_groups_and_survives_json(method, level):
    group, bands, y = draw(np.random.default_rng(3), SIZES)
    certificate = fitted(method, group, bands, y, confidence_level=level).certificate
    again = gb.Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert again == certificate
    assert str(again) == str(certificate)
    assert certificate.kind == "test-group"
    assert "within each group" in str(certificate)
    first = certificate.expected_coverage if level == 0.9 else certificate.expected_coverage[0]
    assert first == pytest.approx(min(90 / 100, 37 / 41, 12 / 13))
    levels = np.atleast_1d(level)
    assert [own.expected for own in again.promise.expectations()] == [Law(share=one, open=True) for one in levels]


def test_another_level_comes_from_the_same_rows_and_says_that_it_was_chosen_after():
    group, bands, y = draw(np.random.default_rng(4), SIZES)
    rule = fitted("conf-nn", group, bands, y)
    later = rule.transform(*bands, confidence_level=0.5, context=gb.Context(group=group))
    direct = fitted("conf-nn", group, bands, y, confidence_level=0.5)
    np.testing.assert_array_equal(later.lower, direct.transform(*bands, context=gb.Context(group=group)).lower)
    assert later.certificate.promise.chosen_after


def test_pav_which_ranks_no_scores_refuses_a_cut():
    with pytest.raises(ValueError, match='pav takes guarantee="marginal" or "pac", and no Cut'):
        gb.BandCalibrator("pav", taus=[0.1], guarantee=GroupCut())


@pytest.mark.parametrize("delta", [5, 0.0, 1.0])
def test_a_pac_cut_takes_a_delta_that_can_be(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1, found"):
        PacCut(delta)


@pytest.mark.parametrize("cut", [MarginalCut(), PacCut(), PacCut(0.01)], ids=repr)
@pytest.mark.parametrize("level", ["0.5", "0.9", "0.99", "0.999"])
def test_rows_needed_are_the_fewest_for_a_finite_interval(cut, level):
    needed = cut.rows_needed(Fraction(level))
    marginal = isinstance(cut, MarginalCut)
    assert needed == (marginal_rows(Fraction(level)) if marginal else pac_rows(Fraction(level), cut.delta))


@pytest.mark.parametrize("level", ["0.5", "0.9", "0.999"])
def test_rows_needed_for_all_levels_at_once_are_the_fewest_for_a_finite_interval(level):
    cut, exact = PacCut(joint=True), Fraction(level)
    needed = cut.rows_needed(exact)
    assert cut.rank(exact, needed) <= needed
    assert cut.rank(exact, needed - 1) > needed - 1


def test_a_cut_that_needs_to_know_more_of_a_row_is_refused_before_training():
    class Asking(MarginalCut):
        uses = frozenset({"group"})

    with pytest.raises(ValueError, match="only BandCalibrator takes"):
        gb.IntervalRegressor(guarantee=Asking()).fit(np.zeros((50, 1)), np.zeros(50))


def test_a_context_may_hold_lists():
    assert gb.Context(group=["a", "b"]).rows(slice(1, 2)).group.tolist() == ["b"]


def joint_rule(n=200, levels=(0.9, 0.8)):
    point, y = np.zeros(n), np.random.default_rng(0).standard_normal(n)
    rule = gb.BandCalibrator(confidence_level=list(levels), guarantee="pac", joint=True)
    return rule.fit(point - 1, point, point + 1, y)


@pytest.mark.parametrize("levels", [None, 0.8, 0.7, [0.3, 0.5, 0.7, 0.8]], ids=str)
def test_a_joint_promise_is_one_for_every_level_asked_before_or_later(levels):
    rule = joint_rule()
    certificate = rule.transform([-1.0], [0.0], [1.0], confidence_level=levels).certificate
    assert certificate.promise.joint
    assert "for all levels at once" in str(certificate)
    assert "You may ask for other levels later" in str(certificate)
    assert "each level apart" not in str(certificate)
    assert "remains" not in str(certificate)
    bounds = np.atleast_1d(certificate.coverage_bound())
    assert (bounds >= np.atleast_1d(certificate.confidence_level)).all()
    exact = [Fraction(str(level)) for level in np.atleast_1d(certificate.confidence_level)]
    assert tuple(np.atleast_1d(certificate.rank)) == tuple(simultaneous_rank(level, 200, 0.1) for level in exact)


def test_without_joint_each_level_stands_apart():
    point, y = np.zeros(200), np.random.default_rng(0).standard_normal(200)
    apart = gb.BandCalibrator(confidence_level=[0.9, 0.8], guarantee="pac").fit(point - 1, point, point + 1, y)
    assert apart.certificate.rank == (pac_rank(Fraction("0.9"), 200, 0.1), pac_rank(Fraction("0.8"), 200, 0.1))
    assert "for each level separately" in str(apart.certificate)
    assert "You may ask" not in str(apart.certificate)
    later = apart.transform([-1.0], [0.0], [1.0], confidence_level=0.7).certificate
    assert later.coverage_bound(0.2) == simultaneous_bound(0.2, later.rank, 200)
    assert "only the figure for these calibration rows is valid" in str(later)


def test_levels_that_are_asked_for_later_keep_the_joint_promise_which_shares_of_delta_did_not():
    """Coverage at rank k is the k-th smallest of n uniform numbers. Who looks at all levels may choose the worst."""
    n, replications, rng = 200, 4000, np.random.default_rng(5)
    uniform = np.sort(rng.random((replications, n)), axis=1)
    levels = [Fraction(i, 100) for i in range(20, 100)]

    def broken(rank):
        pairs = [(rank(level), float(level)) for level in levels]
        return int(np.any([uniform[:, k - 1] < level for k, level in pairs if k <= n], axis=0).sum())

    cut = gb.BandCalibrator(confidence_level=[0.9, 0.8], guarantee="pac", joint=True)._options.request.cut
    assert broken(lambda level: cut.rank(level, n)) <= binom.isf(1e-5, replications, 0.1)
    shares = broken(lambda level: pac_rank(level, n, 0.1 / 2))  # what two joint levels had, for any level later
    assert shares > binom.isf(1e-5, replications, 0.2)


def test_a_pac_cut_of_ones_own_may_be_joint():
    point, y = np.zeros(200), np.random.default_rng(0).standard_normal(200)
    rule = gb.BandCalibrator(guarantee=PacCut(0.1, joint=True)).fit(point - 1, point, point + 1, y)
    assert rule.certificate.rank == simultaneous_rank(Fraction("0.9"), 200, 0.1)
    assert "for all levels at once" in str(rule.certificate)


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_whole_line_from_infinite_scores_does_not_promise_more_than_its_rank(guarantee):
    rule = gb.BandCalibrator(guarantee=guarantee)
    with pytest.warns(gb.DegenerateBandWarning, match="have a prediction that is not finite"):
        rule.fit(np.zeros(100), np.zeros(100), np.zeros(100), np.ones(100))
    certificate = rule.certificate
    assert certificate.whole_line
    assert certificate.expected_coverage == certificate.rank / 101
    assert certificate.coverage_bound(0.1) == coverage_bound(0.1, certificate.rank, 100) < 1
    assert "100%" not in str(certificate)


@pytest.mark.parametrize("method", ["conf-nn", "conf-fw", "cqr", "cqr-r"])
def test_the_law_of_intervals_that_are_extended_is_a_bound_from_below(method):
    """cqr shortens where half as long would do, and extends to the point: outcomes at the point are always covered."""
    point = np.zeros(99)
    y = np.random.default_rng(0).uniform(-0.1, 0.1, 99)
    promise = gb.BandCalibrator(method).fit(point - 1, point + 0.9, point + 1, y).certificate.promise
    assert promise.extended == (method in ("cqr", "cqr-r"))
    (law,) = promise.expectations()[0].tests
    assert law == Law((90, 99), open=promise.extended)
    assert (law.band(1000, 0.005)[1] == 1000) == promise.extended


def test_infinite_scores_are_told_with_their_number_if_any_level_has_an_infinite_threshold():
    """Of nine rows one is infinite: only the rank of 90%, which is all nine, reaches it. Ten rows allow it."""
    scores = np.append(np.arange(8.0), np.inf)
    found = MarginalCut().calibrate(scores, gb.Context(), Levels.of([0.5, 0.9]), False)
    assert found.arrays["threshold"].tolist() == [4.0, np.inf]
    (remark,) = found.remarks
    assert remark.category is gb.DegenerateBandWarning
    assert remark.in_words().startswith("1 of 9 calibration rows have a prediction that is not finite")
    assert not MarginalCut().calibrate(scores, gb.Context(), Levels.of(0.5), False).remarks
    more = MarginalCut().calibrate(np.append(np.arange(9.0), np.inf), gb.Context(), Levels.of(0.8), False)
    assert not more.remarks


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "90% intervals with this guarantee need at least 9 calibration rows, but there is 1. Add calibration rows"),
        (
            2,
            "90% intervals with this guarantee need at least 9 calibration rows, but there are 2. Add calibration rows",
        ),
        (
            0,
            "90% intervals with this guarantee need at least 9 calibration rows, but there are 0. Add calibration rows",
        ),
    ],
)
def test_too_few_rows_are_told_in_whole_sentences(n, words):
    (remark,) = MarginalCut().calibrate(np.arange(float(n)), gb.Context(), Levels.of(0.9), False).remarks
    assert remark.in_words() == f"{words} or choose a lower confidence level."


def test_too_few_entities_are_told_as_entities():
    context = gb.Context(entity=np.repeat(np.arange(3), 5))
    (remark,) = SharedCut().calibrate(np.arange(15.0), context, Levels.of(0.9), False).remarks
    assert remark.in_words() == (
        "90% intervals with this guarantee need at least 9 calibration entities, but there are 3. Add calibration "
        "entities or choose a lower confidence level."
    )


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_scores_of_an_entity_are_alike_if_they_differ_by_less_than_a_ten_thousandth(size):
    once = size * (1 + np.arange(30) / 30)
    for apart, shared in ((0.9e-4, False), (1.1e-4, True)):
        scores = np.stack([once, once * (1 - apart)], axis=1).ravel()
        found = SharedCut().calibrate(scores, gb.Context(entity=np.repeat(np.arange(30), 2)), Levels.of(0.9), False)
        assert found.promise.shared is shared
        assert found.arrays["threshold"][0] == (scores[2 * 27] if not shared else order_statistic(scores, 56))


def test_what_new_rows_need_is_added_to_a_complete_calibration():
    class Noting(MarginalCut):
        def completed(self, arrays, scores, known, new, levels):
            arrays["noted"] = scores[known.group == new.group]

    context = gb.Context(group=np.array(["a", "b"] * 10))
    plain = Noting().calibrate(np.arange(20.0), context, Levels.of(0.9), False)
    complete = Noting().calibrate_complete(np.arange(20.0), context, Levels.of(0.9), False)
    assert "noted" not in plain.arrays
    assert complete.arrays["noted"].tolist() == list(range(20))
