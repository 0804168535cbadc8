import csv
import gzip
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import write_csv

import guardband as gb
from excel_files import write_xlsx
from guardband.data import csv_file


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_keeps_its_cells_and_gets_the_models_intervals(command, small_model, tmp_path):
    said = command("predict", small_model.model_path, small_model.path, "-o", tmp_path / "out.csv")
    assert said.code == 0
    assert said.out == ""
    assert "The model does not use 1 column of the table: 'price'." in said.err
    before = rows_of(small_model.path.read_text())
    after = rows_of((tmp_path / "out.csv").read_text())
    assert [{name: row[name] for name in before[0]} for row in after] == before
    bands = small_model.model.predict_interval(small_model.table.drop_columns("price"))
    for name in ("point", "lower", "upper"):
        np.testing.assert_array_equal([float(row[name]) for row in after], getattr(bands, name))


def test_every_format_holds_the_same(command, small_model, tmp_path):
    table = small_model.table
    parquet.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(small_model.path.read_bytes()))
    results = []
    for i, (source, ending) in enumerate(
        [("in.parquet", "parquet"), ("in.csv.gz", "parquet"), ("in.parquet", "arrow"), ("in.parquet", "csv.gz")]
    ):
        out = tmp_path / f"out{i}.{ending}"
        said = command("predict", small_model.model_path, tmp_path / source, "-o", out, "--json")
        assert said.json["rows"] == len(table)
        assert said.json["added"] == ["point", "lower", "upper"]
        if ending == "csv.gz":
            results.append([float(row["upper"]) for row in rows_of(gzip.decompress(out.read_bytes()).decode())])
        else:
            read = parquet.read_table(out) if ending == "parquet" else pa.ipc.open_file(str(out)).read_all()
            if source == "in.parquet":
                assert read.select(table.column_names).equals(table)
            results.append(read["upper"].to_pylist())
    assert results[0] == results[1] == results[2] == results[3]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_of_a_csv_stay_text_where_columns_have_types(command, small_model, tmp_path, monkeypatch, ending):
    monkeypatch.setattr(csv_file, "BLOCK", 60)  # so that batches differ in what their cells look like
    sizes = ["00012", "1152921504606846977", "1.50", "", "7"]
    rows = "".join(f"{size},Wien,2024-01-01,1,00{i}\n" for i, size in enumerate(sizes))
    (tmp_path / "t.csv").write_text(f"size,town,day,sold,id\n{rows}")
    out = tmp_path / f"out.{ending}"
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-o", out)
    assert said.code == 0, said.err
    read = parquet.read_table(out) if ending == "parquet" else pa.ipc.open_file(str(out)).read_all()
    assert read["size"].to_pylist() == sizes
    assert read["id"].to_pylist() == ["000", "001", "002", "003", "004"]
    assert [str(kind) for kind in read.schema.types] == ["string"] * 5 + ["double"] * 3


def test_batches_do_not_show(command, small_model, tmp_path, monkeypatch):
    command("predict", small_model.model_path, small_model.path, "-o", tmp_path / "whole.csv")
    monkeypatch.setattr(csv_file, "BLOCK", 1000)
    command("predict", small_model.model_path, small_model.path, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_standard_input_to_standard_output(small_model):
    program = [sys.executable, "-m", "guardband", "predict", str(small_model.model_path), "-"]
    piped = subprocess.run(program, input=small_model.path.read_bytes(), capture_output=True, check=True)
    rows = rows_of(piped.stdout.decode())
    assert len(rows) == len(small_model.table)
    assert list(rows[0])[-3:] == ["point", "lower", "upper"]
    assert b"The model does not use 1 column" in piped.stderr


def test_levels_have_columns_of_their_own(command, small_model):
    said = command("predict", small_model.model_path, small_model.path, "--level", "0.5,0.8", "-q")
    assert list(rows_of(said.out)[0])[-5:] == ["point", "lower_0.5", "upper_0.5", "lower_0.8", "upper_0.8"]
    assert said.err == ""


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_an_output_may_have_a_name_that_is_no_text(command, small_model, tmp_path, ending):
    out = tmp_path / os.fsdecode(b"o\xff." + ending.encode())
    said = command("predict", small_model.model_path, small_model.path, "-o", out, "-q")
    assert said.code == 0, said.err
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.stat().st_size > 0


def test_names_that_are_taken_get_a_prefix(command, small_model, tmp_path):
    (tmp_path / "t.csv").write_text(small_model.path.read_text().replace('"price"', '"lower"', 1))
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "out.csv", "-q")
    assert said.code == 0
    row = rows_of((tmp_path / "out.csv").read_text())[0]
    assert list(row)[-4:] == ["lower", "guardband_point", "guardband_lower", "guardband_upper"]
    again = command("predict", small_model.model_path, tmp_path / "out.csv", "-o", tmp_path / "twice.csv", "-q")
    assert "already has a column 'guardband_point'" in again.complaint


def test_columns_may_come_in_another_order(command, small_model, tmp_path):
    parquet.write_table(small_model.table.select(["town", "sold", "size", "day"]), tmp_path / "t.parquet")
    command("predict", small_model.model_path, tmp_path / "t.parquet", "-o", tmp_path / "out.parquet")
    bands = small_model.model.predict_interval(small_model.table.drop_columns("price"))
    assert parquet.read_table(tmp_path / "out.parquet")["lower"].to_pylist() == bands.lower.tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('"town"', '"city"', 1), "lacks 1 of the model's 4 columns: 'town'."),
        (
            lambda text: text.replace('"town"', '"Towns"', 1),
            ": 'town'. Is it 'Towns'? Then rename that column. Otherwise add it, or fit a model without it.",
        ),
        (
            lambda text: text.replace('"town"', '"Towns"', 1).replace('"size"', '"wide"', 1),
            ": 'size', 'town'. Is one of them 'Towns'? Then rename that column. Otherwise add them, or fit a model",
        ),
        (
            lambda text: text + '"big","Wien",2024-01-01,"yes",3\n',
            "column 'size' held numbers when the model was fitted, found 'big' in row 501 of",
        ),
        (lambda text: text + '1,"Wien",soon,"yes",3\n', "column 'day' held dates"),
        (lambda text: text + '1,"Wien"\n', "line 502 has 2 cells"),
        (lambda text: text.splitlines()[0] + "\n", "has column names, but no rows"),
        (lambda text: text + 'inf,"Wien",2024-01-01,"yes",3\n', "X contains infinity"),
    ],
    ids=["missing", "similar", "several", "text", "date", "ragged", "no rows", "infinite"],
)
def test_bad_tables_are_one_line_and_leave_nothing(command, small_model, tmp_path, monkeypatch, change, words):
    monkeypatch.setattr(csv_file, "BLOCK", 4000)  # so that good batches come before the bad one
    (tmp_path / "t.csv").write_text(change(small_model.path.read_text()))
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "out.csv", "-q")
    assert words in said.complaint
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_bad_places_and_wishes_are_one_line(command, small_model, tmp_path):
    model, table = small_model.model_path, small_model.path
    assert "must end in one of .csv" in command("predict", model, table, "-o", tmp_path / "out.xlsx").complaint
    assert "folder that exists" in command("predict", model, table, "-o", tmp_path / "no" / "out.csv").complaint
    assert "is an input of this command" in command("predict", model, table, "-o", table).complaint
    assert "cannot both go" in command("predict", model, table, "--json").complaint
    assert "no model file" in command("predict", tmp_path / "no.guardband", table, "-o", tmp_path / "o.csv").complaint
    assert "no table at" in command("predict", model, tmp_path / "no.csv", "-o", tmp_path / "o.csv").complaint
    level = command("predict", model, table, "--level", "90", "-o", tmp_path / "o.csv", "-q").complaint
    assert "Write 0.9 for 90%" in level
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_names_takes_columns_in_order(command, tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 2))
    model = gb.IntervalRegressor(preset="fast", max_epochs=1, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "m.guardband")
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "t.parquet")
    said = command("predict", tmp_path / "m.guardband", tmp_path / "t.parquet", "-o", tmp_path / "out.parquet")
    assert said.code == 0, said.err
    assert parquet.read_table(tmp_path / "out.parquet")["point"].to_pylist() == model.predict(X).tolist()


def test_cells_with_separators_and_quotes_come_back(command, small_model, tmp_path):
    text = 'size,town,day,sold,"a,b"\n1,"W ""x"", y",2024-01-01,yes,"two\nlines"\n,Graz,2024-01-02,no,\n'
    (tmp_path / "t.csv").write_text(text)
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-q")
    first, second = rows_of(said.out)
    assert (first["town"], first["a,b"], second["a,b"]) == ('W "x", y', "two\nlines", "")


def test_columns_of_parquet_that_csv_cannot_hold_are_named(command, small_model, tmp_path):
    table = small_model.table.append_column("many", pa.array([[1]] * len(small_model.table)))
    parquet.write_table(table, tmp_path / "t.parquet")
    said = command("predict", small_model.model_path, tmp_path / "t.parquet", "-q")
    assert "The column 'many' holds list<" in said.complaint
    assert "which CSV cannot store. Write Parquet or Arrow, or remove the column." in said.complaint
    assert command("predict", small_model.model_path, tmp_path / "t.parquet", "-o", tmp_path / "o.arrow").code == 0


def test_bytes_of_parquet_are_text_in_csv(command, small_model, tmp_path):
    views = [pa.binary_view()] if int(pa.__version__.split(".")[0]) >= 21 else []  # older ones cannot write them
    for kind in (pa.binary(), pa.large_binary(), *views):
        table = small_model.table[:2].append_column("name", pa.array([b"K\xf6ln", "Köln".encode()], kind))
        parquet.write_table(table, tmp_path / "t.parquet")
        said = command("predict", small_model.model_path, tmp_path / "t.parquet", "-q")
        assert [row["name"] for row in rows_of(said.out)] == ["Köln", "Köln"]


def unlike_table(small_model):
    """Return rows of which the third and the last are unlike all training rows, and no row has a day."""
    rows = small_model.table.drop_columns("price")[:40].to_pylist()
    rows[2]["town"], rows[39]["size"] = "Bern", 1e9
    return pa.Table.from_pylist([row | {"day": ""} for row in rows])


def test_rows_unlike_training_are_said_in_one_line_over_all_batches(command, small_model, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK", 200)
    write_csv(unlike_table(small_model), tmp_path / "t.csv")
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "-q", "--json")
    (line,) = said.err.splitlines()
    assert line.startswith("Warning: 40 of 40 rows are unlike all training rows. ")
    assert f"'town': 1 row with a category that training did not have, such as 'Bern' in row 3 of {tmp_path}" in line
    assert f"such as 1,000,000,000 in row 40 of {tmp_path}" in line
    assert "'day' is missing in every row, and never was in training." in line
    assert line.endswith("Check these rows: the promise is about rows like the training rows.")
    found = said.json["unlike"]
    assert (found["rows"], found["of"]) == (40, 40)
    assert {own["column"]: (own["reason"], own["rows"], own["examples"][0]) for own in found["columns"]} == {
        "town": ("category", 1, {"value": "Bern", "row": 3}),
        "size": ("number", 1, {"value": "1,000,000,000", "row": 40}),
        "day": ("missing", 40, {"value": "missing", "row": 1}),
    }
    assert "unlike" not in rows_of((tmp_path / "o.csv").read_text())[0]


def test_a_column_says_what_is_unlike_on_request(command, small_model, tmp_path):
    table = unlike_table(small_model)
    write_csv(table, tmp_path / "t.csv")
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "--unlike")
    marks = [row["unlike"] for row in rows_of(said.out)]
    assert (marks[0], marks[2], marks[39]) == ("day", "town, day", "size, day")
    said = command("predict", small_model.model_path, small_model.path, "--unlike", "-q")
    assert {row["unlike"] for row in rows_of(said.out)} == {""}
    assert said.err == ""


def test_several_files_sheets_and_zip_files_are_one_table(command, small_model, tmp_path):
    whole = command("predict", small_model.model_path, small_model.path, "-q").out
    table, lines = small_model.table, small_model.path.read_text().splitlines(keepends=True)
    (tmp_path / "p-1.csv").write_text("".join(lines[:200]))
    (tmp_path / "p-2.csv").write_text("".join(lines[:1] + lines[200:]))
    assert command("predict", small_model.model_path, tmp_path / "p-*.csv", "-q").out == whole
    two = command("predict", small_model.model_path, tmp_path / "p-1.csv", tmp_path / "p-2.csv", "-q", "-o", "-")
    assert two.out == whole
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as file:
        file.write(small_model.path, "t.csv")
    assert command("predict", small_model.model_path, tmp_path / "t.zip", "-q").out == whole
    cells = [table.column_names, *(list(row.values()) for row in table.to_pylist())]
    write_xlsx(tmp_path / "t.xlsx", {"About": [["x"], [1]], "Rows": cells})
    said = command("predict", small_model.model_path, tmp_path / "t.xlsx", "--sheet", "Rows", "-q")
    assert [row["upper"] for row in rows_of(said.out)] == [row["upper"] for row in rows_of(whole)]
    again = command("predict", small_model.model_path, tmp_path / "p-1.csv", "-o", tmp_path / "p-1.csv")
    assert "is an input of this command" in again.complaint


def test_nothing_is_written_if_one_of_several_files_is_bad(command, small_model, tmp_path):
    lines = small_model.path.read_text().splitlines(keepends=True)
    (tmp_path / "p-1.csv").write_text("".join(lines))
    (tmp_path / "p-2.csv").write_text(lines[0] + "one,Wien,2024-01-01,yes,5\n")
    said = command("predict", small_model.model_path, tmp_path / "p-*.csv", "-o", tmp_path / "out.csv", "-q")
    assert (
        f"'size' held numbers when the model was fitted, found 'one' in row 1 of {tmp_path}/p-2.csv" in said.complaint
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p-1.csv", "p-2.csv"]


@pytest.mark.parametrize(("sign", "separator"), [(",", ";"), (",", "\t"), (".", ";")])
def test_new_columns_have_the_decimal_sign_of_the_others(command, small_model, tmp_path, sign, separator):
    names = ("id", "size", "town", "day", "sold")
    lines = [(str(i), f"{10 + i}{sign}5", "Wien", "2024-01-01", "1") for i in range(9)]
    (tmp_path / "t.csv").write_text("".join(separator.join(line) + "\n" for line in (names, *lines)))
    assert command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "out.csv").code == 0
    after = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines(), delimiter=separator))
    assert [tuple(row[name] for name in names) for row in after] == lines
    command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "out.parquet")
    exact = parquet.read_table(tmp_path / "out.parquet")
    for name in ("point", "lower", "upper"):
        assert all(sign in row[name] for row in after)
        assert [float(row[name].replace(",", ".")) for row in after] == exact[name].to_pylist()


def test_latin_text_is_said_to_become_utf_8(command, small_model, tmp_path):
    (tmp_path / "t.csv").write_bytes("size,town,day,sold\n10,Köln,2024-01-01,1\n".encode("latin-1"))
    said = command("predict", small_model.model_path, tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert "guardband reads it as Latin-1 and writes UTF-8." in said.err
    assert "Köln" in (tmp_path / "out.csv").read_text("utf-8")


def test_formulas_are_kept_or_made_harmless(command, small_model, tmp_path):
    lines = small_model.path.read_text().splitlines()[:4]
    rows = [f"{line},{note}" for line, note in zip(lines, ("=note", "=1+1", "-3.5", "ok"), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    arguments = ["predict", small_model.model_path, tmp_path / "t.csv"]
    kept = [line.split(",")[5] for line in command(*arguments).out.splitlines()]
    assert kept == ["=note", "=1+1", "-3.5", "ok"]
    asked = [line.split(",")[5:] for line in command(*arguments, "--no-formulas").out.splitlines()]
    assert [row[0] for row in asked] == ["'=note", "'=1+1", "-3.5", "ok"]
    assert all(float(cell) for row in asked[1:] for cell in row[1:])
    refused = command(*arguments, "--no-formulas", "-o", tmp_path / "out.parquet").complaint
    assert "--no-formulas works for CSV only" in refused
