"""Columns in cells: every row has one, training rows are counted in the same ones, and categories keep their names."""

import numpy as np
import pandas as pd
import pytest

from guardband.data.reference import CategorySummary, NumberSummary, Reference
from guardband.data.table import read_table
from guardband.monitor.cells import CELLS, COMMON, MOST_COLUMNS, ColumnCells, cells_of, codes_of


def column(values):
    (own,) = read_table(pd.DataFrame({"x": values})).columns
    return own


NUMBERS = {
    "many values": np.random.default_rng(0).standard_normal(1_000),
    "few values": np.random.default_rng(1).integers(0, 4, 1_000).astype(float),
    "one value": np.full(50, 3.0),
    "missing": np.where(np.arange(300) % 7 == 0, np.nan, np.arange(300.0)),
    "heavy ties": np.concatenate([np.zeros(900), np.arange(100.0)]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_training_rows_are_counted_in_the_cells_that_new_rows_fall_into(name):
    values = NUMBERS[name]
    own = ColumnCells.of(NumberSummary.learn("x", values))
    counted = np.bincount(own.codes(column(values)), minlength=CELLS + 1)
    assert tuple(counted) == own.before
    assert len(own.before) == len(own.names) == CELLS + 1


def test_values_beyond_all_training_rows_fall_into_the_outer_cells():
    own = ColumnCells.of(NumberSummary.learn("x", NUMBERS["many values"]))
    assert own.codes(column([-1e9, 1e9, np.nan])).tolist() == [0, CELLS - 1, CELLS]


@pytest.mark.parametrize("categories", [4, 9, 10, 250])
def test_categories_are_counted_in_the_cells_that_new_rows_fall_into(categories):
    values = [f"c{i % categories}" if i % 11 else None for i in range(30 * categories)]
    own = ColumnCells.of(CategorySummary.learn("x", values))
    assert tuple(np.bincount(own.codes(column(values)), minlength=CELLS + 1)) == own.before
    assert bool(own.categories) == (categories < CELLS)


def test_categories_have_cells_of_their_own_only_if_each_is_common():
    for rare in (COMMON, COMMON - 1):
        own = ColumnCells.of(CategorySummary.learn("x", ["a"] * 100 + ["b"] * rare))
        assert own.categories == (("a", "b") if rare == COMMON else ())
        assert own.before[CELLS] == 0
        assert sum(own.before) == 100 + rare


def test_a_category_that_training_did_not_have_falls_into_a_cell_for_others():
    own = ColumnCells.of(CategorySummary.learn("x", ["a"] * 50 + ["b"] * 30))
    assert own.codes(column(["a", "b", "z", None])).tolist() == [0, 1, 2, CELLS]
    assert own.names[2] == "other values"


def test_cells_are_what_they_were_after_json():
    for summary in (NumberSummary.learn("x", NUMBERS["missing"]), CategorySummary.learn("x", ["a", "b", None] * 40)):
        own = ColumnCells.of(summary)
        assert ColumnCells.from_dict(own.to_dict()) == own


def test_columns_that_name_entities_are_left_out_and_there_are_not_too_many():
    table = read_table(pd.DataFrame({f"c{i}": np.arange(30.0) for i in range(MOST_COLUMNS + 5)}))
    reference = Reference.learn(table, np.arange(30.0))
    assert len(cells_of(reference)) == MOST_COLUMNS
    assert "c0" not in [own.name for own in cells_of(reference, frozenset({"c0"}))]
    assert cells_of(None) == ()


def test_a_column_that_a_table_has_not_has_no_cells():
    cells = (
        ColumnCells.of(NumberSummary.learn("x", np.arange(9.0))),
        ColumnCells.of(NumberSummary.learn("y", np.arange(9.0))),
    )
    found = codes_of(cells, read_table(pd.DataFrame({"y": [1.0, 2.0]})), 2)
    assert found[:, 0].tolist() == [-1, -1]
    assert (found[:, 1] >= 0).all()
    assert (codes_of(cells, None, 2) == -1).all()
