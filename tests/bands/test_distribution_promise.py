"""Certificates of quantiles, probabilities and selections: words, numbers, JSON, HTML, and no audit."""

import json

import numpy as np
import pytest
from scipy.stats import beta

import guardband as gb
from guardband.bands.placement import ByResidual
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
