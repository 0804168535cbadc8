"""The audit of a risk: an exact test by divisions of all rows, and bounds where calibration rows are not known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import guardband as gb
from guardband.audit import risk_permutations
from guardband.audit.evidence import Evidence
from guardband.audit.risk import judged_risk
from guardband.audit.risk_permutations import divided_means
from guardband.audit.risk_test import risk_test
from guardband.bands.risk_bounds import mean_above

SIGNIFICANCE = 1e-6 / 10


def rows(n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    point, width = rng.standard_normal(n), rng.uniform(0.5, 2, n)
    return point - width, point, point + width, point + scale * width * rng.standard_t(4, n)


def evidence(n, m, seed=0, scale=1.0, risk=gb.Risk(0.4, 4), **asked):  # noqa: B008  a Risk does not change
    rule = gb.BandCalibrator(risk=risk, **asked).fit(*rows(n, 2 * seed))
    new = rows(m, 2 * seed + 1, scale)
    return Evidence.of(rule, np.column_stack(new[:3]), new[3])


def test_each_division_has_the_mean_of_a_calibration_of_its_own():
    own = evidence(60, 40)
    budget = own.certificate.promise.budget
    mean, means = divided_means(own, budget)
    lower, upper = own.intervals.per_level()
    assert mean == pytest.approx(own.risk.losses(own.y, lower[:, 0], upper[:, 0]).mean(), rel=0.02)
    every = own.rule.with_rows(own.summary, own.predicted, own.y, own.scores)
    random = np.random.default_rng(0)
    for found in means[:20]:
        order = random.permutation(100)
        columns = ("score", "y", "lower", "point", "upper")
        chosen = [{name: every.rows(name)[part] for name in columns} for part in (order[:60], order[60:])]
        first, second = (replace(every, n=len(part["y"]), blocks=(part,)) for part in chosen)
        threshold = own.rule.calibrate(first).arrays["threshold"][0]
        assert found == pytest.approx(own.rule.losses(second, threshold).mean(), abs=0.02)


@pytest.mark.parametrize("asked", [{}, {"guarantee": "pac"}])
def test_a_promise_that_holds_is_called_broken_as_seldom_as_the_significance_says(monkeypatch, asked):
    monkeypatch.setattr(risk_permutations, "DIVISIONS", 99)
    broken = sum(
        judged_risk(evidence(50, 30, seed, **asked), 0.1)[0].p_value < 0.1 for seed in range(300)
    )  # seeds are fixed
    assert broken <= stats.binom.isf(SIGNIFICANCE, 300, 0.1)


def test_a_mean_within_the_limit_never_refutes():
    own = evidence(2000, 2000)
    total = own.certificate.promise.limit * own.n
    assert risk_test(own, own.certificate.promise, total, 0.01).p_value == 1


def test_given_the_data_the_test_rows_alone_must_refute_too():
    own = evidence(2000, 2000, scale=2.0, guarantee="pac")
    promise, (lower, upper) = own.certificate.promise, own.intervals.per_level()
    total = own.risk.losses(own.y, lower[:, 0], upper[:, 0]).sum()
    found = risk_test(own, promise, total, 0.01)
    assert found.p_value >= mean_above(own.n, total / promise.cap, promise.limit / promise.cap)
    assert found.breaking >= promise.limit


def test_rows_that_are_worse_break_the_promise_and_few_rows_do_not_tell():
    finding, verdict = judged_risk(evidence(1000, 1000, scale=1.6), 0.01)
    assert verdict.kind == "broken"
    assert finding.mean_loss > finding.breaking
    finding, verdict = judged_risk(evidence(1000, 12), 0.01)
    assert verdict.kind == "too few rows"
    assert verdict.more_rows > 0


def test_without_calibration_rows_bounds_judge():
    own = replace(evidence(1000, 1000, scale=3.0), _calibrated=None)
    assert divided_means(own, 1.0) is None
    found = risk_test(own, own.certificate.promise, 1000 * 1.5, 0.01)
    assert found.p_value == own.certificate.promise.p_value(1500, 1000) < 0.01
    assert found.more_rows(0.401) == math.inf


def test_many_rows_and_strict_tests_fall_back_to_bounds(monkeypatch):
    own = evidence(300, 300)
    promise = own.certificate.promise
    assert risk_test(own, promise, 150.0, 1e-9).p_value == promise.p_value(150.0, 300)
    monkeypatch.setattr(risk_permutations, "MOST_ROWS", 500)
    assert divided_means(own, promise.budget) is None
