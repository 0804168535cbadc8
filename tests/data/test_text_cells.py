"""One text and a file's cells are read by the same rule."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from guardband.data.kinds import ALL_TEXT, ONE_TEXT, kind_of_cells, kind_of_text
from guardband.data.table import read_table
from guardband.data.text_cells import MISSING, CellError, cells_of

CLOCK = r"[ Tt]?[0-2][0-9](:?[0-6][0-9](:[0-6][0-9](.[0-9]{1,9})?)?)?(Z|[+-]0[0-9](:?[0-5][0-9])?)?"
DAYS = (
    r"((19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]|20[0-9]{2}/[01]?[0-9]/[0-3]?[0-9]|[0-3]?[0-9]\.[01]?[0-9]\.(19|20)[0-9]{2})"
)
DATES = st.from_regex(rf"{DAYS}({CLOCK})?", fullmatch=True)
WORDS = st.sampled_from(["true", "False", "YES", "no", "inf", "-Infinity", "NAN", "+nan", "0x1", "maybe"])
TEXTS = st.text("0123456789.+-eE_ ", max_size=8) | DATES | WORDS


def read_alone(text, kind):
    try:
        return ONE_TEXT[kind](text.strip())
    except ValueError:
        return None


def read_in_a_file(text, kind):
    try:
        (value,) = made = ALL_TEXT[kind](cells_of(pa.array([text])), False)
    except CellError:
        return None
    if kind == "date":
        return read_table(pa.table({"c": made})).columns[0].values[0]
    return float(value.as_py())


@pytest.mark.parametrize("kind", ["number", "boolean", "date"])
@given(text=TEXTS)
@example(text="1_000")
@example(text="20240101T000000")
@example(text="2024-W01-1")
@example(text="3.4.2021")
@example(text="3.4.2021T10:00Z")
@example(text="2024-01-01x10:00")
@example(text="2024/1/2T10:00Z")
@example(text="2024/1/2Z")
@example(text="2024/12/311")
def test_one_text_reads_as_a_files_cells_do(kind, text):
    assume(text.strip() not in MISSING)
    alone, in_a_file = read_alone(text, kind), read_in_a_file(text, kind)
    assert (alone is None) == (in_a_file is None)
    assert alone is None or alone == in_a_file or (math.isnan(alone) and math.isnan(in_a_file))


@pytest.mark.parametrize(
    "text",
    [
        "31.3.0000",
        "0000-12-31 23:59:59.999999",
        "0001-01-01 00:00+05:00",
        "9999-12-31 23:00-05:00",
        "7348-01-01 00:00:00.123456789",
        "0224-01-01 00:00:00.123456789",
    ],
)
def test_dates_that_python_or_arrow_does_not_know_are_none(text):
    assert read_alone(text, "date") is None
    assert read_in_a_file(text, "date") is None
    assert kind_of_text(pa.array(["2024-12-31", text]), False) == "category"
    assert kind_of_cells(np.array(["2024-12-31", text], dtype=object), "number") == "category"


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0001-01-01", -719_162),
        ("9999-12-31 23:59:59", 2_932_896 + 86_399 / 86_400),
        ("9999-12-31 19:00:00-04:00", 2_932_896 + 23 / 24),
        ("2262-04-11 00:00:00.123456789", 106_751 + 0.123456 / 86_400),
    ],
)
def test_the_first_and_last_dates_are_known(text, days):
    assert math.isclose(read_alone(text, "date"), days, rel_tol=1e-13)
    assert math.isclose(read_in_a_file(text, "date"), days, rel_tol=1e-13)


def test_with_dots_the_day_comes_first():
    cells = ["03.04.2021", "3.4.2021", "2021-04-03", None, "03.04.2021 06:00"]
    read = ALL_TEXT["date"](pa.array(cells), False)
    assert [moment and moment.isoformat(" ") for moment in read.to_pylist()] == [
        *["2021-04-03 00:00:00"] * 3,
        None,
        "2021-04-03 06:00:00",
    ]
    assert kind_of_text(pa.array(["03.04.2021", "31.12.2021"]), False) == "date"
    assert kind_of_cells(np.array(["03.04.2021", None, "31.12.2021"], dtype=object), "number") == "date"


def test_with_slashes_the_year_comes_first():
    cells = ["2021/04/03", "2021/4/3", "2021-04-03", None, "2021/4/03 06:00", "2021/04/3T06:00"]
    read = ALL_TEXT["date"](pa.array(cells), False)
    assert [moment and moment.isoformat(" ") for moment in read.to_pylist()] == [
        *["2021-04-03 00:00:00"] * 3,
        None,
        *["2021-04-03 06:00:00"] * 2,
    ]
    assert kind_of_text(pa.array(["2012/01/01", "2012/12/31"]), False) == "date"
    assert kind_of_cells(np.array(["2012/01/01", None, "2012/12/31"], dtype=object), "number") == "date"


@pytest.mark.parametrize(
    "odd",
    [
        "2021/13/01",
        "2021/4/31",
        "2021-4-3",
        "21/04/03",
        "12.31.2021",
        "03.04.21",
        "03/04/2021",
        "3.04",
        "0.1.2021",
        "about 03.04.2021",
    ],
)
def test_one_cell_that_is_no_such_date_makes_a_category(odd):
    cells = pa.array(["03.04.2021", odd])
    assert kind_of_text(cells, False) == "category"
    assert kind_of_cells(np.array(cells.to_pylist(), dtype=object), "number") == "category"
    with pytest.raises(CellError) as error:
        ALL_TEXT["date"](cells, False)
    assert (error.value.index, error.value.text) == (1, odd)


def test_truth_may_be_words_and_numbers_in_one_column():
    cells = ALL_TEXT["boolean"](pa.array(["yes", "0", None, "1", "FALSE"]), False)
    assert cells.to_pylist() == [1, 0, None, 1, 0]
