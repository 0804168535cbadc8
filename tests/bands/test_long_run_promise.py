"""The promise of an online rule speaks of the rows judged so far, and of nothing else."""

import pytest

import guardband as gb
from guardband.bands.certificate_card import certificate_card
from guardband.bands.law import Expectation, Law
from guardband.bands.long_run_promise import LongRunPromise
from guardband.bands.recent_promise import RecentPromise

NUMBERS = {"confidence_level": (0.9,), "n_calibration": 300, "whole_line": (False,), "judged": 1000, "misses": 80}
OWN = LongRunPromise(**NUMBERS, rule="aci", most_waiting=1, most_short=40.0, most_over=20.0)


def changed(**numbers):
    return LongRunPromise(**NUMBERS | {"rule": "aci", "most_waiting": 1, "most_short": 40, "most_over": 20} | numbers)


def test_limits_are_shares_of_the_rows_judged_so_far():
    assert OWN.miss_limits() == pytest.approx((0.06, 0.12))
    assert OWN.expected_coverage() == OWN.coverage_bound(0.5) == OWN.coverage_bound(1e-9) == pytest.approx((0.88,))
    assert changed(judged=10, misses=0).miss_limits() == (0, 1)
    assert changed(judged=0, misses=0).coverage_bound(0.1) == (0,)


def test_it_says_what_it_promises_and_what_it_does_not():
    text = str(gb.Certificate("conf-nn", OWN, True))
    assert "in the long run, at least 90% of rows fall inside their intervals" in text
    assert "80 were misses, which is 8.0%. So far this share cannot be below 6% or above 12%" in text
    assert "at least 88%" in text
    assert "Not promised: coverage of the next row" in text
    assert "Assumes: nothing about the rows" in text
    assert "Up to 24 rows waited" in str(gb.Certificate("conf-nn", changed(most_waiting=24), True))
    assert "nothing follows yet" in str(gb.Certificate("conf-nn", changed(judged=0, misses=0), True))
    assert "at or below their upper bounds" in changed(of_side="upper").headline("conf-nn")


def test_limits_are_rounded_so_that_what_is_said_holds():
    text = str(gb.Certificate("conf-nn", changed(most_short=40.06, most_over=20.04), True))
    assert "cannot be below 5.99% or above 12.01%, so coverage of the judged rows is at least 87.99%" in text


def test_an_audit_of_other_rows_cannot_judge_it():
    assert not OWN.is_testable
    assert "promises coverage of the rows that it judged itself" in OWN.why_untestable()
    (one,) = OWN.expectations()
    assert one.p_value(0, 1000) == 1


def test_its_card_says_nothing_of_new_rows():
    card = certificate_card(gb.Certificate("conf-nn", OWN, True))
    assert "Coverage of rows so far" in card
    assert "Expected coverage" not in card


def test_recent_rows_promise_the_level_only_if_rows_do_not_change():
    own = RecentPromise(**NUMBERS, half_life=300.0)
    assert own.expected_coverage() == (0.9,)
    assert own.coverage_bound(0.5) == pytest.approx((0.8,))
    text = str(gb.Certificate("conf-nn", own, True))
    assert "as long as rows do not change, at least 90% of new rows" in text
    assert "Not promised: coverage if rows change, neither now nor in the long run" in text


def recent(**numbers):
    return RecentPromise(**NUMBERS | {"half_life": 300.0} | numbers)


def test_few_rows_have_limits_of_their_own():
    assert changed(judged=1, misses=0, most_short=0.05, most_over=0.3).miss_limits() == pytest.approx((0.05, 0.4))
    assert changed(judged=0, misses=0).miss_limits() == (0, 1)


def test_what_is_said_in_the_long_run_is_said_whole():
    assert OWN.lines("cqr") == [
        "Promise: in the long run, at least 90% of rows fall inside their intervals, whatever rows come and however "
        "they change.",
        "How: the rule 'aci' widens the intervals of cqr after a miss, and narrows them after other rows. It started "
        "from 300 calibration rows.",
        "Coverage: of 1,000 judged rows, 80 were misses, which is 8.0%. So far this share cannot be below 6% or above "
        "12%, so coverage of the judged rows is at least 88%.",
        "Assumes: nothing about the rows. Only rows whose true value has arrived are counted.",
        "Not promised: coverage of the next row, of any stretch of rows or of a group, or narrow intervals.",
    ]
    assert (
        changed(most_waiting=2)
        .lines("cqr")[1]
        .endswith(
            "from 300 calibration rows. Up to 2 rows waited for their true values at once, which weakens the limits."
        )
    )
    assert OWN.headline("cqr") == "I" + OWN.lines("cqr")[0].removeprefix("Promise: i")
    assert OWN.counted == "300 calibration rows, 1,000 judged rows"
    assert changed(judged=1).counted == "300 calibration rows, 1 judged row"


def test_what_is_said_of_recent_rows_is_said_whole():
    promised = "s long as rows do not change, at least 90% of new rows fall inside their intervals, on average."
    assert recent().lines("cqr") == [
        f"Promise: a{promised}",
        "How: cqr counts past rows by their age. A row counts half after 300 further rows. It started from 300 "
        "calibration rows.",
        "Coverage: of 1,000 judged rows, 80 were misses, which is 8.0%.",
        "Assumes: rows come from one source that does not change, in no particular order (exchangeable).",
        "Not promised: coverage if rows change, neither now nor in the long run. For that, use the rule 'aci'.",
    ]
    assert recent().headline("cqr") == f"A{promised}"
    assert recent(judged=0, misses=0).lines("cqr")[2] == "Coverage: of 0 judged rows, 0 were misses."
    assert "at or above their lower bounds" in recent(of_side="lower").headline("cqr")
    assert [len(own.not_promised()) for own in (OWN, recent())] == [4, 4]
    assert 'use the rule "aci"' in recent().why_untestable()


@pytest.mark.parametrize("own", [OWN, recent()])
def test_the_level_is_a_yardstick_and_no_count_contradicts_it(own):
    (one,) = own.expectations()
    assert one == Expectation(0.9, Law(share=0.9, open=True), (Law(share=0.0, open=True),), None)
    assert not own.is_testable
    assert not own.is_bound_known


def test_infinite_intervals_by_recent_rows_contain_all():
    own = recent(whole_line=(True,))
    assert own.expected_coverage() == own.coverage_bound(0.01) == (1.0,)
