"""guardband calibrate, and what the other commands make of the rule that it writes."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import guardband as gb
from forged_models import bounds

NAMED = ("--lower", "q05", "--point", "mid", "--upper", "q95", "--target", "price")


def written(path, n=400, seed=0, **more):
    """Write predictions with their true values, and return them."""
    lower, point, upper, y = bounds(n, seed)
    columns = {"id": np.arange(n), "q05": lower, "mid": point, "q95": upper, "price": y, "town": np.arange(n) % 3}
    csv.write_csv(pa.table(columns | more), path)
    return lower, point, upper, y


@pytest.fixture
def rule(tmp_path, command):
    """Return the path of a rule, with the file that it was made from beside it."""
    written(tmp_path / "bands.csv")
    assert command("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "price.rule", "-q").code == 0
    return tmp_path / "price.rule"


def test_a_file_of_bounds_becomes_the_rule_that_python_makes(tmp_path, command):
    own = written(tmp_path / "bands.csv")
    said = command("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "r")
    assert said.code == 0
    assert said.out.startswith("Promise: ")
    assert "How:" not in said.out
    assert f"Rule: {tmp_path / 'r'}, from 400 calibration rows" in said.out
    assert f"Next: guardband predict {tmp_path / 'r'}" in said.out
    rule = gb.load(tmp_path / "r")
    assert rule.certificate == gb.BandCalibrator().fit(*own).certificate
    assert rule.columns.names == ("q05", "mid", "q95")


def test_json_has_all_that_is_said(tmp_path, command):
    written(tmp_path / "bands.csv")
    options = ("--level", "0.8,0.9", "--guarantee", "pac", "--delta", "0.05", "--json")
    said = command("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "r", *options).json
    assert said["rule"] == str(tmp_path / "r")
    assert said["columns"] == ["q05", "mid", "q95"]
    assert said["certificate"]["confidence_level"] == [0.8, 0.9]
    assert said["certificate"]["delta"] == 0.05
    assert said["rows"] == {"read": 400, "calibrated": 400}
    assert len(said["sample"]) == 5


def test_predict_finds_the_columns_by_their_names(rule, tmp_path, command):
    lower, point, upper, _ = written(tmp_path / "new.csv", 50, seed=1)
    table = csv.read_csv(tmp_path / "new.csv")
    parquet.write_table(table.select(["q95", "town", "mid", "q05"]), tmp_path / "new.parquet")
    expected = gb.load(rule).transform(lower, point, upper)
    for name in ("new.csv", "new.parquet"):
        assert command("predict", rule, tmp_path / name, "-o", tmp_path / "out.csv").code == 0
        out = csv.read_csv(tmp_path / "out.csv")
        np.testing.assert_allclose(out["lower"], expected.lower, rtol=1e-12)
        np.testing.assert_allclose(out["upper"], expected.upper, rtol=1e-12)


def test_columns_that_are_called_as_ours_are_kept(tmp_path, command):
    lower, point, upper, y = bounds(200)
    csv.write_csv(pa.table({"lower": lower, "point": point, "upper": upper, "y": y}), tmp_path / "b.csv")
    named = ("--lower", "lower", "--upper", "upper", "--target", "y")
    assert command("calibrate", tmp_path / "b.csv", *named, "-o", tmp_path / "r").code == 0
    assert command("predict", tmp_path / "r", tmp_path / "b.csv", "-o", tmp_path / "out.csv").code == 0
    names = csv.read_csv(tmp_path / "out.csv").column_names
    assert names[:4] == ["lower", "point", "upper", "y"]
    assert names[4:] == ["guardband_point", "guardband_lower", "guardband_upper"]


def test_audit_and_report_judge_a_rule(rule, tmp_path, command):
    written(tmp_path / "new.csv", seed=1)
    said = command("audit", rule, tmp_path / "new.csv", "--report-by", "town", "--report", tmp_path / "page.html")
    assert said.code == 0
    assert said.out.startswith("Consistent with the promise")
    assert (tmp_path / "page.html").exists()
    assert "are among those that" in command("audit", rule, tmp_path / "bands.csv").complaint
    lower, point, upper, y = bounds(400, 2)
    off = pa.table({"q05": lower, "mid": point, "q95": upper, "price": point + 3 * (y - point)})
    csv.write_csv(off, tmp_path / "off.csv")
    assert command("audit", rule, tmp_path / "off.csv").code == 1
    said = command("report", rule, tmp_path / "new.csv", "-o", tmp_path / "rows.html")
    assert said.out.startswith("Consistent with the promise")
    assert "Consistent with the promise" in (tmp_path / "rows.html").read_text()
    assert command("report", rule).code == 0
    alone = (tmp_path / "price.html").read_text()
    assert "Not yet checked" in alone
    assert "bands.csv" in alone


def test_a_rule_is_recalibrated_on_rows_that_judge_it(rule, tmp_path, command):
    own = written(tmp_path / "new.csv", seed=1)
    assert command("audit", rule, tmp_path / "new.csv", "--recalibrate", tmp_path / "again.rule").code == 0
    again = gb.load(tmp_path / "again.rule")
    assert again.certificate == gb.BandCalibrator().fit(*own).certificate
    assert again.columns == gb.load(rule).columns
    written(tmp_path / "later.csv", seed=2)
    assert command("audit", tmp_path / "again.rule", tmp_path / "later.csv").code == 0


def test_a_point_alone_and_bounds_alone(tmp_path, command):
    lower, point, upper, y = written(tmp_path / "bands.csv")
    calls = {
        ("--point", "mid"): gb.BandCalibrator("conf-fw").fit(None, point, None, y),
        ("--lower", "q05", "--upper", "q95"): gb.BandCalibrator().fit(lower, None, upper, y),
        ("--lower", "q05", "--upper", "q95", "--method", "cqr"): gb.BandCalibrator("cqr").fit(lower, None, upper, y),
    }
    for named, expected in calls.items():
        said = command("calibrate", tmp_path / "bands.csv", *named, "-t", "price", "-o", tmp_path / "r")
        assert said.code == 0
        assert gb.load(tmp_path / "r").certificate == expected.certificate
        assert command("audit", tmp_path / "r", tmp_path / "bands.csv").code == 2


def test_rows_that_belong_together_count_once(tmp_path, command):
    written(tmp_path / "bands.csv", customer=np.arange(400) // 4)
    call = ("calibrate", tmp_path / "bands.csv", *NAMED, "-o", tmp_path / "r", "--split-by", "customer")
    assert "customer" in command(*call, "--verbose").out
    written(tmp_path / "new.csv", seed=1)
    assert "--split-by" in command("audit", tmp_path / "r", tmp_path / "new.csv").complaint
    written(tmp_path / "new.csv", seed=1, customer=1000 + np.arange(400) // 4)
    assert json.loads(command("audit", tmp_path / "r", tmp_path / "new.csv", "--json").out)["n"] == 100


@pytest.mark.filterwarnings("always::guardband.RepeatedRowsWarning")
def test_repeated_rows_are_found_and_counted_once(tmp_path, command):
    written(tmp_path / "bands.csv")
    table = csv.read_csv(tmp_path / "bands.csv")
    csv.write_csv(pa.concat_tables([table, table]), tmp_path / "twice.csv")
    call = ("calibrate", tmp_path / "twice.csv", *NAMED, "-o", tmp_path / "r")
    assert "400 of 800 rows repeat another row" in command(*call).err
    assert gb.load(tmp_path / "r").certificate.n_calibration == 400
    written(tmp_path / "new.csv", seed=1)
    assert command("audit", tmp_path / "r", tmp_path / "new.csv").code == 0
    assert command(*call, "--independent-rows").err == ""
    assert gb.load(tmp_path / "r").certificate.n_calibration == 800


def test_rows_without_a_true_value_are_left_out(tmp_path, command):
    lower, point, upper, y = bounds(100)
    known = [None if i < 10 else float(value) for i, value in enumerate(y)]
    csv.write_csv(pa.table({"q05": lower, "mid": point, "q95": upper, "price": known}), tmp_path / "b.csv")
    said = command("calibrate", tmp_path / "b.csv", *NAMED, "-o", tmp_path / "r")
    assert "10 of 100 rows are left out" in said.err
    assert gb.load(tmp_path / "r").certificate.n_calibration == 90


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_too_few_rows_are_told_and_the_rule_is_written(tmp_path, command):
    written(tmp_path / "b.csv", 5)
    said = command("calibrate", tmp_path / "b.csv", *NAMED, "-o", tmp_path / "r", "-q")
    assert said.code == 2
    assert "No usable intervals: found 5 calibration rows, too few for this level. Bring more rows." in said.err
    assert (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, ("--lower", "q5"), "has no column 'q5' for --lower. Did you mean"),
        ({}, ("--target", "q05"), "'q05' is the target"),
        ({}, ("--lower", "q95", "--upper", "q05"), r"rows 1, 2, 3.* \(on the command line --crossing sort\)."),
        ({}, ("--point", "q05"), "must be different columns"),
        ({}, ("--method", "pav"), "--method pav needs more than one interval for each row. Use one of conf-nn"),
        ({}, ("--method", "nothing"), "nothing"),
        ({}, ("--crossing", "maybe"), "crossing must be 'raise' or 'sort'"),
        ({}, ("--guarantee", "sure"), "guarantee must be one of"),
        ({}, ("--split-by", "id", "--independent-rows"), "exclude each other"),
        (
            {"mid": ["x"] * 50},
            (),
            "'mid' must hold numbers, found 'x' in row 1 of .*csv. Correct it, or name another column.",
        ),
        ({"mid": [*map(str, range(49)), "n/k"]}, (), "found 'n/k' in row 50"),
        ({"mid": [None] + [0.0] * 49}, (), "'mid' has a missing value in row 1. Fill it in, or remove the row."),
        ({"q95": [np.inf] * 2 + [9.0] * 48}, (), "'q95' has an infinite value in rows 1, 2. Fill it in, or remove"),
        ({"q95": [1e308] + [9.0] * 49}, (), "'q95' has too large a value in row 1. Fill it in, or remove the row."),
        ({"mid": [True, False] * 25}, (), "'mid' must hold numbers, found booleans"),
        ({"price": [None] * 50}, (), "missing in every row"),
    ],
)
def test_what_cannot_be_calibrated_is_one_sentence_and_writes_nothing(change, options, words, tmp_path, command):
    written(tmp_path / "b.csv", 50, **change)
    given = dict(zip(NAMED[::2], NAMED[1::2], strict=True))
    flags = [own for own in options if own == "--independent-rows"]
    pairs = [own for own in options if own != "--independent-rows"]
    given |= dict(zip(pairs[::2], pairs[1::2], strict=True))
    every = [text for pair in given.items() for text in pair] + flags
    said = command("calibrate", tmp_path / "b.csv", *every, "-o", tmp_path / "r").complaint
    assert re.search(words, said), said
    assert not (tmp_path / "r").exists()


@pytest.mark.filterwarnings("ignore::guardband.DegenerateBandWarning")
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_bounds_of_no_width_are_not_called_too_few_rows(tmp_path, command):
    written(tmp_path / "b.csv", 50, q05=np.zeros(50), mid=np.zeros(50), q95=np.zeros(50))
    said = command("calibrate", tmp_path / "b.csv", *NAMED, "-o", tmp_path / "r", "-q", "--independent-rows")
    assert said.code == 2
    assert "beyond bounds of no width. Use --method cqr or conf-fw." in said.err


def test_a_rule_is_not_exported(rule, tmp_path, command):
    assert "is a rule, and holds no model" in command("export", rule, "--onnx", tmp_path / "x.onnx").complaint


def test_bounds_must_come_in_pairs(tmp_path, command):
    written(tmp_path / "b.csv", 50)
    call = ("calibrate", tmp_path / "b.csv", "-t", "price", "-o", tmp_path / "r")
    for named in ((), ("--lower", "q05"), ("--upper", "q95", "--point", "mid")):
        assert "Name the columns by --lower and --upper, or" in command(*call, *named).complaint
    said = command(*call, "--point", "mid", "--method", "cqr").complaint
    assert "--method cqr needs bounds" in said


def test_bounds_that_cross_are_sorted_if_asked(tmp_path, command):
    written(tmp_path / "b.csv")
    swapped = ("--lower", "q95", "--point", "mid", "--upper", "q05", "--target", "price", "--crossing", "sort")
    assert command("calibrate", tmp_path / "b.csv", *swapped, "-o", tmp_path / "r").code == 0
    assert command("predict", tmp_path / "r", tmp_path / "b.csv", "-o", tmp_path / "out.csv").code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q05": None}, "lacks 1 of the model's 3 columns: 'q05'. Write the predictions to the table"),
        ({"q05": [0.0] * 9 + [None]}, "Column 'q05' has a missing value in row 10"),
        ({"q05": [-9.0] * 9 + [99.0]}, r"found 1 where it does not \(row 10\). Correct these rows"),
        ({"q05": ["a"] * 10}, "'q05' held numbers .* found 'a' in row 1"),
    ],
)
def test_predict_refuses_what_a_rule_cannot_use(change, words, rule, tmp_path, command):
    lower, point, upper, _ = bounds(10, 3)
    columns = {"q05": lower, "mid": point, "q95": upper} | change
    kept = {name: values for name, values in columns.items() if values is not None}
    csv.write_csv(pa.table(kept), tmp_path / "new.csv")
    said = command("predict", rule, tmp_path / "new.csv", "-o", tmp_path / "out.csv").complaint
    assert re.search(words, said), said
    assert not (tmp_path / "out.csv").exists()


def test_a_rule_saved_in_python_takes_columns_named_lower_point_and_upper(tmp_path, command):
    gb.BandCalibrator().fit(*bounds(400)).save(tmp_path / "r")
    lower, point, upper, y = bounds(400, 1)
    csv.write_csv(pa.table({"y": y, "lower": lower, "point": point, "upper": upper}), tmp_path / "new.csv")
    assert command("audit", tmp_path / "r", tmp_path / "new.csv").code == 0
    assert (
        command("predict", tmp_path / "r", tmp_path / "new.csv", "-o", tmp_path / "o.csv", "--level", "0.5").code == 0
    )


def test_a_rule_has_one_target(tmp_path, command):
    lower, _, upper, y = bounds(400)
    csv.write_csv(pa.table({"y": y, "lower": lower, "upper": upper, "z": y}), tmp_path / "b.csv")
    bands = ("--lower", "lower", "--upper", "upper", "-o", tmp_path / "r")
    said = command("calibrate", tmp_path / "b.csv", *bands, "--target", "z", "--target", "y")
    assert said.code == 2
    assert "A rule has one target, found --target z and --target y." in said.complaint
    assert not (tmp_path / "r").exists()
