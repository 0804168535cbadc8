import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import guardband as gb
from notebook_html import MEAN, Read, shown

RNG = np.random.default_rng(0)
X = pd.DataFrame({MEAN: RNG.random(200), "b": RNG.random(200)}).rename(index=lambda i: f"{MEAN}{i}")
Y = RNG.random(200)


def quick(**options):
    return gb.IntervalRegressor(hidden=(4,), network="plain", epochs=1, random_state=0, split_by=[], **options)


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, Y)


def card(html):
    """Return what is shown below scikit-learn's diagram."""
    diagram, mark, own = html.partition("<style>.guardband")
    assert diagram
    return Read(mark + own)


def test_an_estimator_shows_the_diagram_and_then_its_promise(fitted):
    html = fitted._repr_html_()
    assert html.startswith(estimator_html_repr(fitted)[:20])
    assert "sk-top-container" in html
    assert card(html).text.startswith(f"IntervalRegressor {fitted.certificate_.promise.headline('conf-nn')}")
    bundle = fitted._repr_mimebundle_()
    assert card(bundle["text/html"]).text == card(html).text
    assert bundle["text/plain"] == repr(fitted)


def test_an_estimator_without_a_promise_says_what_to_do_next():
    assert card(quick()._repr_html_()).text.endswith("Call fit(X, y).")
    trained = quick(calibration_size=None).fit(X, Y)
    assert "Call calibrate(X, y) with rows that did not train it" in card(trained._repr_html_()).text


def test_text_is_shown_if_scikit_learn_shows_text(fitted):
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert fitted._repr_mimebundle_() == {"text/plain": repr(fitted)}


def test_a_pipeline_draws_its_steps_itself(fitted):
    html = make_pipeline(StandardScaler(), quick())._repr_html_()
    assert "IntervalRegressor" in html
    assert ".guardband" not in html


def test_names_from_a_table_are_escaped(fitted):
    """The first name is that of a column, which scikit-learn shows among the fitted attributes, the second a row's."""
    assert MEAN not in fitted._repr_html_()
    assert MEAN in shown(fitted.predict_interval(X)).text


def test_a_calibrated_model_shows_its_promise():
    guarded = gb.calibrate(LinearRegression().fit(X[["b"]], Y), (X[["b"]] + 1, Y))
    text = shown(guarded).text
    assert text.startswith("Calibrated model · Model: LinearRegression · Columns: 1 ")
    assert guarded.certificate.promise.headline("conf-fw") in text


def test_a_calibrated_network_shows_its_promise():
    network = torch.nn.Sequential(gb.nn.TripleHead(2))
    data = (torch.tensor(RNG.random((50, 2))).float(), torch.tensor(Y[:50]).float())
    guarded = gb.calibrate(network, data)
    text = shown(guarded).text
    assert text.startswith("Calibrated network · Network: Sequential · Weights: 9 ")
    assert guarded.certificate.promise.headline("conf-nn") in text


def test_a_calibrator_shows_what_it_was_asked_for_until_it_is_calibrated():
    rule = gb.BandCalibrator("conf-nn", confidence_level=[0.9, 0.5], guarantee="pac", delta=0.05)
    text = shown(rule).text
    assert text.startswith("BandCalibrator · method: conf-nn · confidence level: 90%, 50% · guarantee: pac")
    assert "Not calibrated yet. Call fit(lower, point, upper, y)" in text
    rule.fit(np.full(200, -1.0), np.zeros(200), np.ones(200), Y)
    assert shown(rule).text.startswith(f"BandCalibrator {rule.certificate.promise.headline('conf-nn')}")
