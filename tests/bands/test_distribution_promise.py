"""Certificates of quantiles, probabilities and selections: words, numbers, JSON, HTML, and no audit."""

import json
import math

import numpy as np
import pytest
from scipy.stats import beta

import guardband as gb
from guardband.bands.distribution_promise import DistributionPromise, FdrPromise, ProbabilityPromise
from guardband.bands.law import Law
from guardband.bands.placement import ByResidual
from guardband.bands.ranks import simultaneous_bound
from guardband.bands.units import Units
from guardband.calibration.places import CalibratedPlaces


@pytest.fixture(scope="module")
def places():
    rng = np.random.default_rng(0)
    return CalibratedPlaces.of("conf-nn", ByResidual(), np.zeros((199, 1)), rng.normal(size=199), notes=("A remark.",))


@pytest.fixture(scope="module")
def certificates(places):
    new = np.zeros((5, 1))
    return {
        "distribution": places.certificate,
        "probability": places.probability(new, Units(), 0.5, None).certificate,
        "fdr": places.select(new, Units(), -9.0, None, 0.2).certificate,
    }


@pytest.mark.parametrize("kind", ["distribution", "probability", "fdr"])
def test_a_certificate_speaks_and_comes_back_from_json(certificates, kind):
    own = certificates[kind]
    assert own.kind == kind
    assert gb.Certificate.from_dict(json.loads(json.dumps(own.to_dict()))) == own
    text = str(own)
    for word in ("Promise: ", "How: ", "Assumes: ", "Not promised: ", "Note: A remark."):
        assert word in text
    assert own.promise.headline("conf-nn").endswith(".")
    assert all(line.endswith(".") for line in own.promise.not_promised())
    assert own.promise.headline("conf-nn") in own._repr_html_().replace("&#39;", "'")


def test_shares_at_or_below_quantiles_hold_for_all_levels_at_once(certificates):
    own = certificates["distribution"]
    assert own.rank == (10, 50, 100, 150, 190)
    assert own.expected_coverage == tuple(k / 200 for k in own.rank)
    apart = beta.ppf(0.1, np.array(own.rank), 200 - np.array(own.rank))
    assert (np.array(own.coverage_bound(0.1)) < apart).all()


def test_the_bound_of_a_stated_probability_is_a_quantile_of_its_beta_law(certificates):
    own = certificates["probability"]
    assert own.expected_coverage == 0.9
    assert own.coverage_bound(0.1) == pytest.approx(1 - beta.ppf(0.9, 20, 180))
    assert "above 0.5 and do not" in str(own)


def test_a_selection_says_how_many_rows_and_what_share(certificates):
    own = certificates["fdr"]
    assert own.expected_coverage == pytest.approx(0.8)
    assert own.coverage_bound(0.5) == pytest.approx(0.6)
    assert own.coverage_bound(0.1) == 0
    assert "selected 5 of 5 rows" in str(own)
    assert "at most 20% of the selected rows do not lie above \N{MINUS SIGN}9" in str(own)


@pytest.mark.parametrize("kind", ["distribution", "probability", "fdr"])
def test_an_audit_has_nothing_to_judge(certificates, kind):
    own = certificates[kind].promise
    assert not own.is_testable
    assert "gb.metrics.pit" in own.why_untestable()
    with pytest.raises(ValueError, match=r"gb\.metrics\.pit"):
        gb.Monitor(certificates[kind])


LATER = "rows from another source or a later time if the data have changed"
AVERAGE = "on average over possible calibration sets"
HOW = "How: cqr looked where the true values of {} lie within their predictions."
EXCHANGEABLE = (
    "Assumes: new rows come from the same source as the calibration rows, in no particular order (exchangeable)"
)
NUMBERS = {"n_calibration": 1299, "whole_line": (False, False), "confidence_level": (0.05, 0.95)}
ONE = {"n_calibration": 1299, "whole_line": (False,)}
QUANTILES = DistributionPromise(**NUMBERS, rank=(65, 1235))


def test_quantiles_are_promised_in_these_words():
    bounds = [f"{math.floor(1e4 * simultaneous_bound(0.1, k, 1299)) / 100:g}%" for k in (65, 1235)]
    assert QUANTILES.lines("cqr") == [
        f"Promise: {AVERAGE}, at least the stated share of new rows lies at or below each quantile, such as 95% for "
        "the quantile 0.95. It is larger by at most 0.07693% unless rows tie.",
        f"{HOW.format('1,299 calibration rows')} Quantiles above 1,299 / 1,300 are infinite.",
        "For these calibration rows: at least this share lies at or below the quantile, for all levels at once with "
        f"90% confidence if the rows are independent: 0.05: {bounds[0]}, 0.95: {bounds[1]}.",
        f"{EXCHANGEABLE}.",
        "Not promised: the probabilities of a single row or of a group; the shape between neighbouring quantiles, the "
        f"mean or the tails beyond the last quantile; {LATER}.",
    ]
    assert QUANTILES.headline("cqr").startswith(f"O{AVERAGE[1:]}, at least the stated share of new rows lies")
    assert QUANTILES.not_promised() == [
        "The probabilities of a single row or of a group.",
        "The shape between neighbouring quantiles, the mean or the tails beyond the last quantile.",
        f"R{LATER[1:]}.",
    ]


def test_the_excess_over_a_quantile_is_rounded_up():
    few = DistributionPromise(**NUMBERS | {"n_calibration": 699}, rank=(35, 665))
    assert few.sentence().endswith(" It is larger by at most 0.1429% unless rows tie.")
    assert 0.1429 >= 100 / 700


def test_repeated_rows_and_entities_are_said_in_these_words():
    distinct, storms = (QUANTILES.of_entities(entity, 5000).lines("cqr") for entity in ("distinct row", "storm"))
    assert " stated share of new rows that repeat no row of the table lies at " in distinct[0]
    assert distinct[1].startswith(HOW.format("1,299 different calibration rows") + " Repeated rows count once (5,000 ")
    assert distinct[3] == f"{EXCHANGEABLE}."
    assert " stated share of rows drawn at random, one from each new storm, lies at " in storms[0]
    assert storms[1].startswith(HOW.format("1,299 calibration entities (storm)") + " guardband drew one row from each ")
    assert storms[3] == f"{EXCHANGEABLE}. The same holds of each storm."


def test_a_probability_is_promised_in_these_words():
    own = ProbabilityPromise(**ONE, confidence_level=(0.9,), event="above 3")
    most = math.ceil(1000 * beta.ppf(0.9, 130, 1170)) / 10
    assert own.lines("cqr") == [
        f"Promise: {AVERAGE}, at most 10% of new rows have a stated probability of 90% or more to lie above 3 and do "
        "not. The same holds for every other share.",
        HOW.format("1,299 calibration rows"),
        f"For these calibration rows: that share is at most {most:g}%, with 90% confidence if the rows are "
        "independent.",
        f"{EXCHANGEABLE}.",
        "Not promised: that 80% of the rows with a stated probability of 80% do so; the probability of a single row or "
        f"of a group; {LATER}.",
    ]
    for n in range(99, 2000, 100):
        most = math.ceil(1000 * beta.ppf(0.9, (n + 1) // 10, n + 1 - (n + 1) // 10)) / 10
        few = ProbabilityPromise(**ONE | {"n_calibration": n}, confidence_level=(0.9,), event="above 3")
        assert f"that share is at most {most:g}%, with" in few.figures()[0]
    assert own.not_promised()[0] == "That 80% of the rows with a stated probability of 80% do so."


def test_a_selection_is_promised_in_these_words():
    own = FdrPromise(**ONE, confidence_level=(0.8,), event="above 3", n_asked=1200, n_selected=1100)
    assert own.lines("cqr") == [
        "Promise: on average over possible calibration sets and rows, at most 20% of the selected rows do not lie "
        "above 3. guardband selected 1,100 of 1,200 rows.",
        "How: cqr compared each row with 1,299 calibration rows, and took the rows that the rule of Benjamini and "
        "Hochberg allows.",
        "Assumes: calibration rows and the rows to select from come from the same source, in no particular order "
        "(exchangeable).",
        "Not promised: that each selected row is so; the share for these very rows: it holds on average over "
        f"calibration sets and rows; that rows which were not selected are not so; {LATER}.",
    ]
    assert (
        own.of_entities("storm", 5000)
        .lines("cqr")[1]
        .endswith(" allows. guardband drew one row from each storm (5,000 rows in all).")
    )
    assert not own.is_bound_known


def test_levels_are_yardsticks_that_no_count_contradicts():
    for one, level in zip(QUANTILES.expectations(), (0.05, 0.95), strict=True):
        assert (one.level, one.expected, one.share) == (level, Law(share=level, open=True), None)
        assert one.tests == (Law(share=0.0, open=True),)
