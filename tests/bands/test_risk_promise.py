"""The promise of a risk: of a mean loss and nothing else."""

import math

import pytest

import guardband as gb
from guardband.bands.certificate_card import certificate_card
from guardband.bands.law import Law
from guardband.bands.risk_bounds import excess_p_value, mean_below, risk_budget
from guardband.bands.risk_promise import RiskPromise
from guardband.monitor.watched import watched

NUMBERS = {"confidence_level": (0.9,), "n_calibration": 500, "whole_line": (False,), "covered": (420,)}
MEAN = RiskPromise(**NUMBERS, limit=5.0, cap=100.0)
PAC = RiskPromise(**NUMBERS, limit=5.0, cap=100.0, delta=0.1)
IDENTICAL = (
    "calibration rows and new rows are independent draws from the same source (independent and identically distributed)"
)
NOT = (
    "Not promised: any coverage, a limit for a single row or for a group, or anything for rows from another source or "
    "a later time if the data have changed."
)


def rounded_up(value):
    """Return a number of one digit before the comma with three behind it, or a larger one with as many digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / step) * step:,.4g}"


def least_bound(total, n, delta):
    """Return the least mean of n losses of at most 100 that makes so small a total as unlikely as delta, rounded up."""
    low, high = total / n, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_below(n, total / 100, middle / 100) > delta else (low, middle)
    return rounded_up(high)


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


def test_a_mean_distance_is_said_in_these_words():
    bound = least_bound(2405, 500, 0.1)
    promised = "the mean distance of new values{} from their intervals is at most 5. A value inside counts 0, and a "
    promised += "single distance counts at most 100."
    assert MEAN.lines("cqr") == [
        f"Promise: on average over possible calibration sets, {promised.format('')}",
        "How: cqr made the intervals just wide enough to keep the total loss of the 500 calibration rows at or below "
        "2,405. They contain 84.0% of these rows.",
        f"Mean distance: at most 5 is expected. For these calibration rows it is at most {bound}, with 90% confidence.",
        "Assumes: new rows come from the same source as the calibration rows, in no particular order (exchangeable). "
        "The figure for these calibration rows also needs independent rows.",
        NOT,
    ]
    assert MEAN.headline("cqr") == (
        f"On average over possible calibration sets, {promised.format(' from the same source')}"
    )
    assert MEAN.not_promised() == [
        "Any coverage. The promise is about how far values lie outside, not about how many do.",
        "A limit for a single row. One row can count up to 100, and lie further outside.",
        "A limit within a group. Some groups may have a larger mean, and others a smaller one.",
        "Anything for rows from another source, or from a later time if the data have changed.",
        "Narrow intervals or accurate predictions.",
        f"The limit for every calibration set. For the set used here, the mean is at most {bound} with 90% confidence, "
        "if the rows are independent.",
    ]
    assert MEAN.risk_figures() == [
        ("Mean distance", "at most 5"),
        ("A single row counts", "at most 100"),
        ("Mean distance, with 90% confidence", f"at most {bound}"),
        ("Calibration rows inside", "420 of 500"),
    ]
    assert MEAN.risk_entries()["bound"] == MEAN.risk_bound(0.1)
    assert (MEAN.is_of_coverage, MEAN.is_bound_known, MEAN.is_testable) == (False, False, False)


def test_a_loss_given_the_data_is_said_in_these_words():
    own = RiskPromise(**NUMBERS, limit=5.0, cap=100.0, delta=0.05, loss="own")
    promised = "the mean of your loss over new rows{} is at most 5. A single row counts at most 100."
    assert own.lines("cqr") == [
        f"Promise: with 95% confidence, {promised.format('')}",
        "How: cqr made the intervals just wide enough to keep the total loss of the 500 calibration rows at or below "
        f"{rounded_up(risk_budget(5, 100, 500, 0.05))}. They contain 84.0% of these rows.",
        "Mean loss: for these calibration rows it is at most 5, with 95% confidence.",
        f"Assumes: {IDENTICAL}, and your loss never grows when an interval grows.",
        NOT,
    ]
    assert own.headline("cqr") == f"With 95% confidence, {promised.format(' from the same source')}"
    assert own.not_promised()[0] == (
        "Any coverage. The promise is about your loss, not about how many values lie outside."
    )
    assert own.not_promised()[-1] == "Certainty. Up to 5% of possible calibration sets give a larger mean."
    assert own.risk_figures()[0] == ("Mean loss", "at most 5")
    assert own.risk_entries()["bound"] == 5
    assert PAC.assumption == IDENTICAL


def test_what_is_said_not_to_be_exceeded_is_rounded_up():
    own = RiskPromise(**NUMBERS, limit=1234.2, cap=56789.01, delta=0.1)
    assert (
        "is at most 1,235. A value inside counts 0, and a single distance counts at most 56,790." in own.lines("c")[0]
    )
    assert own.risk_figures()[0] == ("Mean distance", "at most 1,235")


def test_with_too_few_rows_it_says_how_many_it_needs():
    few = RiskPromise(**NUMBERS | {"n_calibration": 18, "covered": (18,), "whole_line": (True,)}, limit=5.0, cap=100.0)
    assert few.lines("cqr")[1] == (
        "How: cqr made the intervals just wide enough to keep the total loss of the 18 calibration rows at or below 0. "
        "They contain 100% of these rows. The intervals are infinite."
    )
    assert few.risk_bound(0.1) == 0
    assert few.least_rows() == 19
    assert few.why_infinite(0) == (
        "18 calibration rows, and this risk needs 19. Calibrate on more rows, or lower the cap."
    )
    enough = RiskPromise(**NUMBERS | {"n_calibration": 19, "covered": (19,)}, limit=5.0, cap=100.0)
    assert enough.budget == 0
    assert enough.risk_bound(0.1) == pytest.approx(100 * (1 - 0.1 ** (1 / 19)))  # no loss in 19 rows
    assert enough.why_infinite(0).startswith("too many predictions are not finite, or have no width.")
    shortly = RiskPromise(**NUMBERS | {"n_calibration": 18}, limit=5.0, cap=95.5)
    assert shortly.budget == -0.5
    assert shortly.risk_bound(0.1) == pytest.approx(95.5 * (1 - 0.1 ** (1 / 18)))
    assert shortly.why_infinite(0).startswith("18 calibration rows, and this risk needs 19.")
    assert RiskPromise(**NUMBERS, limit=5.0, cap=100.0, delta=0.1).least_rows() == 45


def test_the_share_inside_is_a_yardstick_that_no_count_contradicts():
    def yardstick(covered, whole=False):
        (one,) = RiskPromise(
            **NUMBERS | {"covered": (covered,), "whole_line": (whole,)}, limit=5, cap=100
        ).expectations()
        assert one.tests == (Law(share=0.0, open=True),)
        assert one.share is None
        return one.level, one.expected

    assert yardstick(420) == (420 / 501, Law((420, 500), open=True))
    assert yardstick(500) == (500 / 501, Law((500, 500), open=True))
    assert yardstick(0) == (0.5 / 501, Law((1, 500), open=True))
    assert yardstick(500, whole=True) == (500 / 501, Law(open=True))


def test_the_p_value_counts_losses_in_units_of_the_cap():
    assert MEAN.p_value(900.0, 100) == excess_p_value(500, 24.05, 100, 9.0) < 1


def test_repeated_rows_and_entities_are_named():
    distinct = MEAN.of_entities("distinct row", 9000)
    assert distinct.headline("cqr").startswith(
        "On average over possible calibration sets, the mean distance of new values from the same source that repeat "
        "no row of the table from their intervals"
    )
    assert distinct.lines("cqr")[1].endswith(" 84.0% of these rows. Repeated rows count once (9,000 rows in all).")
    assert " total loss of the 500 different calibration rows " in distinct.lines("cqr")[1]
    storms = MEAN.of_entities("storm", 9000)
    assert storms.headline("cqr").startswith(
        "On average over possible calibration sets, the mean distance of values drawn at random, one from each new "
        "storm from the same source, from their intervals"
    )
    assert storms.lines("cqr")[1].endswith(" guardband drew one row from each storm (9,000 rows in all).")
