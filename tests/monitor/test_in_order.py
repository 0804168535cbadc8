"""The rows of an audit in the order of their times: what a monitor would have found."""

import json

import numpy as np
import pytest

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.data.table import Column
from guardband.monitor.in_order import in_order
from guardband.report.document import document
from guardband.report.page import render
from judged import evidence_of


def test_it_is_what_a_monitor_finds_row_by_row(small):
    X, y = small
    model = gb.IntervalRegressor(hidden=(8,), epochs=3, random_state=0).fit(X[:250], y[:250])
    time = np.random.default_rng(0).permutation(150).astype(float)
    late = np.where(time > 80, y[250:] + 20, y[250:])
    found = in_order(Evidence.of(model, X[250:], late, time=time), 0.01)
    monitor = gb.Monitor(model)
    for i in np.argsort(time):
        monitor.update(late[i : i + 1], X=X[250 + i : 251 + i])
    assert found.alarm_row == monitor.finding().alarm_row
    assert found.alarm_row > 80
    assert found.blocks[-1].log_evidence == pytest.approx(monitor._state.log_evidence, rel=1e-9)
    assert found.log_limit == pytest.approx(np.log(100))


def test_without_times_or_with_names_for_them_there_is_none():
    assert in_order(evidence_of(300, 200), 0.01) is None
    names = Column("when", np.array(["early", "late"] * 150, dtype=object))
    assert in_order(evidence_of(300, 200, time=names), 0.01) is None


@pytest.mark.parametrize(
    ("noise", "words"), [(1.0, "It would not have raised"), (2.0, "It would have raised the alarm")]
)
def test_the_page_of_an_audit_draws_it_only_if_times_are_known(noise, words):
    rng = np.random.default_rng(0)
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, random_state=0).fit(rng.random((300, 2)), rng.random(300))
    time = Column("day", np.arange(600.0))
    own = document(model, evidence_of(600, 1000, noise=noise, time=time))
    text = render(json.loads(json.dumps(own)))
    assert words in text
    assert "Evidence as rows came" in text
    assert "Evidence as rows came" not in render(document(model, evidence_of(600, 1000, noise=noise)))
