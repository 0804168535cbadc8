import json
import os
import zipfile
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import guardband as gb
from cli_tables import awkward_table, small_table
from excel_files import write_xlsx
from guardband.cli import fit_steps
from guardband.cli.fit_result import Result
from guardband.doors.kept_report import read_report
from guardband.learning import distill as distillation

pytest.importorskip("guardband.report.page")


@pytest.fixture
def table_path(tmp_path):
    csv.write_csv(small_table(), tmp_path / "sales.csv")
    return tmp_path / "sales.csv"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_command_from_table_to_report(command, table_path, here):
    said = command("fit", "sales.csv", "--target", "price", "--preset", "fast")
    assert said.code == 0, said.err
    told = said.out.splitlines()
    assert told[0].startswith("Too few rows to tell: ")
    assert told[2] == "5 of the 50 test rows, with their 90% intervals:"
    assert told[4].split() == ["size", "town", "day", "prediction", "lower", "upper", "true", "value"]
    assert [line.startswith("Promise: ") for line in told].count(True) == 1
    assert told[-3:] == [
        "Model: sales.guardband",
        "Page:  sales.html",
        "Next:  guardband predict sales.guardband NEW.csv -o PREDICTIONS.csv",
    ]
    assert max(len(line) for line in told[2:12]) <= 80
    assert said.err == ""
    assert "<html" in (here / "sales.html").read_text()
    model = gb.load(here / "sales.guardband")
    assert model.feature_names_in_.tolist() == ["size", "town", "day", "sold"]
    assert model.certificate_.n_calibration == np.ceil(0.25 * 450)


def test_distill_leaves_one_network(command, table_path, here, monkeypatch):
    monkeypatch.setattr(distillation, "MOST_ROWS", 1000)
    monkeypatch.setattr(distillation, "RECIPE", replace(distillation.RECIPE, epochs=1))
    said = command("fit", "sales.csv", "--target", "price", "--preset", "fast", "--distill", "--check", "0")
    assert said.code == 0, said.err
    assert gb.load(here / "sales.guardband").fitted_.learned.copies == 1
    said = command("fit", "sales.csv", "--target", "price", "--distill", "--calibration", "cv+")
    assert said.code == 2
    assert said.err.strip() == ("guardband: --calibration cv+ and --distill exclude each other. Remove one of them.")


def test_the_rest_is_told_if_verbose(command, table_path, here):
    said = command("fit", "sales.csv", "--target", "price", "--preset", "fast", "--verbose")
    assert said.code == 0, said.err
    for words in ("read as", "date", "boolean", "category, 3 kinds", "number (target)"):
        assert words in said.err
    for words in ("Promise: ", "Assumes: ", "Not promised: ", "how the model was made", "Epochs"):
        assert words in said.out
    refused = command("fit", "sales.csv", "-t", "price", "-v", "-q")
    assert "--quiet and --verbose exclude each other. Remove one of them." in refused.complaint


def test_the_same_seed_gives_the_same_model_and_json_is_all_there_is(command, table_path, here):
    arguments = ["fit", table_path, "-t", "price", "--preset", "fast", "--level", "0.5,0.9", "--json", "-q"]
    first, second = (command(*arguments, "-o", here / name) for name in ("a.guardband", "b.guardband"))
    assert first.err == ""
    X = small_table().drop_columns(["price", "sold"]).append_column("sold", small_table()["sold"])
    bands = [gb.load(here / name).predict_interval(X) for name in ("a.guardband", "b.guardband")]
    assert bands[0].upper.tolist() == bands[1].upper.tolist()
    found = first.json
    assert found["rows"] == {"read": 500, "trained": 337, "calibrated": 113, "checked": 50}
    assert found["certificate"]["confidence_level"] == [0.5, 0.9]
    assert found["report"] == str(here / "a.html")
    assert set(found["sample"][0]["intervals"]) == {"0.5", "0.9"}
    assert json.dumps(found["sample"]) == json.dumps(second.json["sample"])
    assert found["verdict"] == "too few rows"
    assert found["sentence"].startswith("Too few rows to tell: ")


def test_rows_without_target_are_left_out_with_a_count(command, here):
    table = small_table()
    price = pa.array(table["price"].to_pylist()[:-30] + [None] * 30)
    parquet.write_table(table.set_column(4, "price", price), here / "t.parquet")
    said = command("fit", "t.parquet", "-t", "price", "--preset", "fast", "--check", "0", "--no-report")
    assert said.code == 0, said.err
    assert "30 of 500 rows are left out because their 'price' is missing." in said.err
    assert "of the rows given to fit" in said.out
    assert not (here / "t.html").exists()


def test_roles_of_columns(command, here):
    table = small_table().append_column("w", pa.array(np.random.default_rng(1).random(500)))
    parquet.write_table(table, here / "t.parquet")
    roles = ["--weight", "w", "--report-by", "town", "--drop", "sold", "--drop", "town", "--time", "day"]
    said = command("fit", "t.parquet", "-t", "price", *roles, "--preset", "fast")
    assert said.code == 0, said.err
    assert "Add --split-by-time to calibrate and test on the latest rows." in said.err
    assert gb.load(here / "t.guardband").feature_names_in_.tolist() == ["size", "day"]
    assert "Wien" in (here / "t.html").read_text()


def test_an_infinite_weight_is_named(command, here):
    table = small_table().append_column("w", pa.array([1.0] * 7 + [np.inf] + [1.0] * 492))
    parquet.write_table(table, here / "t.parquet")
    said = command("fit", "t.parquet", "-t", "price", "--weight", "w", "--preset", "fast", "-q")
    assert "The column 'w' must hold finite numbers, found inf in row 8 of t.parquet" in said.complaint


def test_weights_that_are_all_zero_are_bad_input(command, here):
    parquet.write_table(small_table().append_column("w", pa.array([0.0] * 500)), here / "t.parquet")
    said = command("fit", "t.parquet", "-t", "price", "--weight", "w", "--preset", "fast", "-q")
    assert "Sample weights must contain at least one non-zero number." in said.complaint


def test_a_table_may_have_a_name_that_is_no_text(command, here):
    name = os.fsdecode(b"s\xff.csv")
    with (here / name).open("wb") as file:
        csv.write_csv(small_table(), file)
    said = command("fit", name, "-t", "price", "--preset", "fast", "-q")
    assert said.code == 0, said.err
    model = os.fsdecode(b"s\xff.guardband")
    assert "s\\udcff.csv" in (here / os.fsdecode(b"s\xff.html")).read_text()
    assert command("report", model, "-o", "again.html").code == 0


BY_TIME = ["-t", "price", "--preset", "fast", "--time", "day", "--split-by-time"]


@pytest.mark.parametrize("more", [[], ["--drop", "day"]], ids=["learnt", "dropped"])
def test_split_by_time_keeps_the_latest_rows_apart_and_says_so(command, here, monkeypatch, more):
    parquet.write_table(small_table(), here / "t.parquet")
    seen = {}
    split = fit_steps.split
    monkeypatch.setattr(fit_steps, "split", lambda *given: seen.setdefault("parts", split(*given)))
    said = command("fit", "t.parquet", *BY_TIME, *more)
    assert said.code == 0, said.err
    fitted, checked = (part.table["day"].to_pylist() for part in (seen["parts"].fit, seen["parts"].check))
    assert max(fitted) < min(checked)
    assert len(checked) == 50
    model = gb.load(here / "t.guardband")
    own = model.certificate_.in_time
    assert own.by == "day"
    assert own.trained_until < own.calibrated_from < own.calibrated_until < str(min(checked))
    assert (model.split_by_time, model.certificate_.n_calibration) == (True if more else "day", np.ceil(0.25 * 450))
    assert own.in_words() in said.out
    page = unescape((here / "t.html").read_text())
    assert own.in_words() in page
    assert "500, split by time" in page
    told = json.loads(command("fit", "t.parquet", *BY_TIME, *more, "--json").out)
    assert told["certificate"]["in_time"]["trained_until"] == own.trained_until
    assert "order of time, which makes this doubtful" in told["certificate"]["assumption"]


def test_rows_of_one_day_are_on_one_side(command, here):
    table = small_table()
    coarse = [value.replace(day=1) for value in table["day"].to_pylist()]
    table = table.set_column(table.column_names.index("day"), "day", pa.array(coarse, table["day"].type))
    parquet.write_table(table, here / "t.parquet")
    said = command("fit", "t.parquet", *BY_TIME, "--json")
    assert said.code in (0, 1), said.err
    own = gb.load(here / "t.guardband").certificate_.in_time
    assert own.trained_until < own.calibrated_from


def test_a_time_that_does_not_tell_rows_apart_is_refused_in_words(command, here):
    table = small_table()
    same = pa.array([table["day"][0].as_py()] * 500, table["day"].type)
    parquet.write_table(table.set_column(2, "day", same), here / "t.parquet")
    said = command("fit", "t.parquet", *BY_TIME, "-q")
    assert "In 'day', nearly all of 500 rows have the time 2024-" in said.complaint


def test_a_missing_time_is_named(command, here):
    table = small_table()
    days = [None if i == 6 else day for i, day in enumerate(table["day"].to_pylist())]
    parquet.write_table(table.set_column(2, "day", pa.array(days, table["day"].type)), here / "t.parquet")
    said = command("fit", "t.parquet", *BY_TIME, "-q")
    assert (
        "The column 'day' has a missing value in row 7 of t.parquet. Fill it in, or remove the row." in said.complaint
    )


@pytest.mark.parametrize("more", [[], ["--check", "0"]], ids=["test rows", "no test rows"])
def test_a_random_split_that_flatters_is_told_with_its_numbers(command, here, more):
    rng = np.random.default_rng(0)
    days = np.arange(800)
    x = rng.normal(size=800)
    y = x + rng.normal(size=800) * np.where(days > 600, 4, 1)
    when = pa.array(np.datetime64("2024-01-01") + days)
    parquet.write_table(pa.table({"x": x, "when": when, "y": y}), here / "t.parquet")
    said = command("fit", "t.parquet", "-t", "y", "--preset", "fast", *more)
    told = said.out + said.err
    assert told.count("A random split flatters: intervals of a small model that contain 9") == 1
    assert 'Add --time when --split-by-time (split_by_time="when").' in told
    by_time = command("fit", "t.parquet", "-t", "y", "--preset", "fast", "--time", "when", "--split-by-time", *more)
    assert "flatters" not in by_time.out + by_time.err


@pytest.mark.parametrize("mark", [",", "."])
def test_a_target_whose_marks_may_be_of_thousands_is_refused(command, tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"id\tprice\n1\t950\n2\t1{mark}234\n3\t2{mark}500\n")
    said = command("fit", tmp_path / "t.csv", "-t", "price", "-o", tmp_path / "m.guardband", "-q")
    assert "The target 'price' must hold numbers, but in" in said.complaint
    assert f"'1{mark}234' may mean 1234 or 1.234: write 1234 or 1.2340." in said.complaint


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-t", "Prise"], "has no column 'Prise' for --target. Did you mean 'price'"),
        (["-t", "toll"], "has no column 'toll' for --target. Its columns are 'size', 'town'"),
        (["-t", "nothing like it"], "Its columns are 'size', 'town'"),
        (["-t", "town"], "The target 'town' must hold numbers, found"),
        (["-t", "day"], "The target 'day' must hold numbers, found timestamp"),
        (["-t", "price", "--drop", "twn"], "Did you mean 'town'"),
        (["-t", "price", "--drop", "size,town,day,sold"], "has no columns besides the target"),
        (["-t", "price", "--method", "conf"], "conf"),
        (["-t", "price", "--level", "90"], "Write 0.9 for 90%"),
        (["-t", "price", "--level", "high"], "A confidence level is a number such as 0.9"),
        (["-t", "price", "--preset", "slow"], "preset must be"),
        (["-t", "price", "--split-by-time"], "--time"),
        (["-t", "price", "--weight", "town"], "must hold numbers or dates in every row, found text"),
        (["-t", "price", "--weight", "size"], "has a missing value in row"),
        (["-t", "price", "-o", "no/folder.guardband"], "folder that exists"),
        (["-t", "price", "--device", "meta"], "device must be 'auto' or one that torch has here, found 'meta'"),
        (["-t", "price", "--drop", "size,price"], "is the target. Name another column for --drop"),
        (["-t", "price", "--weight", "price"], "is the target. Name another column for --weight"),
        (["-t", "price", "--report-by", "price"], "is the target. Name another column for --report-by"),
        (["-t", "price", "--time", "price"], "is the target. Name another column for --time"),
        (["-t", "price", "--no-report", "--report", "z.html"], "exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_wishes_are_one_line_and_leave_nothing(command, table_path, here, arguments, words):
    said = command("fit", "sales.csv", *arguments, "-q")
    assert words in said.complaint
    assert [path.name for path in here.iterdir()] == ["sales.csv"]


def test_a_second_column_of_the_targets_name_is_not_learnt_from(command, here):
    (here / "t.csv").write_text("x,y,y\n" + "".join(f"{i % 13},{i % 7},{i % 7}\n" for i in range(300)))
    fit = [
        "fit",
        "t.csv",
        "-t",
        "y",
        "--preset",
        "fast",
        "--check",
        "0",
        "--no-report",
        "--json",
        "-q",
        "--independent-rows",
    ]
    assert "t.csv has two columns 'y'. The second one, 'y (2)', may contain the target." in command(*fit).complaint
    assert command(*fit, "--drop", "y (2)").json["features"] == ["x"]


@pytest.mark.parametrize("name", ["sales.2023.csv", "sales.2023.csv.gz", "sales.2023.parquet"])
def test_a_model_is_called_as_its_table(command, here, name):
    table = small_table(100)
    if name.endswith("parquet"):
        parquet.write_table(table, name)
    else:
        with pa.CompressedOutputStream(name, "gzip") if name.endswith("gz") else open(name, "wb") as file:
            csv.write_csv(table, file)
    said = command("fit", name, "-t", "price", "--preset", "fast", "--json", "-q")
    assert (said.json["model"], said.json["report"]) == ("sales.2023.guardband", "sales.2023.html")


@pytest.mark.parametrize("name", ["sales.2023.zip", "sales.2023.csv.zip", "sales.2023.xlsx"])
def test_sheets_and_zip_files_are_fitted_as_their_csv_is(command, here, name):
    table = small_table(100)
    csv.write_csv(table, "t.csv")
    if name.endswith("xlsx"):
        write_xlsx(name, {"Sales": [table.column_names, *(list(row.values()) for row in table.to_pylist())]})
    else:
        with zipfile.ZipFile(name, "w") as file:
            file.write("t.csv")
    said = [command("fit", own, "-t", "price", "--preset", "fast", "--json", "-q").json for own in ("t.csv", name)]
    assert (said[1]["model"], said[1]["report"]) == ("sales.2023.guardband", "sales.2023.html")
    assert [row["point"] for row in said[0]["sample"]] == [row["point"] for row in said[1]["sample"]]


def test_a_target_on_another_sheet_is_asked_for_by_its_sheet(command, here):
    write_xlsx("t.xlsx", {"Read me": [["notes"], ["an export"]], "Sales": [["price"], [1.0]]})
    said = command("fit", "t.xlsx", "-t", "price").complaint
    assert said.endswith("no column 'price' for --target. Its columns are 'notes'. Name another sheet with --sheet.")


def test_lines_above_the_names_of_the_columns_are_to_be_removed(command, here):
    (here / "t.csv").write_text("Sales of May\n\nsize,price\n1,2\n3,4\n")
    assert "must be in the first line: remove any lines above them" in command("fit", "t.csv", "-t", "price").complaint
    (here / "t.csv").write_text("Sales\n1\n3\n")
    assert "first line" not in command("fit", "t.csv", "-t", "sales").complaint


def test_several_files_are_fitted_as_one_table(command, here):
    table = small_table(200)
    csv.write_csv(table, "all.csv")
    csv.write_csv(table[:90], "p-1.csv")
    csv.write_csv(table[90:].select(table.column_names[::-1]), "p-2.csv")
    fit = ["fit", "-t", "price", "--preset", "fast", "--json", "-q"]
    whole, parts = command(*fit, "all.csv").json, command(*fit, "p-1.csv", "p-2.csv").json
    assert (parts["model"], parts["rows"], parts["sample"]) == ("p-1.guardband", whole["rows"], whole["sample"])
    assert read_report("p-1.guardband")["origin"]["source"] == "2 files, p-1.csv to p-2.csv"
    said = command("audit", "p-1.guardband", "p-*.csv", "--json", "--force")
    assert said.json["levels"][0]["n"] == 200
    assert "p-1.csv is named twice" in command(*fit, "p-1.csv", "p-*.csv").complaint


def test_columns_of_little_use_are_mentioned(command, here):
    n = 300
    text = "id,same,note,x,y\n" + "".join(f"{i},7,note {i},{i % 13},{i % 7}\n" for i in range(n))
    (here / "t.csv").write_text(text)
    said = command("fit", "t.csv", "-t", "y", "--preset", "fast", "--check", "0", "--independent-rows")
    assert (
        "'id' (only counts the rows); 'same' (always the same value); 'note' (a different text in each row)" in said.err
    )
    assert "Leave them out with --drop id,same,note." in said.err


@pytest.mark.filterwarnings("ignore:.*The intervals are infinite.*")
def test_an_awkward_table_goes_all_the_way_without_a_flag(command, here):
    names, rows = awkward_table()
    assert len(names) == 60
    (here / "awkward table.csv").write_text(rows, encoding="utf-8")
    said = command("fit", "awkward table.csv", "--target", "größe (m²)", "--preset", "fast")
    assert said.code == 0, said.err
    model = "awkward table.guardband"
    assert (here / "awkward table.html").exists()
    said = command("predict", model, "awkward table.csv", "-o", "out.csv")
    assert said.code == 0, said.err
    assert ",guardband_point,guardband_lower,guardband_upper\n" in (here / "out.csv").read_text(encoding="utf-8")
    said = command("audit", model, "awkward table.csv", "--force", "--all")
    assert said.code == 2, said.err
    assert "By the size of the prediction" in said.out
    said = command("report", model, "-o", "again.html")
    assert said.code == 0, said.err
    assert (here / "again.html").read_bytes() == (here / "awkward table.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "evidence", "code", "verdict"),
    [
        ([], {"used_before": 50, "used_by_chance": 9}, 2, "cannot judge"),
        ([], {"doubts": ("Rows of one town have similar errors. Add --split-by town.",)}, 2, "cannot judge"),
        (["--method", "qreg-un"], {}, 0, "cannot judge"),
        (["--check", "0"], {}, 0, None),
        ([], {"y": np.full(50, 1e6)}, 1, "broken"),
    ],
    ids=["used", "doubt", "nothing promised", "unchecked", "broken"],
)
def test_the_exit_code_is_that_of_the_check_and_everything_is_written(
    command, table_path, here, monkeypatch, arguments, evidence, code, verdict
):
    from guardband.cli.labelled import Labelled

    real = Labelled.evidence
    monkeypatch.setattr(Labelled, "evidence", lambda rows, model: replace(real(rows, model), **evidence))
    said = command("fit", "sales.csv", "-t", "price", "--preset", "fast", "--json", "-q", *arguments)
    assert said.code == code, said.err
    assert said.json["verdict"] == verdict
    assert (said.json["sentence"] in said.err) == (code == 2)
    assert gb.load(here / "sales.guardband").feature_names_in_.tolist() == ["size", "town", "day", "sold"]
    assert f'class="verdict {(verdict or "unchecked").replace(" ", "-")}"' in (here / "sales.html").read_text()


@pytest.mark.filterwarnings("ignore:.*The intervals are infinite.*")
def test_infinite_intervals_are_exit_code_2_after_the_model_is_written(command, table_path, here):
    said = command("fit", "sales.csv", "-t", "price", "--preset", "fast", "--level", "0.995", "--json", "-q")
    assert said.code == 2
    words = "No usable intervals: 113 calibration rows, and this level needs 199. Calibrate on more rows."
    assert said.json["sentence"] == words
    assert said.err.splitlines()[-1] == f"guardband: {words}"
    assert (here / "sales.guardband").exists()


@pytest.mark.parametrize("by_time", [False, True])
def test_after_a_random_split_a_broken_promise_may_be_chance(by_time, tmp_path):
    model = SimpleNamespace(split_by_time=by_time)
    result = Result(model, None, None, {}, {"status": "broken"}, [], None)
    said = result._next(tmp_path / "m.guardband", tmp_path / "m.html")
    assert said.startswith(f"open {tmp_path / 'm.html'} to see which rows")
    assert ("chance alone breaks up to 1 of 100 such checks" in said) is not by_time
