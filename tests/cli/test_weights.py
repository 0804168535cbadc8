"""Weights on the command line: calibrate, predict, audit and report."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb
from forged_models import bounds

NAMED = ("--lower", "q05", "--upper", "q95", "--target", "price", "--weights", "w")


def written(path, n=400, seed=0, **more):
    """Write predictions with their true values and weights, and return all of them."""
    lower, _, upper, y = bounds(n, seed)
    weights = 0.5 + np.random.default_rng(seed + 1).random(n)
    csv.write_csv(pa.table({"q05": lower, "q95": upper, "price": y, "w": weights} | more), path)
    return lower, upper, y, weights


@pytest.fixture
def rule(tmp_path, command):
    written(tmp_path / "bands.csv")
    assert command("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "r", "-q").code == 0
    return tmp_path / "r"


def test_a_rule_with_weights_is_that_of_python(rule, tmp_path, command):
    lower, upper, y, weights = written(tmp_path / "bands.csv")
    own = gb.BandCalibrator().fit(lower, None, upper, y, weights=weights)
    assert gb.load(rule).certificate == own.certificate
    low, high, _, new = written(tmp_path / "new.csv", 50, seed=3)
    assert command("predict", rule, tmp_path / "new.csv", "-o", tmp_path / "out.csv").code == 0
    expected = own.transform(low, None, high, weights=new)
    np.testing.assert_allclose(csv.read_csv(tmp_path / "out.csv")["upper"], expected.upper, rtol=1e-12)


def test_audit_and_report_read_the_weights(rule, tmp_path, command):
    written(tmp_path / "later.csv", 200, seed=5)
    said = command("audit", rule, tmp_path / "later.csv")
    assert said.code == 2
    assert said.out.startswith("Cannot judge: ")
    assert command("report", rule, tmp_path / "later.csv", "-o", tmp_path / "p.html").code == 0


@pytest.mark.parametrize("call", ["predict", "audit", "report"])
def test_a_table_without_the_weights_is_refused_in_a_sentence(rule, tmp_path, command, call):
    written(tmp_path / "later.csv", 50, seed=5)
    csv.write_csv(csv.read_csv(tmp_path / "later.csv").drop_columns("w"), tmp_path / "later.csv")
    said = command(call, rule, tmp_path / "later.csv")
    assert said.code == 2
    assert "has no column 'w', which holds the weight of each row. Add it" in " ".join(said.err.split())


def test_new_rows_need_no_weights_with_a_bound_on_them(tmp_path, command):
    written(tmp_path / "bands.csv")
    pac = ("--guarantee", "pac", "--max-weight", "1.5")
    said = command("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "r", *pac)
    assert said.code == 0
    assert "new rows from the weighted population" in said.out
    lower, _, upper, _ = bounds(60, 7)
    csv.write_csv(pa.table({"q05": lower, "q95": upper}), tmp_path / "new.csv")
    assert command("predict", tmp_path / "r", tmp_path / "new.csv", "-o", tmp_path / "out.csv").code == 0


def test_rows_that_recalibrate_need_no_weights(rule, tmp_path, command):
    written(tmp_path / "later.csv", 200, seed=5)
    command("audit", rule, tmp_path / "later.csv", "--recalibrate", tmp_path / "again")
    assert gb.load(tmp_path / "again").weighting is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((*NAMED[:-2], "--max-weight", "2"), "--max-weight is about weights"),
        ((*NAMED, "--guarantee", "pac"), "Add --max-weight NUMBER"),
        ((*NAMED, "--max-weight", "2"), "--max-weight is for --guarantee pac"),
        ((*NAMED, "--guarantee", "pac", "--max-weight", "1"), "The largest weight is"),
        ((*NAMED[:-1], "v"), "has no column 'v' for --weights"),
        ((*NAMED[:-1], "name"), "Column 'name' must hold numbers, found 'a' in row 1"),
        ((*NAMED[:-1], "below"), "1 of 400 are negative (row 1)"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, command, asked, words):
    below = np.ones(400)
    below[0] = -1
    written(tmp_path / "bands.csv", name=["a"] * 400, below=below)
    said = command("calibrate", tmp_path / "bands.csv", *asked, "-o", tmp_path / "r")
    assert said.code == 2
    assert words in " ".join(said.err.split())


def test_weights_that_python_gave_are_in_no_column(tmp_path, command):
    lower, upper, y, weights = written(tmp_path / "bands.csv")
    gb.BandCalibrator().fit(lower, None, upper, y, weights=weights).save(tmp_path / "r")
    said = command("predict", tmp_path / "r", tmp_path / "bands.csv")
    assert said.code == 2
    assert "no column of a table holds them" in " ".join(said.err.split())
