"""--distribution, --quantiles, --above and --below on the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import guardband as gb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("distribution")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(400), "b": rng.random(400)})
    frame["y"] = frame["a"] + rng.normal(size=400)
    frame.to_csv(path / "t.csv", index=False)
    asked = {"preset": "fast", "hidden": (4,), "epochs": 2, "random_state": 0, "verbose": False}
    gb.IntervalRegressor(**asked).fit(frame[["a", "b"]], frame["y"]).save(path / "m.guardband")
    point = frame["a"].to_numpy()
    rule = gb.BandCalibrator().fit(point - 1, point, point + 1, frame["y"])
    rule.save(path / "r.rule")
    return path


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_predict_adds_quantiles_and_probabilities(command, inside):
    asked = ("--quantiles", "0.05,0.5", "--quantiles", "0.95", "--above", "0.5", "--below", "-1")
    said = command("predict", "m.guardband", "t.csv", "-o", "out.csv", *asked)
    assert said.code == 0, said.err
    table, frame, model = pd.read_csv("out.csv"), pd.read_csv("t.csv"), gb.load("m.guardband")
    names = ["quantile_0.05", "quantile_0.5", "quantile_0.95", "probability_above_0.5", "probability_below_-1"]
    assert list(table)[-5:] == names
    words = " ".join(said.err.split())
    assert "Quantiles: On average over possible calibration sets, at least the stated share" in words
    assert "probability_above_0.5: On average over possible calibration sets, at most 10% of new rows" in words
    assert "infinite" not in words
    X = frame[["a", "b"]]
    np.testing.assert_allclose(table[names[:3]], model.predict_quantiles(X, [0.05, 0.5, 0.95]))
    np.testing.assert_allclose(table[names[3]], np.asarray(model.predict_probability(X, above=0.5)))
    np.testing.assert_allclose(table[names[4]], np.asarray(model.predict_probability(X, below=-1)))


def test_a_quantile_with_too_few_calibration_rows_is_named(command, inside):
    """Of 400 rows a quarter calibrates: 100 are enough for 0.99, which needs 99, and not for 0.999."""
    said = command("predict", "m.guardband", "t.csv", "-o", "out.csv", "--quantiles", "0.5,0.99,0.999")
    assert said.code == 0, said.err
    words = " ".join(said.err.split())
    assert "The quantile 0.999 is infinite in every row" in words
    assert "100 calibration rows, and 0.999 needs at least 999." in words
    assert np.isinf(pd.read_csv("out.csv")["quantile_0.999"]).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--quantiles", "many"), "Write --quantiles 0.05,0.5,0.95"),
        (("--quantiles", "95"), "Write 0.95 for 95%"),
        (("--quantiles", ""), "Name at least one level"),
        (("--above", "inf"), "--above must be a finite number, found inf"),
        (("--below", "nan"), "--below must be a finite number, found nan"),
    ],
)
def test_levels_that_cannot_be_are_refused(command, inside, asked, said):
    found = command("predict", "m.guardband", "t.csv", "-o", "never.csv", *asked)
    assert found.code == 2
    assert said in " ".join(found.err.split())


def test_a_rule_for_bounds_has_none(command, inside):
    found = command("predict", "r.rule", "t.csv", "-o", "never.csv", "--above", "1")
    assert found.code == 2


def test_fit_learns_a_distribution(command, inside):
    said = command("fit", "t.csv", "-t", "y", "--distribution", "--preset", "1", "-o", "d.guardband")
    assert said.code in (0, 1), said.err
    assert "Quantiles: On average over possible calibration sets" in " ".join(said.out.split())
    assert "Quantiles have a promise of their own. On average" in Path("d.html").read_text()
    model = gb.load("d.guardband")
    assert model.distribution
    assert len(model.fitted_.placement.levels) == 23
    refused = command("fit", "t.csv", "-t", "y", "--distribution", "--group", "a")
    assert "--distribution and --group exclude each other" in refused.err
