import numpy as np
import pandas as pd
import pytest

from guardband.audit.audit import audit
from guardband.data.table import Column
from judged import evidence_of
from notebook_html import MEAN, shown
from reported import grouped_evidence


@pytest.mark.parametrize(
    ("asked", "badge", "kind"),
    [
        ({}, "Consistent with the promise", "consistent"),
        ({"noise": 2.0}, "Promise broken", "broken"),
        ({"n": 5}, "Too few rows to tell", "too-few-rows"),
    ],
)
def test_the_verdict_is_coloured_and_comes_first(asked, badge, kind):
    found = audit(evidence_of(**asked))
    html = shown(found)
    assert html.text.startswith(badge)
    assert html.count("div", **{"class": f"guardband card {kind}"}) == 1
    level = found.levels[0]
    assert f"90% {level.covered:,} of {level.n:,}" in html.text
    assert f"{level.low:,} to {level.high:,}" in html.text


def test_the_badge_and_the_sentence_do_not_say_the_same():
    found = audit(evidence_of())
    assert found.sentence.startswith("Consistent with the promise: ")
    assert shown(found).text.count("Consistent with the promise") == 1


def test_an_audit_is_shown_as_its_sentence():
    found = audit(evidence_of())
    assert repr(found) == str(found) == found.sentence


def test_groups_that_stand_out_are_listed_and_escaped():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({MEAN: rng.random(2000)})
    names = np.where(evidence_of(noise=2.0).covered[:, 0], "a", "<b>").astype(object)
    found = audit(evidence_of(noise=2.0, X=X, group=Column(MEAN, names)))
    text = shown(found).text
    assert f"By {MEAN}: <b>" in text
    assert "Groups outside their expected range. The promise is about all rows together." in text
    flagged = {
        (family.stratum_of == i).tobytes()
        for family in found.families
        for i, group in enumerate(family.strata)
        if group.flag
    }
    assert f"{len(flagged) - 8} more groups stand out." in text
    assert "No group of rows stands out." in shown(audit(evidence_of(n=5))).text


def test_the_same_rows_are_listed_once_and_the_test_stays_in_the_dictionary():
    made = evidence_of(noise=2.0)
    side = np.where(made.covered[:, 0], "a", "b").astype(object)
    found = audit(evidence_of(noise=2.0, X=pd.DataFrame({"town": side}), group=Column("district", side)))
    html = shown(found)
    assert "By district: b" in html.text
    assert "town: b" not in html.text
    assert "exact test" not in html.text
    assert "p_value" in found.to_dict()["levels"][0]


def test_groups_that_have_a_promise_have_a_line_each_the_worst_first():
    found = audit(grouped_evidence()[1])
    text = shown(found).text
    worst = min(found.parts, key=lambda part: part.share)
    assert "Groups that have a promise of their own, the worst first." in text
    assert f"{worst.name} {worst.covered:,} of {worst.n:,}" in text
    assert text.index("district = old town") < text.index("district = hillside 3")
    assert "The promise is about all rows together" not in text
