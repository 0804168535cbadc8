"""What a certificate of a rank says, word for word; its figures are those of scipy and of fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from guardband.bands.law import Law
from guardband.bands.promise import DISTINCT_ROW
from guardband.bands.rank_promise import MarginalPromise, OverlapPromise, PacPromise
from guardband.bands.ranks import simultaneous_bound

TWO = {"confidence_level": (0.9, 0.5), "n_calibration": 1000, "rank": (901, 501), "whole_line": (False, False)}
PAC = TWO | {"rank": (913, 521), "delta": 0.05}
FEW = TWO | {"n_calibration": 8, "rank": (9, 5), "whole_line": (True, False)}
AVERAGE = "Promise: on average over possible calibration sets, at least 90% / 50% of"
MADE = "How: cqr made the intervals just wide enough to contain"
EXCHANGEABLE = (
    "Assumes: new rows come from the same source as the calibration rows, in no particular order (exchangeable). The "
    "figure for these calibration rows also needs independent rows."
)
INDEPENDENT = (
    "Assumes: calibration rows and new rows are independent draws from the same source (independent and identically "
    "distributed)."
)
NOT = (
    "Not promised: coverage for a single row or for a group, or for rows from another source or a later time if the "
    "data have changed."
)
OTHER_LEVEL = " The same holds for 50%, each with its own intervals."
SINGLE = "Coverage for a single row. The promise is about all rows together, and some rows are harder to predict."
GROUP = "Coverage within a group. Some groups may be covered less often, and others more often."
SOURCE = "Coverage for rows from another source, or from a later time if the data have changed."
NARROW = "Narrow intervals or accurate predictions."


def down(*shares):
    """Return shares in percent with two digits, rounded down."""
    return " / ".join(f"{math.floor(10_000 * Fraction(share)) / 100:g}%" for share in shares)


def coverage(expected, bound, confidence="90%"):
    return (
        f"Coverage: at least {down(*expected)} is expected. For these calibration rows it is at least {down(*bound)}, "
        f"with {confidence} confidence."
    )


EXPECTED = (Fraction(901, 1001), Fraction(501, 1001))
BOUND = tuple(beta.ppf(0.1, (901, 501), (100, 500)))


def test_a_level_on_average_is_said_in_these_words():
    own = MarginalPromise(**TWO)
    assert own.lines("cqr") == [
        f"{AVERAGE} new rows fall inside their intervals, for each level separately.",
        f"{MADE} 901 / 501 of the 1,000 calibration rows.",
        coverage(EXPECTED, BOUND),
        EXCHANGEABLE,
        NOT,
    ]
    assert own.headline("cqr") == (
        "On average over possible calibration sets, at least 90% of new rows from the same source fall inside their "
        f"intervals.{OTHER_LEVEL}"
    )
    assert own.not_promised() == [
        SINGLE,
        GROUP,
        SOURCE,
        NARROW,
        "The level for every calibration set. For the set used here, coverage is at least "
        f"{down(BOUND[0])} with 90% confidence, if the rows are independent.",
    ]
    one = MarginalPromise(**{name: v[:1] if isinstance(v, tuple) else v for name, v in TWO.items()})
    assert one.lines("cqr")[0] == f"{AVERAGE.replace(' / 50%', '')} new rows fall inside their intervals."
    assert one.headline("cqr").endswith("fall inside their intervals.")


def test_too_few_rows_are_said_with_the_level_that_has_them():
    own = MarginalPromise(**FEW)
    assert own.lines("cqr")[1:3] == [
        f"{MADE} 5 of the 8 calibration rows. The intervals are infinite at 90%.",
        f"Coverage: at least 100% / {down(Fraction(5, 9))} is expected. For these calibration rows it is at least "
        f"100% / {down(beta.ppf(0.1, 5, 4))}, with 90% confidence.",
    ]
    none = MarginalPromise(**FEW | {"rank": (9, 9), "whole_line": (True, True)})
    assert none.lines("cqr")[1:3] == [
        "How: cqr has too few calibration rows (8) for 90% / 50% intervals. The intervals are infinite at 90% / 50%.",
        "Coverage: 100% / 100% is expected. For these calibration rows it is 100% / 100%, with 90% confidence.",
    ]
    whole = {name: v[:1] if isinstance(v, tuple) else v for name, v in FEW.items()}
    assert MarginalPromise(**whole).lines("cqr")[1].endswith("for 90% intervals. The intervals are infinite.")
    exact = MarginalPromise(**FEW | {"rank": (8, 5), "whole_line": (False, False)})
    assert exact.lines("cqr")[1] == f"{MADE} 8 / 5 of the 8 calibration rows."


def test_entities_that_share_a_weight_are_said_to():
    own = MarginalPromise(**TWO, entity="patient", n_rows=5000, shared=True)
    # the weight inside is level (n + 1), rounded down, and shares in place of counts cost a factor e
    bound = beta.ppf(0.1 / math.e, (900, 500), (101, 501))
    assert own.lines("cqr") == [
        f"{AVERAGE} rows drawn at random, one from each new patient, fall inside their intervals, for each level "
        "separately.",
        f"{MADE} 901 / 501 of the 1,000 calibration entities (patient). All rows of one patient together count once "
        "(5,000 rows in all).",
        coverage((0.9, 0.5), bound),
        "Assumes: each new patient comes from the same source as those of the calibration rows, in no particular order "
        "(exchangeable). The figure for these calibration rows also needs independent entities.",
        NOT,
    ]
    assert own.not_promised()[:6] == [
        SINGLE,
        GROUP,
        "Coverage for further rows of any patient that is already in the table.",
        "A share of all rows. Each patient counts the same, however many rows it has.",
        SOURCE,
        NARROW,
    ]
    assert [law.expected for law in own.expectations()] == [
        Law((k, 1000), candidates=math.e, open=True) for k in (900, 500)
    ]
    assert "from each new patient from the same source, fall inside" in own.headline("cqr")
    few = MarginalPromise(**FEW, entity="patient", n_rows=50, shared=True)
    assert few.expected_coverage() == (1.0, 0.5)
    assert few.coverage_bound(0.1) == (1.0, pytest.approx(beta.ppf(0.1 / math.e, 4, 5)))
    most = MarginalPromise(**FEW | {"rank": (8, 5)}, entity="patient", n_rows=50, shared=True)
    assert most.expected_coverage() == (0.9, 0.5)
    assert most.coverage_bound(0.1)[0] == pytest.approx(beta.ppf(0.1 / math.e, 8, 1))


def test_a_level_chosen_after_calibration_has_a_note_and_the_bound_for_all_levels():
    said = MarginalPromise(**TWO, chosen_after=True).lines("cqr")
    assert said[2] == coverage(EXPECTED, [simultaneous_bound(0.1, k, 1000) for k in (901, 501)])
    assert said[-1] == (
        "Note: you chose this level after calibration. If you looked at intervals to choose it, only the figure for "
        "these calibration rows is valid. It holds for all levels at once."
    )
    shared = MarginalPromise(**TWO, entity="patient", n_rows=5000, shared=True, chosen_after=True)
    gap = math.sqrt(math.log(2 * math.e / 0.1) / 2000)
    assert shared.coverage_bound(0.1) == pytest.approx((0.9 - gap, 0.5 - gap))
    pac = PacPromise(**PAC, chosen_after=True)
    assert pac.lines("cqr")[-1] == said[-1]
    assert pac.coverage_bound(0.1) == tuple(simultaneous_bound(0.1, k, 1000) for k in (913, 521))


def test_several_targets_are_promised_at_once_and_one_of_them_alone():
    all_three, one = MarginalPromise(**TWO).of_targets(3), MarginalPromise(**TWO).of_targets(2).of_target(0)
    assert all_three.lines("cqr")[:2] == [
        f"{AVERAGE} new rows have all 3 targets inside their intervals, for each level separately.",
        f"{MADE} all 3 targets in 901 / 501 of the 1,000 calibration rows.",
    ]
    assert "of new rows from the same source have all 3 targets inside their intervals." in all_three.headline("cqr")
    assert all_three.not_promised()[:2] == [
        "Exactly the level for one target. Each target alone is inside at least as often as all are.",
        SINGLE,
    ]
    assert one.lines("cqr")[:2] == [
        f"{AVERAGE} new rows fall inside their intervals, for each level separately.",
        f"{MADE} both targets in 901 / 501 of the 1,000 calibration rows. For this target alone, coverage is at least "
        "as high.",
    ]
    assert one.not_promised()[:2] == [
        "Exactly the level for this target. It is inside at least as often as both targets together.",
        SINGLE,
    ]
    two = MarginalPromise(**TWO).of_targets(2)
    assert two.not_promised()[0] == all_three.not_promised()[0]
    assert (all_three.n_targets, all_three.all_targets, one.n_targets, one.all_targets) == (3, "all 3 targets", 1, "")
    assert [law.expected.open for law in (*all_three.expectations(), *one.expectations())] == [False] * 2 + [True] * 2
    plain = MarginalPromise(**TWO)
    assert plain.of_target(0) == plain
    assert not {"targets", "shared_by"} & set(plain.to_dict())
    assert (all_three.to_dict()["targets"], one.to_dict()["shared_by"]) == (3, 2)


def test_a_promise_given_the_data_is_said_in_these_words():
    own = PacPromise(**PAC, candidates=4)
    # one of four may be picked: its chance to fall short of t is at most four times that of a count
    expected = [
        quad(lambda t, k=k: 1 - min(1, 4 * binom.sf(k - 1, 1000, t)), 0, 1, points=[k / 1000])[0] for k in (913, 521)
    ]
    assert own.expected_coverage() == pytest.approx(expected, abs=1e-6)
    bound = beta.ppf(0.05 / 4, (913, 521), (88, 480))
    assert own.lines("cqr") == [
        "Promise: with 95% confidence, at least 90% / 50% of all new rows fall inside their intervals, for each level "
        "separately.",
        f"{MADE} 913 / 521 of the 1,000 calibration rows. This is one of 4 candidates, chosen by these calibration "
        "rows. The promise holds for whichever you choose.",
        coverage(expected, bound, "95%"),
        INDEPENDENT,
        NOT,
    ]
    assert own.headline("cqr") == (
        "With 95% confidence, at least 90% of all new rows from the same source fall inside their intervals."
        f"{OTHER_LEVEL}"
    )
    last = "Certainty. Up to 5% of possible calibration sets give intervals that cover fewer rows."
    assert own.not_promised() == [SINGLE, GROUP, SOURCE, NARROW, last]
    for expectation, k, level in zip(own.expectations(), (913, 521), (0.9, 0.5), strict=True):
        assert expectation.expected == Law((k, 1000), candidates=4, open=True)
        assert expectation.tests == (expectation.expected, Law(share=level))
        assert expectation.share == level
    alone = PacPromise(**PAC)
    assert [one.expected for one in alone.expectations()] == [Law((k, 1000)) for k in (913, 521)]
    assert ("candidates" in alone.to_dict(), own.to_dict()["candidates"]) == (False, 4)
    assert alone.chosen_among(4, 0.05) == own
    assert own.chosen_from == 4


def test_entities_given_the_data_are_drawn_and_repeated_rows_count_once():
    drawn = PacPromise(**PAC, entity="patient", n_rows=5000)
    assert drawn.lines("cqr")[:4] == [
        "Promise: with 95% confidence, at least 90% / 50% of rows drawn at random, one from each new patient, fall "
        "inside their intervals, for each level separately.",
        f"{MADE} 913 / 521 of the 1,000 calibration entities (patient). guardband drew one row from each patient "
        "(5,000 rows in all).",
        coverage((Fraction(913, 1001), Fraction(521, 1001)), beta.ppf(0.05, (913, 521), (88, 480)), "95%"),
        "Assumes: each new patient comes from the same source as those of the calibration rows, each independently "
        "(independent and identically distributed).",
    ]
    joint = PacPromise(**PAC, joint=True, entity=DISTINCT_ROW, n_rows=1200)
    bound = [simultaneous_bound(0.05, k, 1000) for k in (913, 521)]
    assert joint.lines("cqr") == [
        "Promise: with 95% confidence, at least 90% / 50% of all new rows that repeat no row of the table fall inside "
        "their intervals, for all levels at once.",
        f"{MADE} 913 / 521 of the 1,000 different calibration rows. Repeated rows count once (1,200 rows in all).",
        coverage((Fraction(913, 1001), Fraction(521, 1001)), bound, "95%"),
        INDEPENDENT,
        NOT,
        "Note: the promise holds for all levels at once. You may ask for other levels later and choose among them.",
    ]
    assert joint.not_promised()[2:4] == ["Coverage for new rows that repeat a row of the table.", SOURCE]
    distinct = MarginalPromise(**TWO, entity=DISTINCT_ROW, n_rows=1200)
    assert distinct.lines("cqr")[1].endswith("calibration rows. Repeated rows count once (1,200 rows in all).")
    assert distinct.lines("cqr")[3] == EXCHANGEABLE
    assert distinct.headline("cqr").startswith(
        "On average over possible calibration sets, at least 90% of new rows from the same source that repeat no row "
        "of the table fall inside their intervals."
    )


def test_groups_that_overlap_have_the_level_on_average_and_no_bound():
    own = OverlapPromise(**FEW)
    assert own.expected_coverage() == (1.0, 0.5)
    assert own.coverage_bound(0.1) == (1.0, 0.0)
    assert OverlapPromise(**FEW | {"rank": (8, 5)}).coverage_bound(0.1) == (0.0, 0.0)
    assert OverlapPromise(**FEW | {"rank": (8, 5)}).expected_coverage() == (0.9, 0.5)
    assert own.assumptions() == EXCHANGEABLE.removeprefix("Assumes: ").partition(" The figure")[0]
    assert [one.expected for one in own.expectations()] == [Law(), Law((5, 8), open=True)]
    assert (own.guarantee, own.is_bound_known) == ("marginal", False)


def test_extended_intervals_bound_the_count_from_below():
    law = MarginalPromise(**TWO).widened().law(1)
    assert law == Law((501, 1000), open=True)
    assert np.isclose(law.p_value(40, 100), MarginalPromise(**TWO).law(1).p_value(40, 100))
