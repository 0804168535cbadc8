"""Rows that belong together, on the command line: --split-by, repeated rows, doubts, and what their verdicts are."""

import numpy as np
import pandas as pd
import pytest

import guardband as gb

FAST = ("--preset", "fast", "--no-report")


def visits(seed=0, count=150, prefix="p"):
    """Visits of patients, each with an effect of its own."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), 6)
    frame = pd.DataFrame({"patient": [f"{prefix}{one}" for one in who], "dose": rng.normal(size=len(who)).round(4)})
    return frame.assign(y=(frame["dose"] + rng.normal(size=count)[who] + 0.3 * rng.normal(size=len(who))).round(4))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits().to_csv("visits.csv", index=False)
    visits(1, prefix="q").to_csv("new.csv", index=False)
    return tmp_path


@pytest.fixture
def fitted(command, here):
    said = command("fit", "visits.csv", "-t", "y", "--split-by", "patient", "--json", "-v", *FAST)
    assert said.code == 0, said.err
    return said


def test_a_promise_for_new_patients(fitted):
    said = fitted.json["certificate"]
    assert said["promise"]["entity"] == "'patient'"
    assert (said["n_calibration"], said["promise"]["n_rows"]) == (34, 204)
    assert fitted.json["rows"] == {"read": 900, "trained": 606, "calibrated": 204, "checked": 90}
    assert "patient  category, 150 kinds (split by)" in " ".join(fitted.err.split("\n")).replace("   ", "  ")


def test_an_audit_of_new_patients_takes_one_row_of_each(command, fitted):
    said = command("audit", "visits.guardband", "new.csv", "--json")
    assert said.code == 0, said.err
    assert said.json["n"] == 150
    assert any("150" in note and "900" in note for note in said.json["notes"])


def test_an_audit_of_the_same_patients_cannot_judge(command, fitted, here):
    visits(2).to_csv("again.csv", index=False)  # other rows of patients that the model knows
    said = command("audit", "visits.guardband", "again.csv")
    assert said.code == 2
    assert "Cannot judge: 135 of 150 entities ('patient')" in said.err
    assert command("audit", "visits.guardband", "again.csv", "--force").code == 2


def test_an_audit_needs_the_column_that_names_patients(command, here):
    assert command("fit", "visits.csv", "-t", "y", "--split-by", "patient", "--drop", "patient", *FAST).code == 0
    visits(1).drop(columns="patient").to_csv("nameless.csv", index=False)
    said = command("audit", "visits.guardband", "nameless.csv")
    assert said.code == 2
    assert "has no column 'patient' for --split-by, as when the model was made" in said.err


def test_predict_does_not_need_the_column_that_names_patients(command, fitted):
    visits(1, prefix="q").drop(columns="patient").to_csv("nameless.csv", index=False)
    for name in ("new", "nameless"):
        said = command("predict", "visits.guardband", f"{name}.csv", "-o", f"{name}-out.csv", "--json")
        assert said.code == 0, said.err
        assert said.json["unlike"]["rows"] == 0
    answered, expected = pd.read_csv("nameless-out.csv"), pd.read_csv("new-out.csv")
    pd.testing.assert_frame_equal(answered, expected.drop(columns="patient"))
    said = command("audit", "visits.guardband", "nameless.csv")
    assert said.code == 2
    assert "has no column 'patient' for --split-by, as when the model was made" in said.err


def test_a_model_from_python_is_audited_by_its_column(command, here):
    frame = visits()
    model = gb.IntervalRegressor(split_by="patient", preset="fast", random_state=0, verbose=False)
    model.fit(frame[["patient", "dose"]], frame["y"]).save("own.guardband")
    said = command("audit", "own.guardband", "new.csv", "-t", "y", "--json")
    assert said.code == 0, said.err
    assert said.json["n"] == 150


def test_a_column_that_is_left_out_may_name_patients(command, here):
    said = command("fit", "visits.csv", "-t", "y", "--split-by", "patient", "--drop", "patient", "--json", *FAST)
    assert said.json["features"] == ["dose"]
    assert said.json["certificate"]["promise"]["entity"] == "'patient'"
    assert command("audit", "visits.guardband", "new.csv", "--json").json["n"] == 150


def test_a_new_calibration_keeps_patients_together(command, fitted):
    said = command("audit", "visits.guardband", "new.csv", "--recalibrate", "anew.guardband")
    assert said.code == 0, said.err
    assert gb.load("anew.guardband").certificate_.n_calibration == 150


def test_without_split_by_the_doubt_is_said_once_and_nothing_is_judged(command, here):
    said = command("fit", "visits.csv", "-t", "y", *FAST)
    assert said.code == 2
    assert "Rows with the same 'patient' have similar errors." in said.out
    assert '--split-by patient (split_by="patient")' in said.out
    assert "similar errors" not in said.err
    assert said.err == ("guardband: These rows cannot judge the promise. The verdict above says why, and what to do.\n")
    assert said.out.startswith("Cannot judge: ")
    assert command("audit", "visits.guardband", "new.csv").code in (1, 2)  # broken for new patients, or not known


def test_rows_that_stand_alone_by_the_users_word_are_judged(command, here):
    said = command("fit", "visits.csv", "-t", "y", "--independent-rows", *FAST)
    assert said.code in (0, 1)
    assert "similar errors" not in said.out + said.err


@pytest.mark.filterwarnings("always::guardband.RepeatedRowsWarning")
def test_repeated_rows_are_told_once_and_stay_together(command, here):
    frame = visits(count=70)[["dose", "y"]]
    pd.concat([frame] * 3).sample(frac=1, random_state=0).to_csv("thrice.csv", index_label="row")
    said = command("fit", "thrice.csv", "-t", "y", "--json", *FAST)
    assert said.code == 0, said.err
    assert said.err.count("840 of 1,260 rows") == 1
    assert said.json["rows"]["checked"] == 3 * 42
    assert said.json["certificate"]["n_calibration"] == np.ceil(0.25 * 378)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--split-by", "storm"], "has no column 'storm' for --split-by"),
        (["--split-by", "y"], "'y' is the target. Name another column"),
        (["--split-by", "patient", "--independent-rows"], "exclude each other"),
        (["--split-by", "patient", "--time", "dose", "--split-by-time"], "exclude each other"),
    ],
)
def test_bad_wishes_are_one_line_and_leave_nothing(command, here, arguments, words):
    said = command("fit", "visits.csv", "-t", "y", "-q", *arguments, *FAST)
    assert said.code == 2
    assert words in said.err
    assert not (here / "visits.guardband").exists()
