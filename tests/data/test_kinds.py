"""What a column is: by its type, by its text, by its cells."""

import datetime
import decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from guardband.data.encoder import TableEncoder
from guardband.data.kinds import kind_of_text, kind_of_type
from guardband.data.table import read_table

CELLS = {
    "number": [1.5, 2, decimal.Decimal("1.5"), datetime.timedelta(1), datetime.time(12)],
    "boolean": [True],
    "date": [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)],
    "category": ["1", "yes", "2024-01-01"],
}


@pytest.mark.parametrize(("kind", "cell"), [(kind, cell) for kind, cells in CELLS.items() for cell in cells])
def test_a_type_decides_and_a_model_learns_that(kind, cell):
    table = pa.table({"c": [cell, cell, None]})
    assert kind_of_type(nw.from_native(table, eager_only=True)["c"].dtype) == kind
    assert [column.kind for column in read_table(table).columns] == [kind]
    assert TableEncoder.learn(read_table(table)).kinds == (kind,)


def test_without_a_type_the_rows_given_decide():
    table = read_table(pd.DataFrame({"c": np.array([1.0, None, "a"], dtype=object)}))
    assert [table.take(np.array(rows)).columns[0].kind for rows in ([0, 1], [1], [0, 2])] == [
        "number",
        "category",
        "category",
    ]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", None, "-2.5e3"], "number"),
        (["Yes", "false"], "boolean"),
        (["1", "0"], "number"),
        (["yes", "1"], "category"),
        (["2024-01-01", "2024-01-01 10:00"], "date"),
        (["2024-01-01", "2024-01-01T10:00Z"], "category"),
        (["1", "one"], "category"),
        ([None, None], "category"),
    ],
)
def test_all_cells_of_a_csv_decide(cells, kind):
    assert kind_of_text(pa.array(cells, pa.string()), False) == kind
