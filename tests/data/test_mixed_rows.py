"""Rows mixed from a table, and tables put below each other, whatever kind they are."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from guardband.data.mixed_rows import mix_rows, stack_rows

SOURCES = np.array([[0, 1, 2], [2, 2, 0]])
TABLE = pd.DataFrame(
    {
        "number": [1, 2, 3],
        "category": pd.Categorical(["x", None, "z"]),
        "day": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
    },
    index=[7, 7, 9],
)
MIXED = [[1, None, None], [3, "z", datetime.datetime(2024, 1, 1)]]
KINDS = [lambda table: table, pl.from_pandas, lambda table: pa.Table.from_pandas(table, preserve_index=False)]


def cells(table):
    return pl.DataFrame(table).with_columns(pl.col("category").cast(pl.String)).rows()


@pytest.mark.parametrize("convert", KINDS)
def test_mixed_rows_keep_the_kind_of_table_and_of_each_column(convert):
    given = convert(TABLE)
    mixed = mix_rows(given, SOURCES)
    assert type(mixed) is type(given)
    assert [list(row) for row in cells(mixed)] == MIXED
    if isinstance(mixed, pd.DataFrame):
        pd.testing.assert_series_equal(mixed.dtypes, given.dtypes)


def test_columns_without_text_as_names_are_mixed_too():
    mixed = mix_rows(pd.DataFrame([[1, 2], [3, 4]]), np.array([[0, 1]]))
    assert mixed.to_numpy().tolist() == [[1, 4]]
    assert list(mixed.columns) == [0, 1]


@pytest.mark.parametrize("convert", KINDS)
def test_tables_are_put_below_each_other_by_name(convert):
    other = TABLE[["day", "category", "number"]].assign(more=0)
    found = stack_rows(convert(TABLE), convert(other))
    assert len(found) == 6
    assert cells(found)[:3] == cells(found)[3:] == cells(convert(TABLE))


@pytest.mark.parametrize("convert", [lambda t: t, pl.from_pandas])
def test_whole_numbers_and_others_are_put_together_as_numbers(convert):
    found = stack_rows(convert(TABLE[["number"]]), convert(pd.DataFrame({"number": [0.5]})))
    assert list(found["number"]) == [1, 2, 3, 0.5]


def test_arrays_are_put_below_each_other():
    assert stack_rows(np.eye(2), [[2.0, 3.0]]).tolist() == [[1, 0], [0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("background", "error", "words"),
    [
        (np.eye(3), TypeError, "must be tables of one kind, found DataFrame and ndarray"),
        (pl.from_pandas(TABLE), TypeError, "must be tables of one kind"),
        (TABLE.drop(columns="day"), ValueError, "background lacks the column 'day' of X. Add it"),
        (TABLE.assign(category=pd.Categorical(["x", "y", "x"])), ValueError, "'category' is of another type"),
        (TABLE.assign(number="1"), ValueError, "'number' is of another type in background than in X. Convert it"),
    ],
)
def test_tables_that_do_not_fit_are_refused(background, error, words):
    with pytest.raises(error, match=words):
        stack_rows(TABLE, background)
