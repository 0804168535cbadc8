"""The promise of an online rule speaks of the rows judged so far, and of nothing else."""

import pytest

import guardband as gb
from guardband.bands.certificate_card import certificate_card
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
