import json
from html import unescape
from math import floor

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.bands.promise import NoPromise
from guardband.calibration.cut import MarginalPromise, PacPromise
from guardband.calibration.pav import PavPromise
from guardband.report.document import document
from guardband.report.heading import Heading
from guardband.report.page import render, write_report
from judged import evidence_of

LIMIT = 2_000_000
DATED = Heading(date="2026-03-31")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    return gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=7).fit(X, X.sum(1))


@pytest.fixture(scope="module")
def checked(model):
    return document(model, evidence_of(2000, 1000), heading=DATED)


def test_a_document_is_json_and_comes_back(checked):
    assert json.loads(json.dumps(checked, allow_nan=False)) == checked


def test_the_same_evidence_gives_the_same_document(model, checked):
    assert document(model, evidence_of(2000, 1000), heading=DATED) == checked


def test_rows_shown_are_a_random_sample_in_order_of_the_point(checked):
    rows = checked["rows"]
    assert rows["sampled"] == 600
    points = rows["point"][:600]
    assert points == sorted(points)
    assert len(set(rows["row"])) == len(rows["row"])


def test_what_is_inside_is_decided_before_rounding(checked):
    evidence = evidence_of(2000, 1000)
    rows = checked["rows"]
    at = np.array(rows["row"]) - 1
    lower, upper = evidence.ends([level for level, _ in evidence.levels()], at)
    inside = (lower <= evidence.y[at][:, None]) & (evidence.y[at][:, None] <= upper)
    assert rows["inside"] == ["".join("01"[hit] for hit in column) for column in inside.T.astype(int)]
    assert rows["levels"][rows["headline"]] == 0.9


def test_tables_hold_the_widest_and_the_most_missed_of_all_rows(checked):
    evidence, rows = evidence_of(2000, 1000), checked["rows"]
    bands = evidence.headline
    widths = bands.upper - bands.lower
    assert rows["row"][rows["widest"][0]] == int(widths.argmax()) + 1
    beyond = np.maximum(bands.lower - evidence.y, evidence.y - bands.upper)
    assert [rows["row"][i] for i in rows["missed"]] == (np.argsort(-beyond)[:20] + 1).tolist()


def test_each_row_knows_its_group(checked):
    rows = checked["rows"]
    family = next(own for own in checked["audit"]["families"] if own["key"] == "width")
    edges = [s["label"] for s in family["strata"]]
    assert len(rows["strata"]["width"]) == len(rows["row"])
    assert {int(place) for place in rows["strata"]["width"]} == set(range(len(edges)))


def test_the_typical_width_stands_beside_the_spread_of_outcomes(checked):
    evidence, spread = evidence_of(2000, 1000), checked["spread"]
    bands = evidence.headline
    low, high = np.quantile(evidence.y, [0.05, 0.95])
    assert spread["ratio"] == pytest.approx(np.median(bands.upper - bands.lower) / (high - low))


def test_the_histogram_holds_every_row(checked):
    widths = checked["widths"]
    assert sum(widths["counts"]) == 2000
    level = checked["audit"]["levels"][0]
    assert sum(widths["missed"]) == 2000 - level["covered"]


def test_errors_are_shown_by_the_quarter_of_the_width(checked):
    evidence = evidence_of(2000, 1000)
    bands = evidence.headline
    width, error = bands.upper - bands.lower, np.abs(evidence.y - bands.point)
    narrow, wide = (
        error[(width <= q) == below] for q, below in ((np.quantile(width, 0.25), 1), (np.quantile(width, 0.75), 0))
    )
    assert checked["errors"][0]["error"] == pytest.approx(np.median(narrow))
    assert checked["errors"][-1]["error"] == pytest.approx(np.median(wide))


def test_each_group_has_its_median_width(checked):
    evidence = evidence_of(2000, 1000)
    width = evidence.headline.upper - evidence.headline.lower
    at = {
        row - 1: place for row, place in zip(checked["rows"]["row"], checked["rows"]["strata"]["column-0"], strict=True)
    }
    (family,) = (own for own in checked["audit"]["families"] if own["key"] == "column-0")
    assert sum(own["n"] for own in family["strata"]) == 2000
    for i, own in enumerate(family["strata"]):
        mine = width[[row for row, place in at.items() if place == str(i)]]
        assert mine.min() <= own["median_width"] <= mine.max()


def test_how_it_was_fitted_is_told(model, checked):
    told = dict(checked["fitted"])
    assert told["Training rows"] == "225"
    assert told["Calibration rows"] == "75"
    assert told["Test rows"] == "2,000"
    assert told["Seed"] == "7"
    assert len(told["Fingerprint of the rows given to fit"]) == 16
    assert dict(checked["settings"]) == {
        "hidden": "(8,)",
        "epochs": "2",
        "network": "plain",
        "random_state": "7",
    }


def test_without_rows_the_page_says_that_nothing_was_checked(model, tmp_path):
    own = document(model, None)
    assert own["status"] == "unchecked"
    page = write_report(own, tmp_path / "p.html").read_text()
    assert "Not yet checked" in page
    assert 'id="data"' not in page
    for line in str(model.certificate_).splitlines():
        assert line in unescape(page)


NUMBERS = {"confidence_level": (0.9,), "n_calibration": 99, "whole_line": (False,), "rank": (90,)}
PICKED = {"rule": "nested", "aim": "selection", "candidates": 10, "covered": (92,), "tau": (0.1,), "delta": 0.1}
TWO = {"confidence_level": (0.9, 0.5), "n_calibration": 99, "whole_line": (False, False), "rank": (90, 50)}
PROMISES = [
    (
        MarginalPromise(**NUMBERS),
        "On average over possible calibration sets, at least 90% of new rows from the same source fall inside their "
        "intervals.",
    ),
    (
        PacPromise(**NUMBERS | {"rank": (95,)}, delta=0.05),
        "With 95% confidence, at least 90% of all new rows from the same source fall inside their intervals.",
    ),
    (
        PavPromise(**NUMBERS, **PICKED),
        f"With 90% confidence, at least {floor(1e4 * beta.ppf(0.1, 90, 10)) / 100}% of all new rows from the same "
        "source fall inside their intervals.",
    ),
    (
        MarginalPromise(**TWO),
        "On average over possible calibration sets, at least 90% of new rows from the same source fall inside their "
        "intervals. The same holds for 50%, each with its own intervals.",
    ),
    (
        NoPromise(**NUMBERS | {"rank": None}, reason="so it is"),
        "Nothing is promised: m aims at 90%, but so it is.",
    ),
]


@pytest.mark.parametrize(("promise", "words"), PROMISES)
def test_the_promise_is_in_plain_words(promise, words):
    assert promise.headline("m") == words
    assert len(promise.not_promised()) >= 2


@pytest.mark.parametrize(
    "made",
    [
        {"noise": 2.0},
        {"guarantee": "pac"},
        {"levels": [0.8, 0.95]},
        {"n": 1},
        {"n": 30},
        pytest.param({"n2": 8}, marks=pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")),
        pytest.param(
            {"n2": 12, "levels": [0.9, 0.99]},
            marks=pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning"),
        ),
    ],
)
def test_every_kind_of_finding_has_a_page(model, made):
    own = document(model, evidence_of(**{"n": 400} | made))
    page = render(json.loads(json.dumps(own, allow_nan=False)))
    assert page.count("<main") == 1
    assert ("Promise broken" in page) == (made == {"noise": 2.0})


@pytest.mark.parametrize("method", ["pav", "neg-ll", "conf-fw"])
def test_methods_without_a_rank_have_no_slider_and_say_why(method):
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = X.sum(1) + rng.standard_normal(400)
    asked = {"hidden": (8,), "epochs": 30, "network": "plain", "random_state": 0}
    fitted = gb.IntervalRegressor(method, **asked).fit(X[:300], y[:300])
    page = render(document(fitted, Evidence.of(fitted, X[300:], y[300:])))
    assert ('type="range"' in page) == (method == "conf-fw")
    assert (f"{method} gives intervals only at the levels it was calibrated for." in page) == (method != "conf-fw")
    if method == "conf-fw":
        assert "All intervals have the same width, " in page


def test_two_hundred_thousand_rows_and_sixty_columns_stay_below_two_megabytes(model):
    rng = np.random.default_rng(0)
    n = 200_000
    X = pd.DataFrame({f"column {j} with a long name, {'x' * 60}": rng.standard_normal(n) for j in range(40)})
    for j in range(20):
        X[f"text {j}"] = rng.choice([f"{'value ' * 10}{i}" for i in range(50)], n)
    own = document(model, evidence_of(n, 20_000, X=X))
    assert len(json.dumps(own)) <= 1_500_000
    assert len(render(own).encode()) <= LIMIT


def test_a_thousand_columns_of_awkward_text_stay_below_two_megabytes(model):
    text = np.array(['<"&' * 40, "ü" * 90, None], dtype=object)
    X = np.tile(text, (1000, 334))[:, :1000].copy()
    own = document(model, evidence_of(1000, X=X))
    assert own["columns_left_out"] == 800
    page = render(own)
    assert len(page.encode()) <= LIMIT
    assert "800 further columns are not shown" in page
