"""A cut of one's own: ranks within groups, for every score, in a few lines and without a change of the package."""

import inspect
import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import guardband as gb
from guardband.bands.law import Law
from guardband.bands.rank_promise import RankPromise
from guardband.bands.ranks import average_coverage, coverage_bound, marginal_rank, order_statistic
from guardband.calibration.cut import MarginalCut, PacCut
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
    found = rule._fitted().found.arrays
    for i, own in enumerate(sorted(SIZES)):
        rows, new_rows = group == own, new_group == own
        alone = gb.BandCalibrator(method, confidence_level=level).fit(*(side[rows] for side in bands), y[rows])
        np.testing.assert_array_equal(found["threshold"][i], alone._fitted().found.arrays["threshold"])
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
    with pytest.raises(ValueError, match="pav picks one of several networks and takes no cut"):
        gb.BandCalibrator("pav", taus=[0.1], guarantee=GroupCut())


@pytest.mark.parametrize("numbers", [(5,), (0.0,), (0.1, 0)])
def test_a_pac_cut_takes_numbers_that_can_be(numbers):
    with pytest.raises(ValueError, match="PacCut takes a delta between 0 and 1"):
        PacCut(*numbers)


@pytest.mark.parametrize("cut", [MarginalCut(), PacCut(), PacCut(0.01, 3)], ids=repr)
@pytest.mark.parametrize("level", ["0.5", "0.9", "0.99", "0.999"])
def test_rows_needed_are_the_fewest_for_a_finite_interval(cut, level):
    needed = cut._rows_needed(Fraction(level))
    marginal = isinstance(cut, MarginalCut)
    assert needed == (marginal_rows(Fraction(level)) if marginal else pac_rows(Fraction(level), cut.delta / cut.shares))


def test_a_cut_that_needs_to_know_more_of_a_row_is_refused_before_training():
    class Asking(MarginalCut):
        uses = frozenset({"group"})

    with pytest.raises(ValueError, match="only BandCalibrator takes"):
        gb.IntervalRegressor(guarantee=Asking()).fit(np.zeros((50, 1)), np.zeros(50))


def test_a_context_may_hold_lists():
    assert gb.Context(group=["a", "b"]).rows(slice(1, 2)).group.tolist() == ["b"]


def test_all_levels_at_once_is_said_of_those_that_share_delta_alone():
    random = np.random.default_rng(0)
    point, y = np.zeros(200), random.standard_normal(200)
    joint = gb.BandCalibrator(confidence_level=[0.9, 0.8], guarantee="pac", joint=True)
    joint.fit(point - 1, point, point + 1, y)
    new = ([-1.0], [0.0], [1.0])
    assert joint.certificate.promise.joint
    assert "all levels at once" in str(joint.certificate)
    later = joint.transform(*new, confidence_level=[0.3, 0.5, 0.7, 0.8]).certificate
    assert not later.promise.joint
    assert "each level apart" in str(later)
    more = gb.BandCalibrator(confidence_level=[0.5, 0.7, 0.9], guarantee=PacCut(0.1, shares=2))
    assert not more.fit(point - 1, point, point + 1, y).certificate.promise.joint
