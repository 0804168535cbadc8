"""Promises: every kind keeps its numbers in a file, and its words, bounds and laws are of one piece."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

import guardband as gb
from guardband.bands.cross_promise import CvMinmaxPromise, CvPlusPromise
from guardband.bands.distribution_promise import DistributionPromise, FdrPromise, ProbabilityPromise
from guardband.bands.each_promise import EachPromise
from guardband.bands.kept_promise import KeptPromise
from guardband.bands.law import Expectation, Law
from guardband.bands.long_run_promise import LongRunPromise
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.promise import NoPromise, Part, Promise
from guardband.bands.rank_promise import MarginalPromise, OverlapPromise, PacPromise
from guardband.bands.ranks import coverage_bound
from guardband.bands.recent_promise import RecentPromise
from guardband.bands.risk_promise import RiskPromise
from guardband.bands.weighted_promise import EstimatedPromise, WeightedPromise
from promised import promise

TWO = {"level": (0.9, 0.5), "n": 1000}
PAV = {"rank": (900, 500), "delta": 0.1, "candidates": 10, "tau": (0.1, 0.5), "covered": (907, 511)}
MADE = {
    "none": promise("none", 0.9, 50),
    "none, whole line": promise("none", 0.9, 50, whole_line=True),
    "marginal": promise("marginal", 0.9, 1000, rank=901),
    "marginal, chosen after": promise("marginal", **TWO, rank=(901, 501), chosen_after=True),
    "marginal, whole line": promise("marginal", (0.9, 0.5), 8, rank=(9, 5), whole_line=(True, False)),
    "pac": promise("pac", 0.9, 1000, rank=913, delta=0.1),
    "pac, joint": promise("pac", **TWO, rank=(916, 526), delta=0.1, joint=True),
    "pav": promise("pav", **TWO, **PAV),
    "pav, paper": promise("pav", **TWO, **PAV, rule="paper"),
    "pav, pac": promise("pav", **TWO, **PAV | {"rank": (913, 520)}, rule="nested", aim="pac"),
    "pav, average": promise("pav", **TWO, **PAV | {"rank": (901, 501)}, aim="average"),
    "pav, whole line": promise("pav", 0.9, 10, rank=9, delta=0.1, tau=0.0, covered=10, whole_line=True),
}
PART = {"confidence_level": (0.9,), "n_calibration": 500, "rank": (451,), "whole_line": (False,)}
FEW = PART | {"n_calibration": 8, "rank": (9,), "whole_line": (True,)}
WHOLE = {"confidence_level": (0.9,), "n_calibration": 1000, "whole_line": (False,)}
MADE |= {
    "overlap": OverlapPromise(**PART),
    "parts, groups": PartedPromise(
        **WHOLE,
        parts=(
            Part(MarginalPromise(**PART), 0, "district = a", width=(2.0,), plain_width=(1.9,)),
            Part(MarginalPromise(**FEW), 1, "district = b"),
        ),
        by="district",
    ),
    "parts, groups that overlap": PartedPromise(
        **WHOLE, parts=(Part(OverlapPromise(**PART), 0, "a"), Part(OverlapPromise(**PART), 1, "b")), by="a, b"
    ),
    "parts, groups, pac": PartedPromise(
        **WHOLE, delta=0.1, parts=tuple(Part(PacPromise(**PART, delta=0.05), i, f"g = {i}") for i in range(2)), by="g"
    ),
}
WEIGHTED = WHOLE | {"n_effective": 400.0, "largest_share": 0.01, "most_weight": (9.5,), "infinite_share": (0.0,)}
ESTIMATED = {"n_training": 900, "n_target": 600, "largest_weight": 3.5, "clipped": 4}
MADE |= {
    "kept": KeptPromise(**PART, delta=0.1, n_given=1500, max_weight=3.0),
    "weighted": WeightedPromise(**WEIGHTED),
    "weighted, some infinite": WeightedPromise(**WEIGHTED | {"infinite_share": (0.2,)}, chosen_after=True),
    "weighted, whole line": WeightedPromise(**WEIGHTED | {"infinite_share": (1.0,), "whole_line": (True,)}),
    "estimated": EstimatedPromise(**WEIGHTED, **ESTIMATED, unlike=0),
    "estimated, with rows unlike others": EstimatedPromise(**WEIGHTED, **ESTIMATED, unlike=12),
}
ONLINE = WHOLE | {"judged": 1200, "misses": 118}
LONG_RUN = ONLINE | {"rule": "aci", "most_waiting": 1, "most_short": 180.1, "most_over": 20.9}
MADE |= {
    "long-run": LongRunPromise(**LONG_RUN),
    "long-run, one side, late": LongRunPromise(**LONG_RUN | {"most_waiting": 24, "of_side": "upper"}),
    "long-run, nothing judged": LongRunPromise(**LONG_RUN | {"judged": 0, "misses": 0}),
    "recent": RecentPromise(**ONLINE, half_life=300.0),
    "recent, nothing judged": RecentPromise(**ONLINE | {"judged": 0, "misses": 0}, half_life=300.0, of_side="lower"),
}
RISK = WHOLE | {"limit": 5.0, "cap": 100.0, "covered": (850,)}
MADE |= {
    "risk": RiskPromise(**RISK),
    "risk, pac": RiskPromise(**RISK, delta=0.1),
    "risk, own loss": RiskPromise(**RISK, loss="own"),
    "risk, whole line": RiskPromise(**RISK | {"n_calibration": 10, "covered": (10,), "whole_line": (True,)}),
}
FEWER = MarginalPromise(**PART | {"n_calibration": 480})
EACH = {"names": ("price", "days"), "of_each": (MarginalPromise(**PART), FEWER)}
MADE |= {
    "marginal, several targets": MarginalPromise(**PART, targets=3),
    "pac, two targets": PacPromise(**PART, delta=0.1, targets=2),
    "each target": EachPromise(**WHOLE, **EACH),
    "each target, pac": EachPromise(**WHOLE, delta=0.1, names=("a", "b"), of_each=(PacPromise(**PART, delta=0.1),) * 2),
}
SHOWN = {"confidence_level": (0.05, 0.95), "rank": (51, 951), "whole_line": (False, False), "n_calibration": 1000}
CROSSED = PART | {"fold_sizes": (50,) * 10}
MADE |= {
    "cv+": CvPlusPromise(**CROSSED),
    "cv+, whole line": CvPlusPromise(**FEW, fold_sizes=(4, 4), chosen_after=True),
    "cv-minmax": CvMinmaxPromise(**CROSSED),
    "distribution": DistributionPromise(**SHOWN),
    "distribution, entities": DistributionPromise(**SHOWN, entity="storm", n_rows=3000),
    "distribution, distinct rows": DistributionPromise(**SHOWN, entity="distinct row", n_rows=3000),
    "distribution, some infinite": DistributionPromise(**FEW),
    "probability": ProbabilityPromise(**WHOLE, event="above 3"),
    "fdr": FdrPromise(**WHOLE, event="above 3", n_asked=200, n_selected=12),
}
EVERY = pytest.mark.parametrize("own", MADE.values(), ids=MADE)
EXACT = [own for own in MADE.values() if own.binding and own.is_bound_known and own.is_testable]
EXACT = [own for own in EXACT if not own.is_parted and not own.is_of_each_target]
BINDING = pytest.mark.parametrize("own", EXACT)


def through_json(own):
    return Promise.from_dict(json.loads(json.dumps(own.to_dict())))


def test_every_kind_of_ours_is_tried():
    ours = {kind for kind, own in Promise.kinds.items() if own.__module__.startswith("guardband.")}
    kinds = {"none", "marginal", "pac", "pav", "overlap", "parts", "kept", "weighted", "estimated"}
    kinds |= {"long-run", "recent", "risk", "each", "cv+", "cv-minmax", "distribution", "probability", "fdr"}
    assert {own.kind for own in MADE.values()} == ours == kinds


@EVERY
def test_a_promise_survives_json(own):
    again = through_json(own)
    assert again == own
    assert type(again) is type(own)
    assert again.lines("m") == own.lines("m")
    assert again.expectations() == own.expectations()


@EVERY
def test_a_certificate_of_it_survives_json(own):
    certificate = gb.Certificate("m", own, len(own.confidence_level) == 1, ("a note",))
    assert gb.Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate


def test_a_certificate_is_read_where_nothing_was_calibrated_yet():
    certificate = gb.Certificate("conf-nn", MADE["marginal"], True)
    code = "import json, sys, guardband as gb; print(gb.Certificate.from_dict(json.load(sys.stdin)))"
    text = json.dumps(certificate.to_dict())
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(certificate)


@EVERY
def test_there_is_an_expectation_for_each_level_in_their_order(own):
    levels = tuple(one.level for one in own.expectations())
    assert levels == own.confidence_level or (not own.is_of_coverage and len(levels) == 1)
    assert own.headline("m")
    assert own.not_promised()


@BINDING
def test_bounds_and_averages_lie_between_none_and_all_and_a_whole_line_has_all(own):
    for delta in (0.01, 0.1, 0.5):
        every = zip(own.coverage_bound(delta), own.expected_coverage(), own.whole_line, strict=True)
        for bound, average, whole in every:
            assert (bound == 1) if whole else (0 < bound < 1)
            assert 0 < average <= 1


def test_coverage_on_average_is_that_of_the_rank_unless_there_are_too_few_rows():
    assert MADE["marginal, whole line"].expected_coverage() == (1, 5 / 9)
    assert MADE["pav, whole line"].expected_coverage() == (9 / 11,)
    infinite_scores = promise("marginal", 0.9, 1000, rank=901, whole_line=True)
    assert infinite_scores.expected_coverage() == (901 / 1001,)
    assert infinite_scores.coverage_bound(0.1) == MADE["marginal"].coverage_bound(0.1)


def test_joint_levels_of_pav_share_the_delta_of_a_bound_unless_it_holds_for_all_networks():
    numbers = TWO | PAV | {"aim": "pac", "joint": True}
    for rule, by, k in (("nested", 0.05, 900), ("paper", 0.01, 907)):
        own = promise("pav", **numbers, rule=rule, shares=2)
        assert own.coverage_bound(0.1)[0] == coverage_bound(by, k, 1000)


@pytest.mark.parametrize("kind", ["marginal", "pac"])
@pytest.mark.parametrize(("level", "delta"), [(1 - 1e-11, 1e-12), (0.9, 1e-20), (1 - 2**-53, 1e-300)])
def test_nothing_short_of_all_is_called_all(kind, level, delta):
    own = promise(kind, level, 1000, rank=1000, delta=delta if kind == "pac" else None)
    for words in (*own.lines("m"), own.headline("m"), *own.not_promised()):
        assert "100%" not in words


@BINDING
def test_a_smaller_delta_has_a_smaller_bound(own):
    strict, lax = own.coverage_bound(0.01), own.coverage_bound(0.3)
    assert all(a < b or whole for a, b, whole in zip(strict, lax, own.whole_line, strict=True))


@BINDING
def test_the_law_of_one_row_has_the_average_coverage_and_tests_hold_at_what_is_promised(own):
    for one, average, whole in zip(own.expectations(), own.expected_coverage(), own.whole_line, strict=True):
        assert one.expected in one.tests
        missed = one.expected.p_value(0, 1)
        if whole:
            assert (one.expected, missed) == (Law(), 0)
        elif one.expected.candidates == 1:
            assert 1 - missed == pytest.approx(average, rel=1e-9)
        if one.share is not None and not whole:
            assert Law(share=one.share) in one.tests
        for m in (50, 2000):
            least = one.least(m, 0.01)
            assert one.p_value(least, m) >= 0.01
            assert least == 0 or one.p_value(least - 1, m) < 0.01


@BINDING
def test_a_share_is_promised_unless_it_is_on_average(own):
    for one, share, whole in zip(own.expectations(), own.promised(), own.whole_line, strict=True):
        assert one.share == (1 if whole else None if own.on_average else share)


def test_nothing_is_known_of_coverage_where_nothing_is_promised():
    for ask in (lambda: MADE["none"].coverage_bound(0.1), MADE["none"].expected_coverage):
        with pytest.raises(ValueError, match=r"promises no coverage: it is so. Use method="):
            ask()
    assert [one.share for one in MADE["none"].expectations()] == [None]


def test_a_promise_of_ones_own_registers_itself_and_survives_json():
    @dataclass(frozen=True, kw_only=True)
    class Yearly(NoPromise):
        kind = "test-yearly"
        years: tuple[int, ...]

        def expectations(self):
            return tuple(Expectation(level, Law(share=level), (Law(share=level),), None) for level in (0.9,))

    own = Yearly(confidence_level=(0.9,), n_calibration=9, whole_line=(False,), reason="time passes", years=(1, 2))
    try:
        assert Promise.kinds["test-yearly"] is Yearly
        assert through_json(own) == own
        assert through_json(own).years == (1, 2)
        assert gb.Certificate("m", own, True).kind == "test-yearly"
    finally:
        del Promise.kinds["test-yearly"]


def test_a_class_without_a_kind_of_its_own_takes_none():
    class Same(NoPromise):
        pass

    assert Promise.kinds["none"] is NoPromise


def test_an_unknown_kind_is_refused_with_what_to_do():
    entries = MADE["marginal"].to_dict() | {"kind": "bespoke"}
    with pytest.raises(ValueError, match=r"promise 'bespoke' is not known. Import the module that defines it"):
        Promise.from_dict(entries)


def test_a_promise_needs_a_kind_of_its_own_that_is_not_guardbands():
    numbers = {"confidence_level": (0.9,), "n_calibration": 9, "whole_line": (False,), "rank": (9,)}

    @dataclass(frozen=True, kw_only=True)
    class Nameless(MarginalPromise):
        pass

    with pytest.raises(TypeError, match=r"Nameless has no kind of its own. Set"):
        Nameless(**numbers)
    with pytest.raises(TypeError, match=r"already uses the kind 'marginal'. Give Usurper another"):

        class Usurper(MarginalPromise):
            kind = "marginal"

    assert Promise.kinds["marginal"] is MarginalPromise


def test_the_words_of_a_reason_are_no_part_of_the_promise():
    own = MADE["none"]
    assert replace(own, reason="it is so, in the words of an older version") == own
    assert replace(own, n_calibration=51) != own


def test_what_a_promise_is_not_unless_it_says_so():
    own = MADE["none"]
    assert (own.is_parted, own.side, own.n_targets, own.all_targets, own.is_of_each_target) == (
        False,
        "both",
        1,
        "",
        False,
    )
    assert (own.chosen_from, own.is_bound_known, own.counts_rows_inside, own.is_testable) == (1, True, True, True)
    assert (own.why_untestable(), own.why_infinite(0), own.risk_figures(), own.risk_entries()) == ("", "", [], None)
    assert (own.is_of_new_rows, own.is_of_coverage) == (True, True)
    assert (own.guarantee, own.least_rows(), own.statements()) == ("none", None, (Part(own),))
    assert own.of_target(0) is own.widened() is own
    assert MADE["none, whole line"].some_infinite == (True,)
    assert own.tails() == ((pytest.approx(0.05),), (pytest.approx(0.05),))


def test_what_calibration_rows_settled_is_taken_from_another_promise():
    found = promise("marginal", 0.9, 8, rank=9, whole_line=True)
    assert MADE["marginal"].with_targets((), found) == found


def test_a_single_row_is_counted_as_one():
    assert [promise("none", 0.9, n).counted for n in (0, 1, 2)] == [
        "0 calibration rows",
        "1 calibration row",
        "2 calibration rows",
    ]
    storms = [promise("none", 0.9, n).of_entities("storm", 9).counted for n in (0, 1, 2)]
    assert storms == [
        f"{n} calibration {what} (storm)" for n, what in ((0, "entities"), (1, "entity"), (2, "entities"))
    ]
    assert promise("none", 0.9, 1).of_entities("distinct row", 9).counted == "1 different calibration row"


def test_the_price_of_a_part_is_a_share_of_what_all_rows_would_have():
    def cost(width, plain):
        return Part(MADE["marginal"], width=width, plain_width=plain).cost

    assert cost((3.0, 1.0), (2.0, 4.0)) == (0.5, -0.75)
    assert cost((3.0, 1.0), (2.0, 0.0)) is None
    assert cost((3.0, 1.0), (0.25, 0.5)) == (11.0, 1.0)
    assert cost(None, (1.0,)) is cost((1.0,), None) is None


def test_a_method_without_a_promise_says_so_in_these_words():
    own = promise("none", (0.9, 0.5), 1250)
    assert not own.binding
    assert own.lines("bayes") == [
        "Promise: none. bayes aims at 90% / 50%, but it is so.",
        "How: bayes was given 1,250 calibration rows.",
        'What to do: use method="conf-nn" or "pav" for a promise. Or audit the intervals on new rows.',
    ]
    assert own.headline("bayes") == "Nothing is promised: bayes aims at 90%, but it is so."
    assert own.not_promised() == [
        "Any coverage. New rows may be covered less often than the rows shown here.",
        'Use method="conf-nn" or "pav" for a promise.',
    ]


def test_a_kind_of_ones_own_may_be_defined_again():
    def defined():
        @dataclass(frozen=True, kw_only=True)
        class Yearly(NoPromise):
            kind = "test-yearly"

        return Yearly

    try:
        defined()
        assert defined() is Promise.kinds["test-yearly"]
    finally:
        del Promise.kinds["test-yearly"]
