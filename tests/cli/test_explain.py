import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb
from cli_tables import small_table


@pytest.fixture
def new(tmp_path):
    csv.write_csv(small_table(40, seed=3).drop_columns("price"), tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_the_widest_rows_are_explained_as_in_python(command, small_model, new):
    said = command("explain", small_model.model_path, new)
    assert said.code == 0, said.err
    X = small_table(40, seed=3).drop_columns("price")
    bands = small_model.model.predict_interval(X)
    widest = np.argsort(-bands.width)[:3]
    found = small_model.model.explain(X, rows=widest)
    headings = [line.split(":")[0] for line in said.out.splitlines() if line.startswith("Row ")]
    assert headings == [f"Row {row + 1}" for row in widest]
    for i in range(3):
        assert found.in_words(i, of="width") in said.out
        assert found.in_words(i, of="point") in said.out
    assert "Compared with 40 rows." in said.err


def test_rows_are_counted_from_one_and_compared_with_other_rows(command, small_model, new):
    asked = ("explain", small_model.model_path, new, "--rows", "2,7", "--level", "0.5", "--json")
    found = command(*asked, "--background", small_model.path).json
    assert found["rows"] == [2, 7]
    assert found["confidence_level"] == 0.5
    assert found["n_background"] == 100
    assert len(found["words"]) == 2
    X = small_table(40, seed=3).drop_columns("price")
    expected = small_model.model.predict_interval(X, confidence_level=0.5).width[[1, 6]]
    np.testing.assert_allclose(found["widths"], expected)


def test_a_model_without_names_takes_columns_in_order(command, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    gb.IntervalRegressor(hidden=(4,), epochs=1, random_state=0).fit(X, X[:, 0]).save(tmp_path / "m.guardband")
    csv.write_csv(pa.table({"a": X[:20, 0], "b": X[:20, 1]}), tmp_path / "new.csv")
    assert command("explain", tmp_path / "m.guardband", tmp_path / "new.csv", "--rows", 1).code == 0


@pytest.mark.parametrize("rows", ["0", "41", "2.5", "x", "-1", ","])
def test_rows_that_are_not_there_are_refused(command, small_model, new, rows):
    said = command("explain", small_model.model_path, new, f"--rows={rows}").complaint
    assert "--rows takes row numbers from 1 to 40" in said


def test_what_cannot_be_explained_is_told_in_one_sentence(command, small_model, new, tmp_path):
    said = command("explain", small_model.model_path, new, "--level", "0.8,0.9").complaint
    assert "one confidence level" in said
    assert "The model comes first" in command("explain", new, small_model.model_path).complaint
    point = np.arange(50.0)
    gb.BandCalibrator().fit(point - 1, point, point + 1, point + 0.5).save(tmp_path / "rule.guardband")
    assert "is a rule, and does not know" in command("explain", tmp_path / "rule.guardband", new).complaint
