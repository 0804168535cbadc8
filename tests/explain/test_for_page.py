"""What a page says of why intervals are wide."""

import json
import re
from functools import cache

import msgspec
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.explain import for_page
from guardband.explain.for_page import explained_for_page
from guardband.report.explained import ExplainedPart
from guardband.report.rendering import rendered
from guardband.words import number
from judged import evidence_of


def draw(n, seed, columns=4):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n, columns)), columns=[f"c{j}" for j in range(columns)])
    return X.rename(columns={"c0": "<b>size</b>"}), rng.normal(size=n)


class Bands:
    """A model with bounds that are wide where the first columns are large."""

    def predict(self, X):
        half = 1 + 3 * X.iloc[:, 0] + X.iloc[:, 1]
        return np.stack([-half, half], axis=1)


@cache
def case(columns=4):
    model = gb.calibrate(Bands(), draw(199, 0, columns), outputs="bounds")
    return model, Evidence.of(model, *draw(300, 1, columns), row_numbers=np.arange(1000, 1300))


def page(explained):
    return rendered("explained.html", {"own": {"explained": explained}, "amount": number})


def test_the_widest_rows_and_the_columns_are_explained():
    model, evidence = case()
    found, width = explained_for_page(model, evidence), evidence.headline.upper - evidence.headline.lower
    order = np.argsort(-width)[:3]
    assert [row["row"] for row in found["widest"]] == (1000 + order).tolist()
    assert [row["width"] for row in found["widest"]] == pytest.approx(width[order])
    assert [column["name"] for column in found["columns"]][:2] == ["<b>size</b>", "c1"]
    assert found["widest"][0]["words"].startswith("This interval is ")
    assert explained_for_page(model, evidence) == found
    drawn = np.random.default_rng(1).permutation(evidence.n)[: found["n_rows"]]
    alone = model.explain(evidence.X, rows=drawn, n_background=found["n_background"])
    assert {own["name"]: own["width"] for own in found["columns"]} == pytest.approx(alone.by_column(), rel=0.01)
    msgspec.convert(json.loads(json.dumps(found, allow_nan=False)), ExplainedPart, strict=True)


def test_the_page_shows_them_and_escapes_what_is_from_the_table():
    text = page(explained_for_page(*case()))
    assert "&lt;b&gt;size&lt;/b&gt;" in text
    assert "<b>" not in text
    assert "style=" not in text  # the page allows no style but its own sheet
    assert text.count("<tr>") == 4 * (1 + 4)  # a heading and four columns, for all rows and for three
    assert all(0 <= float(width) <= 100 for width in re.findall(r'(?:x|width)="([-\d.]+)%"', text))


@pytest.mark.parametrize("value", [0.0, 5e-324, 1.7e308, -1.7e308])
def test_the_page_draws_whatever_a_stored_document_may_hold(value):
    bars = [{"label": "a", "value": value, "error": None}, {"label": "b", "value": -value, "error": 0.0}]
    own = {
        **explained_for_page(*case()),
        "columns": [{"name": "a", "width": abs(value), "point": 0.0}],
        "widest": [{"row": 1, "words": "", "width": 0.0, "bars": bars}],
    }
    shares = re.findall(r'(?:x|width)="([^"]+)%"', page(msgspec.convert(own, ExplainedPart, strict=True)))
    assert all(0 <= float(share) <= 100 for share in shares)


def test_many_columns_are_counted():
    found = explained_for_page(*case(columns=20))
    assert len(found["columns"]) == 12
    assert found["columns_left_out"] == 8
    assert "8 columns with less effect are not shown." in page(found)
    assert found["widest"][0]["bars"][-1]["label"] == "14 other columns"
    assert page({**found, "columns_left_out": 1}).count("One column with less effect is not shown.") == 1


def test_the_work_is_bounded_whatever_the_table(monkeypatch):
    asked = []
    real = for_page.explain_rows
    monkeypatch.setattr(for_page, "explain_rows", lambda *a, **k: asked.append(k) or real(*a, **k))
    explained_for_page(*case())
    assert asked[0]["evaluations"] == for_page.EVALUATIONS
    for n, columns in ((1_000, 10), (10**6, 3), (50, 60)):
        rows, background = for_page._sizes(n, columns)
        assert (rows + 3) * background * 4 * (columns - 1) <= for_page.EVALUATIONS
        assert 5 <= rows <= 40


def test_there_is_nothing_to_explain_without_rows_or_with_fixed_or_infinite_widths():
    model, _ = case()
    assert explained_for_page(model, evidence_of(n=50)) is None
    X, y = draw(199, 0)
    fixed = gb.calibrate(LinearRegression().fit(X, y), (X, y))
    assert explained_for_page(fixed, Evidence.of(fixed, *draw(50, 1))) is None
    with pytest.warns(gb.InsufficientCalibrationWarning):
        infinite = gb.calibrate(Bands(), (X[:5], y[:5]), outputs="bounds")
    assert explained_for_page(infinite, Evidence.of(infinite, *draw(50, 1))) is None
    assert explained_for_page(model, Evidence.of(model, *draw(1, 1))) is None
    assert page(None).strip() == ""


def test_a_model_that_refuses_mixed_rows_has_a_page_without_reasons():
    class Strict(Bands):
        def predict(self, X):
            if not np.array_equal(X.iloc[:, 2], 2 * X.iloc[:, 0]):
                raise ValueError("The third column must be twice the first.")
            return super().predict(X)

    (X, y), (new, outcomes) = ((X.assign(c2=2 * X.iloc[:, 0]), y) for X, y in (draw(199, 0), draw(50, 1)))
    model = gb.calibrate(Strict(), (X, y), outputs="bounds")
    assert explained_for_page(model, Evidence.of(model, new, outcomes)) is None


def test_two_rows_are_enough():
    model, _ = case()
    assert len(explained_for_page(model, Evidence.of(model, *draw(2, 1)))["widest"]) == 2


def test_a_function_is_not_asked_unasked():
    calls = []

    def service(X):
        calls.append(len(X))
        return Bands().predict(X)

    model = gb.calibrate(service, draw(199, 0))
    evidence = Evidence.of(model, *draw(300, 1))
    before = len(calls)
    assert explained_for_page(model, evidence) is None
    assert len(calls) == before


def test_a_model_that_fails_on_mixed_rows_has_a_page_without_explanation(monkeypatch):
    model, evidence = case()

    def fail(*_, **__):
        raise KeyError("a code that the user's model does not know")

    monkeypatch.setattr(model.bands.predictor.__class__, "columns", fail)
    assert explained_for_page(model, evidence) is None
