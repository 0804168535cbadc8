"""What is promised of a network that was picked by its count: numbers from scipy, and the sentence with all of them."""

import math
from dataclasses import replace

import pytest
from scipy.stats import beta

from guardband.bands.law import Law
from guardband.bands.pav_promise import PavPromise

PROMISE = PavPromise(
    confidence_level=(0.9, 0.5),
    n_calibration=2000,
    rank=(1830, 1020),
    whole_line=(False, False),
    delta=0.2,
    rule="fixed-sequence",
    aim="selection",
    candidates=5,
    tau=(0.08, 0.5),
    covered=(1850, 1030),
    shares=2,
)


def test_the_bound_of_a_rule_without_a_union_is_that_of_the_rank_at_its_share_of_delta():
    for delta in (0.01, 0.2):
        wanted = [beta.ppf(delta / 2, k, 2001 - k) for k in (1830, 1020)]
        assert PROMISE.coverage_bound(delta) == pytest.approx(wanted)
    one_share = PavPromise(**{name: own for name, own in vars(PROMISE).items() if name != "shares"})
    assert one_share.coverage_bound(0.1) == pytest.approx([beta.ppf(0.1, k, 2001 - k) for k in (1830, 1020)])
    assert PROMISE.law(1) == Law((1020, 2000), candidates=1, open=True)
    assert PROMISE.expected_coverage() == pytest.approx((1830 / 2001, 1020 / 2001))


def test_the_bound_of_the_papers_rule_is_that_of_the_count_at_delta_over_all_candidates():
    paper = replace(PROMISE, rule="paper")
    wanted = [beta.ppf(0.2 / 5, s, 2001 - s) for s in (1850, 1030)]
    assert paper.coverage_bound(0.2) == pytest.approx(wanted)
    assert paper.law(0) == Law((1830, 2000), candidates=5, open=True)
    none = replace(paper, whole_line=(True, False), tau=(0.0, 0.5), covered=(2000, 1030))
    assert none.coverage_bound(0.2) == pytest.approx((1.0, wanted[1]))


def test_what_was_asked_for_is_promised_and_otherwise_what_follows():
    assert PROMISE.promised() == PROMISE.coverage_bound(0.2)
    below = " / ".join(f"{math.floor(10_000 * share) / 100:g}%" for share in PROMISE.promised())
    assert PROMISE.sentence() == (
        f"Promise: with 80% confidence, at least {below} of all new rows fall inside their intervals, for each level "
        "separately. You asked for 90% / 50%."
    )
    for aim, on_average in (("pac", False), ("average", True)):
        asked = replace(PROMISE, aim=aim)
        assert asked.promised() == (0.9, 0.5)
        assert asked.on_average is on_average


def test_how_a_network_was_chosen_is_told_with_all_numbers():
    assert PROMISE.how("pav") == (
        "How: pav chose the network for tau = 0.08 / 0.5 out of 5, by the rule 'fixed-sequence'. Its intervals had to "
        "contain 1,830 / 1,020 of the 2,000 calibration rows. They contain 1,850 / 1,030."
    )
    none = replace(PROMISE, whole_line=(True, False), tau=(0.0, 0.5), covered=(2000, 1030)).how("pav")
    assert none.endswith(
        "2,000 / 1,030. tau = 0 means that no network was good enough. The intervals are infinite at 90%."
    )
    assert "tau = 0 means" not in replace(PROMISE, tau=(1.0, 0.5)).how("pav")
    entities = replace(PROMISE, entity="storm", n_rows=9000).how("pav")
    assert "of the 2,000 calibration entities (storm). " in entities
    assert entities.endswith(" 1,850 / 1,030. guardband drew one row from each storm (9,000 rows in all).")
