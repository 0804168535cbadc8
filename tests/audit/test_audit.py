import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import betabinom, binom

import guardband as gb
from guardband.audit.audit import audit
from guardband.audit.evidence import GRID, Evidence
from guardband.bands.certificate import Certificate
from guardband.bands.law import Law
from guardband.bands.levels import Levels
from guardband.bands.promise import NoPromise
from guardband.bands.ranks import marginal_rank
from guardband.metrics import worst_slab_counts, worst_slab_coverage
from guardband.words import plain
from judged import evidence_of
from laws import SIGNIFICANCE

QUICK = {"preset": "fast", "max_epochs": 2, "random_state": 0, "verbose": False}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(900),
            "when": pd.date_range("2024-01-01", periods=900),
            "shop": rng.choice(["n", "s", None], 900),
        }
    )
    return frame, pd.Series(frame["a"] * 3 + rng.standard_normal(900), name="sales")


@pytest.fixture(scope="module")
def model(rows):
    return gb.IntervalRegressor(**QUICK).fit(rows[0][:600], rows[1][:600])


@pytest.fixture(scope="module")
def evidence(model, rows):
    X, y = rows[0][600:], rows[1][600:]
    return Evidence.of(model, X, y, group=X["shop"], time=X["when"])


def test_the_verdict_counts_rows_by_the_exact_law():
    evidence = evidence_of(2000, 1000)
    own = audit(evidence)
    covered = int(((evidence.intervals.lower <= evidence.y) & (evidence.y <= evidence.intervals.upper)).sum())
    law = betabinom(2000, 901, 100)
    (level,) = own.levels
    assert (level.covered, level.low, level.high) == (covered, law.ppf(0.01), law.ppf(0.99))
    assert own.p_value == pytest.approx(law.cdf(covered))
    assert own.verdict == level.verdict == "consistent"
    assert own.sentence == (
        f"Consistent with the promise: {covered:,} of 2,000 rows ({covered / 20:.1f}%) fell inside their 90% "
        f"intervals. {level.low:,} to {level.high:,} were expected."
    )


def test_a_broken_promise_is_said_to_be_broken():
    own = audit(evidence_of(2000, noise=1.5))
    assert own.verdict == "broken"
    assert own.p_value < 1e-6
    least = own.levels[0].least
    assert own.sentence.startswith("Promise broken: only ")
    assert f"If the promise held, 99% of all audits would find at least {least:,} inside (p < 0.0001)." in own.sentence
    assert own.drift.scores.drifted


def test_more_than_expected_is_consistent_and_said():
    own = audit(evidence_of(2000, noise=0.5))
    assert own.verdict == "consistent"
    assert own.sentence.endswith("were expected: the intervals are wider than needed.")


def test_significance_decides():
    evidence = evidence_of(2000, noise=1.08)
    p = audit(evidence).p_value
    assert 1e-4 < p < 0.5
    assert audit(evidence, significance=min(0.9, 1.1 * p)).verdict == "broken"
    assert audit(evidence, significance=0.9 * p).verdict != "broken"
    with pytest.raises(ValueError, match="significance must lie"):
        audit(evidence, significance=1)


def test_false_alarms_come_no_more_often_than_the_significance():
    alarms = sum(audit(evidence_of(200, 99, seed=seed), 0.1).verdict == "broken" for seed in range(80))
    assert alarms <= binom.isf(SIGNIFICANCE, 80, 0.1)


def test_pac_is_tested_at_the_level_and_by_the_law_of_its_rank():
    own = audit(evidence_of(2000, 1000, guarantee="pac"))
    (level,) = own.levels
    laws = binom(2000, 0.9), betabinom(2000, 913, 88)
    assert own.p_value == pytest.approx(max(law.cdf(level.covered) for law in laws))
    assert level.least == min(law.ppf(0.01) for law in laws)
    words = "The promise is at least 90% of all new rows. Fewer than"
    assert f"{words} {level.least:,} inside would have broken it." in own.sentence


def test_several_levels_share_the_significance():
    own = audit(evidence_of(2000, levels=[0.9, 0.5]))
    assert own.verdict == "consistent"
    assert own.p_value == pytest.approx(min(1, 2 * min(level.p_value for level in own.levels)))
    assert "90% intervals" in own.sentence
    evidence = evidence_of(2000, levels=[0.9, 0.5])
    narrow = evidence.intervals
    narrow.upper[:, 1] = narrow.lower[:, 1]
    own = audit(evidence)
    assert [level.verdict for level in own.levels] == ["consistent", "broken"]
    assert own.verdict == "broken"
    assert "50% intervals" in own.sentence


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_infinite_intervals_cannot_be_judged():
    own = audit(evidence_of(300, 8))
    assert own.verdict == "cannot judge"
    assert own.p_value == 1
    assert own.sentence == ("No usable intervals: 8 calibration rows, and this level needs 9. Calibrate on more rows.")
    json.dumps(own.to_dict(), allow_nan=False)


def test_nothing_promised_is_nothing_broken():
    nothing = NoPromise(confidence_level=(0.9,), n_calibration=9, whole_line=(False,), reason="so it is")
    evidence = replace(evidence_of(2000, noise=3), certificate=Certificate("bayes", nothing, scalar=True))
    own = audit(evidence)
    assert own.verdict == "cannot judge"
    assert own.sentence.startswith("Cannot judge: nothing is promised. ")
    assert own.levels[0].least is None


def test_evidence_agrees_with_predict_interval(model, evidence, rows):
    bands = model.predict_interval(rows[0][600:])
    np.testing.assert_array_equal(bands.lower, evidence.intervals.lower)
    levels = [level for level, _ in evidence.levels()]
    assert levels == list(GRID)
    lower, upper = evidence.ends(levels)
    again = model.predict_interval(rows[0][600:], confidence_level=[float(level) for level in levels])
    np.testing.assert_array_equal(lower, again.lower)
    np.testing.assert_array_equal(upper, again.upper)
    some, _ = evidence.ends(levels[:2], np.array([5, 1]))
    np.testing.assert_array_equal(some, lower[[5, 1], :2])


def test_a_row_is_covered_where_its_score_is_small_enough(evidence):
    inside = evidence.covered[:, 0]
    threshold = np.sort(evidence.calibration_scores)[evidence.certificate.rank - 1]
    np.testing.assert_array_equal(inside, evidence.scores <= threshold)


def test_the_curve_is_coverage_at_every_level(evidence):
    curve = audit(evidence).curve
    lower, upper = evidence.ends([level for level, _ in evidence.levels()])
    y = evidence.y[:, None]
    assert list(curve.covered) == ((lower <= y) & (y <= upper)).sum(axis=0).tolist()
    np.testing.assert_allclose(curve.mean_width, (upper - lower).mean(axis=0))
    _, first = evidence.levels()[0]
    rank = marginal_rank(GRID[0], 150)
    assert first == Law((rank, 150))
    law = betabinom(300, rank, 151 - rank)
    assert (curve.low[0], curve.high[0]) == (law.ppf(0.01), law.ppf(0.99))


def test_levels_beyond_the_calibration_rows_are_left_out_without_a_warning():
    assert float(evidence_of(50, 50).levels()[-1][0]) == 0.98


def test_names_and_dates_are_kept(evidence):
    assert evidence.response == "sales"
    titles = [family.title for family in audit(evidence).families]
    assert titles[:4] == [
        "By shop",
        "By month of when",
        "By the width of the interval",
        "By the size of the prediction",
    ]
    assert titles[4:] == ["a", "when", "shop"]
    over_time = audit(evidence).families[1]
    assert over_time.strata[0].label == "2025-08"


def test_the_only_date_says_when_rows_came(model, rows):
    X, y = rows
    own = Evidence.of(model, X, y)
    assert own.time.name == "when"
    assert Evidence.of(model, X.assign(when=X["when"].iloc[0]), y).time is None


def test_rows_that_were_used_before_are_counted(model, rows):
    used = audit(Evidence.of(model, rows[0][:600], rows[1][:600]))
    assert used.verdict == "cannot judge"
    assert used.sentence == (
        "Cannot judge: 600 of 600 rows are among those that trained or calibrated the model. "
        "Use rows that are new to the model."
    )
    assert "450 of 600 rows equal rows that trained the model. Use rows that are new" in used.notes[0]
    assert "150 of 600 rows equal rows that calibrated it" in used.notes[1]
    X, y = pd.concat([rows[0][600:], rows[0][:1]]), pd.concat([rows[1][600:], rows[1][:1]])
    own = audit(Evidence.of(model, X, y))
    (note,) = own.notes
    assert note == "1 of 301 rows equals a row that trained the model. A few equal rows are normal and do no harm."
    assert own.verdict != "cannot judge"


def test_rows_that_calibrate_brought_are_counted(model, rows, tmp_path):
    own = copy.copy(model).calibrate(rows[0][600:], rows[1][600:])
    own.save(tmp_path / "m")
    for judged in (own, gb.load(tmp_path / "m")):
        found = audit(Evidence.of(judged, rows[0][600:], rows[1][600:]))
        (note,) = found.notes
        assert note.startswith("300 of 300 rows equal rows that calibrated it. ")
        assert found.verdict == "cannot judge"


@pytest.mark.parametrize("method", ["pav", "neg-ll", "conf-fw"])
def test_other_rules_have_an_audit_and_those_without_rank_no_curve(method, rows):
    asked = {"hidden": (8,), "epochs": 2, "random_state": 0, "network": "plain"}
    fitted = gb.IntervalRegressor(method, **asked).fit(rows[0][["a"]][:600], rows[1][:600])
    own = audit(Evidence.of(fitted, rows[0][["a"]][600:], rows[1][600:]))
    assert (own.curve is None) == (method != "conf-fw")
    assert (own.verdict == "cannot judge") == (method == "neg-ll")
    json.dumps(own.to_dict(), allow_nan=False)


def test_responses_that_cannot_be_count_as_missed(rows):
    X, y = rows[0][["a"]], np.exp(rows[1])
    fitted = gb.IntervalRegressor(**QUICK, target_transform="log", y_max=1e9).fit(X[:600], y[:600])
    new = y[600:].to_numpy().copy()
    new[:100] = -1
    own = Evidence.of(fitted, X[600:], new)
    assert own.response == "the outcome"
    assert np.isinf(own.scores[:100]).all()
    assert not own.covered[:100].any()
    assert audit(own).verdict == "broken"


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_group_and_time_may_name_columns_of_the_rows(model, rows, evidence, library):
    X, y = library(rows[0][600:].reset_index(drop=True)), rows[1][600:]
    found = model.audit(X, y, group="shop", time="when")
    assert found.to_dict() == audit(evidence).to_dict()
    not_an_input = rows[0][600:].assign(extra="one")
    assert model.audit(not_an_input, y, group="extra").families[0].title == "By extra"


def test_a_name_of_no_column_is_refused(model, rows, tmp_path):
    X, y = rows[0][600:], rows[1][600:]
    with pytest.raises(ValueError, match=r"X has no column 'shops', as group asks for\. Its columns are 'a', 'when', "):
        model.audit(X, y, group="shops")
    with pytest.raises(ValueError, match="X has no column 'day', as time asks for"):
        model.report(tmp_path / "page.html", X, y, time="day")
    plain = gb.IntervalRegressor(**QUICK).fit(X[["a"]].to_numpy(), y)
    with pytest.raises(ValueError, match="group='a' names a column, and columns of these rows have no names"):
        plain.audit(X[["a"]].to_numpy(), y, group="a")


def test_a_column_of_the_wrong_length_is_refused(model, rows):
    with pytest.raises(ValueError, match="group must be one column of 300 rows"):
        Evidence.of(model, rows[0][600:], rows[1][600:], group=[1, 2])


def test_the_region_that_was_searched_out_is_counted_on_the_other_rows():
    evidence = evidence_of(800)
    counts = worst_slab_counts(evidence.y, evidence.headline, evidence.inputs)
    assert worst_slab_coverage(evidence.y, evidence.headline, evidence.inputs) == counts[0, 0] / counts[0, 1]
    region = audit(evidence).region
    assert (region.covered, region.n) == tuple(counts[0])


def test_few_rows_have_no_region():
    assert audit(evidence_of(30)).region is None


def test_an_audit_is_ready_for_json(evidence):
    text = json.dumps(audit(evidence).to_dict(), allow_nan=False)
    assert json.loads(text)["levels"][0]["n"] == 300


def test_plain_makes_json_of_numpy():
    entries = {1: (np.float64(2), np.inf), "a": np.array([1, 2])}
    assert plain(entries) == {"1": [2.0, None], "a": [1, 2]}


def test_levels_are_exact():
    assert Levels.of([0.9]).values[0] in GRID
