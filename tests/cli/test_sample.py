"""The rows that fit shows: numbers that can be read, and columns that tell something."""

import numpy as np
import pyarrow as pa
import pytest

from guardband.cli.columns import worth_showing
from guardband.cli.labelled import Labelled
from guardband.cli.sample import SampleRow, sample_table


def labelled(**columns):
    table = pa.table(columns)
    features = tuple(name for name in table.column_names if name != "y")
    return Labelled(table, np.arange(len(table)), features, "y")


def cells_of(table):
    names = [str(column.header) for column in table.columns]
    return names, list(zip(*([*column.cells] for column in table.columns), strict=True))


def test_columns_that_tell_nothing_are_not_shown():
    n = 100
    rows = labelled(
        id=list(range(n)), same=[7] * n, year=[1950 + i % 60 for i in range(n)], town=["a", "b"] * (n // 2), y=[1.0] * n
    )
    assert worth_showing(rows, 3) == ["year", "town"]
    assert worth_showing(labelled(id=list(range(n)), y=[1.0] * n), 3) == ["id"]


ROW = SampleRow({"year": 1955.0, "town": "Wien"}, 414376.4, {0.9: (340714.2, 1497028.0)}, 604000.0)


def test_years_have_no_commas_and_numbers_have_few_digits():
    names, rows = cells_of(sample_table([ROW], 80))
    assert names == ["year", "town", "prediction", "lower", "upper", "true value"]
    assert rows == [("1955", "Wien", "414,376", "340,714", "1,497,028", "604,000")]


def test_whole_numbers_stay_whole():
    row = SampleRow({}, 1012.0, {0.9: (1010.0, float("inf")), 0.5: (1011.0, 1013.0)}, 1013.0)
    _, rows = cells_of(sample_table([row], 80))
    assert rows == [("1,012", "1,010", "∞", "1,011", "1,013", "1,013")]


def test_levels_are_named_if_there_are_several():
    row = SampleRow({}, 0.5, {0.8: (0.4, 0.6), 0.9: (0.35, float("inf"))}, 0.45)
    names, rows = cells_of(sample_table([row], 80))
    assert names == ["prediction", "lower 80%", "upper 80%", "lower 90%", "upper 90%", "true value"]
    assert rows == [("0.500", "0.400", "0.600", "0.350", "∞", "0.450")]


@pytest.mark.parametrize(("width", "shown"), [(80, 2), (55, 1), (40, 0)])
def test_inputs_are_left_out_where_there_is_no_room(width, shown):
    names, _ = cells_of(sample_table([ROW], width))
    assert len(names) == 4 + shown
