"""What a certificate of weights says, word for word, and the numbers that it says."""

import math
from fractions import Fraction

import pytest

from guardband.bands.law import Law
from guardband.bands.promise import DISTINCT_ROW
from guardband.bands.weighted_promise import EstimatedPromise, WeightedPromise

NUMBERS = {
    "confidence_level": (0.9, 0.8),
    "n_calibration": 1000,
    "whole_line": (False, False),
    "n_effective": 399.6,
    "largest_share": 0.0125,
    "most_weight": (9.5, 40.25),
    "infinite_share": (0.2, 0.0),
}
WHOLE = NUMBERS | {"whole_line": (True, True), "infinite_share": (1.0, 1.0)}
LEARNT = {"n_training": 9000, "n_target": 6000, "largest_weight": 3.5, "clipped": 1400, "unlike": 1200}
COUNTED = (
    "How: cqr counted each calibration row by its weight. The 1,000 calibration rows say as much as 400 rows of equal "
    "weight. The largest weight is 1.3% of the total."
)
SHIFT = (
    "Assumes: the weights say how the share of each kind of row changes. For given inputs, true values behave as "
    "before. Rows are drawn independently."
)
NOT = (
    "Not promised: coverage for these calibration rows alone, for a single row or a group, or for rows whose weights "
    "are wrong."
)
ABOVE = " Rows with a weight above 9.5 / 40.25 get infinite intervals"


def test_the_promise_is_said_in_these_words():
    own = WeightedPromise(**NUMBERS)
    assert own.lines("cqr") == [
        "Promise: on average over possible calibration sets, at least 90% / 80% of new rows fall inside their "
        "intervals. New rows are those that the weights describe.",
        f"{COUNTED}{ABOVE}, which is about 20.0% / 0% of new rows.",
        "Coverage: at least 90% / 80% is expected.",
        SHIFT,
        NOT,
    ]
    assert own.headline("cqr") == (
        "On average over possible calibration sets, at least 90% of new rows fall inside their intervals. New rows are "
        "those that the weights describe. The same holds for 80%, each with its own intervals."
    )
    one = {name: value[:1] if isinstance(value, tuple) else value for name, value in NUMBERS.items()}
    assert WeightedPromise(**one).headline("cqr").endswith("that the weights describe.")


def test_a_level_chosen_after_calibration_has_a_note():
    said = WeightedPromise(**NUMBERS, chosen_after=True).lines("cqr")
    assert said[-2:] == [
        NOT,
        "Note: you chose this level after calibration. If you looked at intervals, nothing is promised.",
    ]


def test_infinite_intervals_are_named_by_the_weights_that_have_them():
    def how(cls=WeightedPromise, **numbers):
        return cls(**NUMBERS | numbers).lines("cqr")[1].removeprefix(COUNTED)

    assert how(infinite_share=(0.0, 0.0)) == f"{ABOVE}."
    assert how(infinite_share=(0.0, 0.0), most_weight=(math.inf, math.inf)) == ""
    assert how(infinite_share=(0.0, 0.0), most_weight=(9.5, math.inf)).startswith(" Rows with a weight above 9.5 / ")
    assert how(whole_line=(True, False), infinite_share=(1.0, 0.0)) == f"{ABOVE}, which is about 100% / 0% of new rows."
    assert how(EstimatedPromise, **LEARNT | {"largest_weight": 9.5}, infinite_share=(0.0, 0.0)) == ""
    assert how(EstimatedPromise, **LEARNT | {"largest_weight": 9.6}, infinite_share=(0.0, 0.0)) == f"{ABOVE}."


def test_where_all_intervals_are_infinite_all_rows_are_inside():
    own = WeightedPromise(**WHOLE, entity=DISTINCT_ROW, n_rows=1100)
    assert own.lines("cqr")[:3] == [
        "Promise: on average over possible calibration sets, at least 90% / 80% of new rows that repeat no row of the "
        "table fall inside their intervals. New rows are those that the weights describe.",
        COUNTED.replace("1,000", "1,000 different") + " The intervals are infinite.",
        "Coverage: 100% / 100% is expected.",
    ]
    assert own.expected_coverage() == own.coverage_bound(0.1) == (1.0, 1.0)
    assert EstimatedPromise(**WHOLE, **LEARNT).coverage_bound(0.1) == (1.0, 1.0)
    assert own.why_infinite(1) == (
        "the weights leave as much as 399.6 rows of equal weight, which is too few for 80% intervals. Add calibration "
        "rows that are like those to predict, or choose a lower confidence level."
    )


def test_some_intervals_are_infinite_where_a_share_of_new_rows_has_them():
    assert WeightedPromise(**NUMBERS).some_infinite == (True, False)


def test_the_bound_given_the_data_is_that_of_markov():
    """Misses are 1 - level on average: more than that over delta at most a share delta of the time."""
    found = WeightedPromise(**NUMBERS).coverage_bound(0.25)
    assert found == pytest.approx(
        [float(1 - (1 - level) / Fraction(1, 4)) for level in (Fraction("0.9"), Fraction("0.8"))]
    )
    assert WeightedPromise(**NUMBERS).coverage_bound(0.1) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert WeightedPromise(**NUMBERS).coverage_bound(0.05) == (0.0, 0.0)
    assert EstimatedPromise(**NUMBERS, **LEARNT).coverage_bound(0.25) == (0.0, 0.0)


def test_it_is_no_bound_for_these_rows_that_an_audit_could_test():
    own = WeightedPromise(**NUMBERS)
    assert not own.is_bound_known
    assert not own.is_testable
    assert own.guarantee == "marginal"
    assert own.why_untestable() == (
        "With weights, nobody knows how far one calibration set may fall below the average. For a promise that an "
        'audit can test, calibrate with guarantee="pac" and max_weight.'
    )
    for expectation, level in zip(own.expectations(), (Fraction("0.9"), Fraction("0.8")), strict=True):
        assert expectation.expected == Law((math.ceil(level * 400), 399), open=True)
        assert expectation.tests == (Law(share=0.0, open=True),)
        assert [expectation.p_value(covered, 20) for covered in (0, 20)] == [1.0, 1.0]
    assert [own.expected for own in WeightedPromise(**WHOLE).expectations()] == [Law(), Law()]
    few = WeightedPromise(**NUMBERS | {"n_effective": 5.2}).expectations()
    assert [own.expected.rank for own in few] == [(5, 5), (5, 5)]


def test_estimated_weights_are_said_to_be_that():
    own = EstimatedPromise(**NUMBERS, **LEARNT)
    assert own.lines("cqr") == [
        "Promise: on average over possible calibration sets, about 90% / 80% of new rows fall inside their intervals. "
        "New rows are rows like those that you gave to for_target.",
        f"{COUNTED}{ABOVE}, which is about 20.0% / 0% of new rows.",
        "Weights: guardband estimated them from 9,000 training rows and 6,000 rows to predict. It limited weights to "
        "3.5, which changed 1,400 calibration rows. 1,200 of the rows to predict are unlike anything that was "
        "calibrated.",
        "Coverage: at least 90% / 80% would be expected with exact weights. Estimated weights lower it by at most half "
        "of their mean error, which nobody knows.",
        SHIFT,
        NOT,
    ]
    assert own.guarantee == "estimated"
    assert own.why_untestable() == (
        "The weights were estimated, so nothing exact is promised. For an exact promise, calibrate on rows like these."
    )
    distinct = EstimatedPromise(**NUMBERS, **LEARNT, entity=DISTINCT_ROW, n_rows=1100)
    assert "about 90% / 80% of new rows that repeat no row of the table fall" in distinct.lines("cqr")[0]
    one = EstimatedPromise(**NUMBERS, **LEARNT | {"clipped": 1, "unlike": 1}).lines("cqr")[2]
    assert one.endswith("changed 1 calibration row. 1 of the rows to predict is unlike anything that was calibrated.")
    none = EstimatedPromise(**NUMBERS, **LEARNT | {"clipped": 0, "unlike": 0}).lines("cqr")[2]
    assert none.endswith("which changed 0 calibration rows.")
    two = EstimatedPromise(**NUMBERS, **LEARNT | {"clipped": 2, "unlike": 2}).lines("cqr")[2]
    assert two.endswith("changed 2 calibration rows. 2 of the rows to predict are unlike anything that was calibrated.")
