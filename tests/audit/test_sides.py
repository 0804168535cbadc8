"""Audits of one bound and of two tails."""

import numpy as np
import pytest

import guardband as gb


def rule_for(**asked):
    y = np.random.default_rng(0).exponential(size=2000)
    zero = np.zeros(2000)
    return gb.BandCalibrator(**asked).fit(zero - 1, zero + 0.7, zero + 2, y)


def audited(rule, y):
    spread = 1 + np.arange(len(y)) / len(y)
    return rule.audit(0.7 - spread, np.full(len(y), 0.7), 0.7 + spread, y)


def bounds(rule, n):
    spread = 1 + np.arange(n) / n
    return rule.transform(0.7 - spread, np.full(n, 0.7), 0.7 + spread)


def test_only_misses_beyond_the_bound_break_a_promise_for_one_side():
    rule = rule_for(side="upper")
    far_below = audited(rule, np.full(1000, -1e6))
    assert far_below.verdict == "consistent"
    far_above = audited(rule, np.where(np.arange(1000) % 4, 0.0, 1e6))
    assert far_above.verdict == "broken"
    assert far_above.sentence.startswith(
        "Promise broken: only 750 of 1,000 rows (75.0%) were at or below their 90% upper bounds."
    )
    assert [part.side for part in far_above.parts] == ["upper"]


def test_widths_are_distances_of_the_bound():
    rule = rule_for(side="upper")
    found, bands = audited(rule, np.random.default_rng(1).exponential(size=1000)), bounds(rule, 1000)
    assert found.levels[0].mean_width == pytest.approx(bands.reach.mean())
    assert np.isfinite(found.curve.mean_width).all()
    assert np.diff(found.curve.mean_width).min() >= 0
    titles = {family.key: family.title for family in found.families}
    assert titles["width"] == "By the distance of the upper bound from the prediction"
    assert "∞" not in found._repr_html_()


def test_each_tail_is_tested_apart():
    """A miss in twenty is fine above, and breaks a promise of one in fifty below."""
    rule = rule_for(tails=(0.02, 0.08))
    y = np.full(2000, 0.7)
    y[::20] = 1e6
    fine = audited(rule, y)
    assert fine.verdict == "consistent"
    assert "were at or above their 98% lower bounds, and 1,900 of 2,000 rows (95.0%) were at or below" in fine.sentence
    broken = audited(rule, np.where(y > 1, -1e6, y))
    assert broken.verdict == "broken"
    assert "98% lower bounds" in broken.sentence
    assert [(part.side, part.verdict) for part in broken.parts] == [("lower", "broken"), ("upper", "consistent")]
    assert fine.curve is None


def test_both_tails_can_be_broken():
    y = np.full(1000, 0.7)
    y[::5], y[1::5] = 1e6, -1e6
    assert audited(rule_for(tails=(0.02, 0.08)), y).sentence.endswith("Broken too: upper bounds.")


def test_an_infinite_side_is_named():
    with pytest.warns(gb.InsufficientCalibrationWarning):
        rule = rule_for(tails=(0.0001, 0.08))
    found = audited(rule, np.random.default_rng(2).exponential(size=1000))
    assert found.verdict == "consistent"
    assert "1 has infinite intervals: lower bounds" in found.sentence
