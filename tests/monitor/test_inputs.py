"""Whether inputs have changed: few false flags whatever the column, fixed looks, and changes that are found."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from guardband.data.reference import CategorySummary, NumberSummary
from guardband.data.table import read_table
from guardband.monitor.cells import CELLS, ColumnCells
from guardband.monitor.inputs import FIRST_LOOK, Inputs, low_cells, moved_since

SIGNIFICANCE = 0.05
FAMILY = 1e-6


def rare_tail(random, n):
    """Return one common category, and about one row in a hundred of five thousand others."""
    rare = random.random(n) < 0.013
    return np.where(rare, random.integers(1, 5_000, n), 0).astype(str)


def with_missing(random, n):
    out = random.standard_normal(n)
    out[random.random(n) < 0.03] = np.nan
    return out


COLUMNS = {
    "numbers": lambda random, n: random.standard_normal(n),
    "missing numbers": with_missing,
    "two values": lambda random, n: (random.random(n) < 0.05).astype(float),
    "counts": lambda random, n: random.poisson(2.0, n).astype(float),
    "few categories": lambda random, n: random.choice(list("abcd"), n, p=[0.5, 0.25, 0.15, 0.1]),
    "many categories": lambda random, n: (random.pareto(1.0, n) * 5).astype(int).astype(str),
    "a tail of rare categories": rare_tail,
}


def learnt(values):
    if values.dtype.kind == "f":
        return ColumnCells.of(NumberSummary.learn("x", values))
    return ColumnCells.of(CategorySummary.learn("x", values.tolist()))


def codes(cells, values):
    (column,) = read_table(pd.DataFrame({"x": values})).columns
    return cells.codes(column)[:, None]


def seen(cells, values, significance=SIGNIFICANCE):
    """Return what is found along a stream."""
    state, done, found = Inputs.empty(1), 0, codes(cells, values)
    while done < len(values):
        last = min(len(values), state.next_look)
        state, done = state.added(found[done:last], last, (cells,), significance), last
    return state


@pytest.mark.parametrize("name", COLUMNS)
def test_false_flags_are_at_most_as_frequent_as_the_significance(name):
    random, streams = np.random.default_rng(7), 200
    flags = sum(
        bool(seen(learnt(COLUMNS[name](random, 300)), COLUMNS[name](random, 4_096)).moved) for _ in range(streams)
    )
    assert flags <= binom.isf(FAMILY, streams, SIGNIFICANCE)


def test_looks_share_the_significance_and_double():
    own = Inputs.empty(0)
    looks, shares = [], []
    for _ in range(12):
        looks.append(own.next_look)
        shares.append(1 / ((own.look + 1) * (own.look + 2)))
        own = own.added(np.empty((0, 0), dtype=np.int16), own.next_look, (), SIGNIFICANCE)
    assert looks == [FIRST_LOOK << j for j in range(12)]
    assert sum(shares) <= 1


def test_each_look_is_at_the_rows_since_the_last_one():
    cells, random = learnt(COLUMNS["numbers"](np.random.default_rng(0), 500)), np.random.default_rng(1)
    state = seen(cells, random.standard_normal(FIRST_LOOK + 7))
    assert state.look == 1
    assert state.counts.sum() == 7


@pytest.mark.parametrize(
    ("name", "later", "detail"),
    [
        ("numbers", lambda random, n: random.standard_normal(n) + 1, "higher"),
        ("two values", lambda random, n: (random.random(n) < 0.5).astype(float), "higher"),
        (
            "missing numbers",
            lambda random, n: np.where(random.random(n) < 0.5, np.nan, random.standard_normal(n)),
            "missing: more",
        ),
        ("few categories", lambda random, n: np.full(n, "d"), "d: more"),
        ("few categories", lambda random, n: np.full(n, "new"), "other values: more"),
        ("many categories", lambda random, n: np.full(n, "7"), "other values"),
    ],
)
def test_a_column_that_has_moved_is_found_and_named(name, later, detail):
    random = np.random.default_rng(3)
    (moved,) = seen(learnt(COLUMNS[name](random, 800)), later(random, 300), 0.01).moved
    assert moved.detail == detail
    assert moved.row == FIRST_LOOK
    assert moved.p_value < 0.005


def test_rows_since_a_change_are_compared_by_cell():
    random = np.random.default_rng(4)
    cells = learnt(COLUMNS["few categories"](random, 800))
    counts = np.array([np.bincount(codes(cells, np.full(100, "d"))[:, 0], minlength=CELLS + 1)])
    assert [own.name for own in moved_since(counts, (cells,), 0.01, 50)] == ["x"]
    same = np.array([cells.before])
    assert moved_since(same, (cells,), 0.01, 50) == ()


def test_cells_that_are_missed_more_often_come_first():
    cells = learnt(COLUMNS["few categories"](np.random.default_rng(5), 800))
    rows, misses = np.zeros((1, CELLS + 1), dtype=np.int64), np.zeros((1, CELLS + 1), dtype=np.int64)
    rows[0, :4], misses[0, :4] = (300, 200, 100, 19), (30, 20, 50, 19)
    found = low_cells(rows, misses, (cells,), 0.01)
    assert [(own.name, own.rows, own.misses) for own in found] == [(cells.names[2], 100, 50)]
    assert low_cells(rows, rows // 10, (cells,), 0.01) == ()
