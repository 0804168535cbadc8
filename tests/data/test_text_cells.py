"""One text and a file's cells are read by the same rule."""

import math

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from guardband.data.kinds import ALL_TEXT, ONE_TEXT
from guardband.data.table import read_table
from guardband.data.text_cells import MISSING, CellError, cells_of

CLOCK = r"[ Tt]?[0-2][0-9](:?[0-6][0-9](:[0-6][0-9](.[0-9]{1,9})?)?)?(Z|[+-]0[0-9](:?[0-5][0-9])?)?"
DATES = st.from_regex(rf"(19|20)[0-9]{{2}}-[01][0-9]-[0-3][0-9]({CLOCK})?", fullmatch=True)
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
@example(text="2024-01-01x10:00")
def test_one_text_reads_as_a_files_cells_do(kind, text):
    assume(text.strip() not in MISSING)
    alone, in_a_file = read_alone(text, kind), read_in_a_file(text, kind)
    assert (alone is None) == (in_a_file is None)
    assert alone is None or alone == in_a_file or (math.isnan(alone) and math.isnan(in_a_file))


def test_truth_may_be_words_and_numbers_in_one_column():
    cells = ALL_TEXT["boolean"](pa.array(["yes", "0", None, "1", "FALSE"]), False)
    assert cells.to_pylist() == [1, 0, None, 1, 0]
