"""--calibration and --folds on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import guardband as gb


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((150, 2))
    rows = [f"{a},{b},{a + e}" for (a, b), e in zip(x, rng.standard_normal(150), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    (tmp_path / "twice.csv").write_text("\n".join(["a,b,y", *rows, *rows]))
    return ["fit", "t.csv", "--target", "y", "--preset", "fast"]


def test_all_rows_train_and_calibrate(command, table):
    said = command(*table, "--calibration", "cv+", "--folds", "5", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["rows"] == {"read": 150, "trained": 150, "calibrated": 150, "checked": 0}
    assert found["certificate"]["kind"] == "cv+"
    assert gb.load("t.guardband").certificate_.promise.fold_sizes == (30,) * 5
    assert command("predict", "t.guardband", "t.csv", "-o", "out.csv").code == 0
    assert command("report", "t.guardband").code == 0
    page = Path("t.html").read_text()
    assert "possible tables" in page
    assert "Look at the coverage of new rows" in page
    assert "Check the promise on new rows" not in page
    assert "split at random" not in page
    assert "for the target" not in page


def test_test_rows_are_shown_and_judge_nothing(command, table):
    said = command(*table, "--calibration", "cv-minmax", "--check", "0.2")
    assert said.code == 0, said.err
    assert "Cannot judge: " in said.out
    assert "30 rows" in said.out
    assert "guardband predict" in said.out


def test_what_needs_held_out_rows_is_refused(command, table):
    assert command(*table, "--calibration", "cv+").code == 0
    assert command("export", "t.guardband", "--onnx", "t.onnx").code == 2
    assert command("monitor", "t.guardband", "t.csv", "--state", "s").code == 2
    said = command("audit", "t.guardband", "t.csv", "--force")
    assert said.code == 2


@pytest.mark.parametrize(
    "other",
    [
        ("--weight", "b"),
        ("--guarantee", "pac"),
        ("--side", "upper"),
        ("--tails", "0.05,0.05"),
        ("--group", "b"),
        ("--split-by", "b"),
        ("--for-target", "t.csv"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command, table, other):
    said = command(*table, "--calibration", "cv+", *other)
    assert said.code == 2
    assert f"--calibration cv+ and {other[0]}" in said.err


def test_other_words_and_repeated_rows_are_refused(command, table):
    assert "calibration must be one of" in command(*table, "--calibration", "loo").err
    assert "has no effect" in command(*table, "--folds", "4").err
    said = command("fit", "twice.csv", "--target", "y", "--preset", "fast", "--calibration", "cv+")
    assert said.code == 2
    assert "--independent-rows" in said.err
    assert "keeps these rows together" not in said.err


def test_advice_on_time_says_how_to_follow_it(command, table):
    said = command(*table, "--calibration", "cv+", "--time", "a")
    assert "Add --split-by-time" in said.err
    assert "Also use --calibration split." in said.err
