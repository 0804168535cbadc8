"""The promise of a risk: of a mean loss and nothing else."""

import pytest

import guardband as gb
from guardband.bands.certificate_card import certificate_card
from guardband.bands.risk_bounds import mean_below, risk_budget
from guardband.bands.risk_promise import RiskPromise
from guardband.monitor.watched import watched

NUMBERS = {"confidence_level": (0.9,), "n_calibration": 500, "whole_line": (False,), "covered": (420,)}
MEAN = RiskPromise(**NUMBERS, limit=5.0, cap=100.0)
PAC = RiskPromise(**NUMBERS, limit=5.0, cap=100.0, delta=0.1)


def certificate(promise):
    return gb.Certificate("conf-nn", promise, True)


def test_it_says_what_it_promises_and_what_it_does_not():
    text = str(certificate(MEAN))
    assert "on average over possible calibration sets, the mean distance of new values from their intervals is" in text
    assert "is at most 5. A value inside counts 0, and a single distance counts at most 100." in text
    assert "They contain 84.0% of these rows." in text
    assert "Not promised: any coverage" in text
    assert "with 90% confidence, the mean distance" in str(certificate(PAC))
    own = RiskPromise(**NUMBERS, limit=5.0, cap=100.0, loss="own")
    assert "the mean of your loss over new rows is at most 5" in str(certificate(own))
    assert "your loss never grows" in certificate(own).assumption


def test_no_coverage_is_promised():
    own = certificate(MEAN)
    assert own.kind == "risk"
    assert own.confidence_level is None
    for ask in (lambda: own.expected_coverage, own.coverage_bound):
        with pytest.raises(ValueError, match="promises no coverage"):
            ask()
    assert own.to_dict()["coverage_bound"] is None
    (one,) = MEAN.expectations()
    assert one.p_value(0, 1000) == 1


@pytest.mark.parametrize("promise", [MEAN, PAC])
def test_the_mean_for_these_calibration_rows_is_bounded(promise):
    for delta in (0.5, 0.05, 1e-4):
        bound = promise.risk_bound(delta)
        budget = risk_budget(5.0, 100.0, 500, promise.delta)
        assert mean_below(500, budget / 100, bound / 100) <= delta < mean_below(500, budget / 100, bound / 100 - 1e-9)
    assert PAC.risk_bound(0.1) == 5
    assert certificate(PAC).risk == {"limit": 5, "cap": 100, "loss": "distance", "bound": 5}


def test_json_gives_the_same_certificate():
    for promise in (MEAN, PAC):
        own = certificate(promise)
        assert gb.Certificate.from_dict(own.to_dict()) == own


def test_its_card_shows_the_risk_and_no_level():
    card = certificate_card(certificate(MEAN))
    assert "Mean distance" in card
    assert "Confidence level" not in card
    assert "coverage, with" not in card.lower()


def test_a_monitor_refuses_it_and_says_what_to_do():
    with pytest.raises(ValueError, match=r"cannot be monitored\. It limits a mean loss"):
        watched(MEAN, 0.01)


def test_rows_that_belong_together_are_named():
    text = str(certificate(MEAN.of_entities("customer", 900)))
    assert "values drawn at random, one from each new customer," in text
    assert "guardband drew one row from each customer (900 rows in all)." in text
    assert "that repeat no row" in str(certificate(MEAN.of_entities("distinct row", 900)))
