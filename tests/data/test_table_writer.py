"""Formulas in CSV: kept as they are, or made harmless if asked."""

import csv
import io

import pyarrow as pa
import pytest

from guardband.data.table_writer import CsvWriter

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1+1",
    "\uff20x",
    ' "=1"',
    "-cmd|' /C calc'!A0",
    "--5",
    "+43 660 1234",
]
INSIDE = {"x;=1+1": "x;'=1+1", "x\t@y": "x\t'@y", 'x","=1': 'x","\'=1', "a\n=1": "a\n'=1"}
HARMLESS = ["", "a=b", "a-b", "2024-01-31", "-3.5", "+7", "-1e-5", "-1.234,5", "-.5", "-inf", "-50%", "'=1", "Graz"]


def written(columns, **more):
    file = io.BytesIO()
    CsvWriter(file, ",", **more).write(pa.table(columns))
    return list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))


def test_formulas_get_an_apostrophe_if_asked():
    cells = FORMULAS + HARMLESS + list(INSIDE)
    wanted = ["'" + cell.replace("\t=", "\t'=").replace("\r=", "\r'=").replace("\n=", "\n'=") for cell in FORMULAS]
    wanted += HARMLESS + list(INSIDE.values())
    made = written({"x": cells, "y": [-1.5] * len(cells)}, no_formulas=True)
    assert [row[0] for row in made[1:]] == wanted
    assert {row[1] for row in made[1:]} == {"-1.5"}
    assert [row[0] for row in written({"x": cells, "y": cells})[1:]] == cells  # as they are, unless asked


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_text_is_text(kind):
    column = pa.chunked_array([pa.array(["=1", None, "-2"]).cast(kind)])
    assert [row[0] for row in written({"x": column, "y": ["a"] * 3}, no_formulas=True)[1:]] == ["'=1", "", "-2"]


def test_numbers_dates_and_infinity_stay_numbers():
    columns = {"a": [-1, 2], "b": [-float("inf"), 1.0], "c": pa.array([-1, 1], pa.int32()).cast(pa.date32())}
    assert written(columns, no_formulas=True) == written(columns)


def test_a_decimal_comma_is_for_numbers_alone():
    columns = {"a": [-1.5, 2.5e-30], "b": ["1.5", "a.b"], "c": [3, 4]}
    assert written(columns, decimal_comma=True)[1:] == [["-1,5", "1.5", "3"], ["2,5e-30", "a.b", "4"]]


def test_names_of_columns_count_as_text():
    assert written({"=1": ["a"], "-5": ["b"], "x;@y": ["c"]}, no_formulas=True)[0] == ["'=1", "-5", "x;'@y"]
