"""Long tables in single precision: nothing makes a second copy of them, nor one in double precision."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import guardband as gb
from guardband.data.encoder import PlainNumbers, TableEncoder
from guardband.data.repeats import repeats_in
from guardband.data.table import ROWS_AT_A_TIME, read_table
from guardband.data.unlike import Seen
from guardband.training.batches import Draw
from guardband.training.epochs import folds_of

N, COLUMNS = 100_000, 40
X = np.random.default_rng(0).standard_normal((N, COLUMNS), dtype=np.float32)


def peak_of(work):
    """Return the most bytes that numpy and Python had at once in some work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("given", [X, X.astype(np.float64), torch.from_numpy(X)], ids=["single", "double", "tensor"])
def test_floats_are_not_copied(given):
    table = read_table(given)
    assert all(np.shares_memory(column.values, given) for column in table.columns)
    assert table.take(np.arange(N)) is table


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda array: pl.DataFrame(array, orient="row")])
def test_frames_stay_in_single_precision(frame):
    assert {column.values.dtype for column in read_table(frame(X[:50])).columns} == {np.dtype(np.float32)}


@pytest.mark.parametrize("robust", [False, True])
def test_encoding_makes_no_matrix_in_double_precision(robust):
    table = read_table(X)
    encoder = TableEncoder.learn(table, robust)
    assert peak_of(lambda: encoder.encode(table)) < 1.9 * X.nbytes  # the matrix itself, and one block at a time
    assert peak_of(lambda: len(encoder.reader(table)(slice(0, ROWS_AT_A_TIME)))) < 0.9 * X.nbytes


def test_infinities_in_any_block_are_refused():
    rows = X[: 2 * ROWS_AT_A_TIME + 3, :4].copy()
    rows[-1, 1] = np.inf
    rows[0, 3] = -np.inf
    with pytest.raises(ValueError, match="'x1', 'x3'"):
        read_table(rows)


def test_new_rows_are_compared_with_those_seen_a_block_at_a_time():
    table = read_table(X)
    seen = Seen.learn(table)
    assert peak_of(lambda: seen.compare(table)) < 0.3 * X.nbytes


def test_plain_numbers_are_encoded_in_blocks():
    table = read_table(X)
    assert peak_of(lambda: PlainNumbers().encode(table)) < 1.9 * X.nbytes
    np.testing.assert_array_equal(PlainNumbers().encode(table), X)


def test_repeated_rows_are_looked_for_a_column_at_a_time():
    table, y = read_table(X), X[:, 0].astype(np.float64)
    assert peak_of(lambda: repeats_in(table, y)) < 1.5 * X.nbytes  # with a number for each cell it would be four times


def test_only_the_folds_that_are_asked_for_are_made():
    draw = Draw(torch.arange(1000), 3)
    entities = Draw(torch.arange(1000), 3, entity=torch.arange(1000) // 2)
    for own in (draw, entities):
        few, every = folds_of(own, 50, 2), folds_of(own, 50)
        assert len(few) == 2
        for (held_out, rest), (same_held_out, same_rest) in zip(few, every, strict=False):
            assert held_out.index.equal(same_held_out.index)
            assert rest.index.equal(same_rest.index)


def test_single_precision_is_read_as_the_numbers_that_it_holds():
    rows = X[: ROWS_AT_A_TIME + 3, :4].copy()
    rows[::50, 1] = np.nan
    y = rows[:, 0].astype(np.float64) + np.arange(len(rows)) % 3
    model, same = (
        gb.IntervalRegressor(preset="fast", hidden=(4,), max_epochs=1, random_state=0, integer=False).fit(own, y)
        for own in (rows, rows.astype(np.float64))
    )
    np.testing.assert_array_equal(model.predict(rows), same.predict(rows.astype(np.float64)))
    np.testing.assert_array_equal(model.fitted_.training_prints, same.fitted_.training_prints)
