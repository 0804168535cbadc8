"""Dates as what recurs, and columns of many categories as indices."""

import datetime

import numpy as np
import pandas as pd
import pytest
import torch

import guardband as gb
from guardband.data.asking import answered
from guardband.data.codes import MOST_INDEXED, DateCode, LongTailCode, NumberCode, RobustCode
from guardband.data.encoder import TableEncoder, asks_code
from guardband.data.table import read_table
from guardband.data.turns import YEAR, turned

MOMENTS = pd.date_range("1969-03-01 05:00", periods=900, freq="37h")
DAYS = (MOMENTS - pd.Timestamp(0)) / pd.Timedelta("1D")


@pytest.mark.parametrize("xp", [np, torch])
def test_what_recurs_is_the_calendars(xp):
    days = np.asarray(DAYS) if xp is np else torch.tensor(np.asarray(DAYS))
    np.testing.assert_array_equal(turned(days, "weekday", xp), MOMENTS.day_of_week)
    np.testing.assert_allclose(24 * np.asarray(turned(days, "time", xp)), MOMENTS.hour, atol=1e-9)
    apart = YEAR * np.asarray(turned(days, "season", xp)) - (MOMENTS.day_of_year - 1 + MOMENTS.hour / 24)
    assert np.abs(np.remainder(apart + YEAR / 2, YEAR) - YEAR / 2).max() < 1.5  # round the turn of the year


@pytest.mark.parametrize(
    ("first", "step", "turns"),
    [
        ("2024-01-01", "1D", ["day", "weekday"]),
        ("2024-01-01 00:30", "1h", ["day", "time"]),
        ("2024-01-01", "11h", ["day", "time", "weekday"]),
        ("2024-01-01", "9D", ["day", "weekday", "season"]),
        ("2024-01-01", "0D", ["day"]),
    ],
)
def test_only_what_tells_more_than_the_day_is_made(first, step, turns):
    moments = pd.Series(pd.Timestamp(first) + np.arange(100) * pd.Timedelta(step), name="when")
    (column,) = read_table(moments.to_frame()).columns
    code = answered(DateCode.asks(RobustCode), column)
    assert [turn for turn, _ in code.parts] == turns
    assert code.encode(code.read(column)).shape == (100, len(turns))
    assert code.numbers == len(turns)
    assert answered(DateCode.asks(NumberCode), column).numbers == 0


def frame(n=300):
    rng = np.random.default_rng(0)
    when = [None if i % 11 == 5 else moment for i, moment in enumerate(MOMENTS[:n])]
    shops = [None if i % 13 == 5 else f"shop {rng.integers(120)}" for i in range(n)]
    rare = [*shops[:-2], "seen once", "also"]
    return pd.DataFrame({"shop": rare, "x": rng.standard_normal(n), "when": when, "kind": ["u", "v"] * (n // 2)})


def test_an_encoder_with_dates_and_indices_is_written_and_read():
    table = read_table(frame())
    encoder = TableEncoder.learn(table, robust=True)
    assert encoder.kinds == ("category", "number", "date", "category")
    assert encoder.numbers == 5
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder
    assert encoder.encode(table).shape == (300, 5 + 1 + 2 + 1)
    (size,) = encoder.sizes
    indices = encoder.encode(table)[:, -1]
    new = read_table(frame().assign(shop="never seen"))
    assert set(encoder.encode(new)[:, -1]) == {0.0}
    assert indices.max() == size - 1 == indices[5]
    assert TableEncoder.learn(table, robust=False).sizes == ()


@pytest.mark.parametrize("robust", [False, True])
def test_numpy_and_torch_encode_alike(robust):
    """But for rounding: torch divides by a number by multiplying with its inverse."""
    table = read_table(
        frame().assign(far=[1e300, None] * 150, rare=[f"r{i % 140}" for i in range(300)], b=[True] * 300)
    )
    encoder = TableEncoder.learn(table.take(np.arange(200)), robust)
    rows = encoder.rows(table)
    expected = encoder.encode(table)
    assert expected.dtype == np.float32
    np.testing.assert_array_equal(encoder.encode_rows(rows, np), expected)
    np.testing.assert_array_max_ulp(encoder.encode_rows(torch.from_numpy(rows), torch).numpy(), expected, maxulp=4)


def test_numbers_with_a_long_tail_are_there_twice():
    rng = np.random.default_rng(0)
    far = np.exp(2 * rng.standard_normal(300))
    table = read_table(pd.DataFrame({"far": np.where(rng.random(300) < 0.1, np.nan, far), "near": rng.random(300)}))
    encoder = TableEncoder.learn(table, robust=True)
    assert isinstance(encoder.codes[0], LongTailCode)
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder
    assert (encoder.numbers, encoder.width) == (3, 4)
    matrix, known = encoder.encode(table), ~np.isnan(table.columns[0].values)
    order = np.argsort(far[known])
    for column in matrix[known].T[:2]:
        assert (np.diff(column[order]) >= 0).all()
    farthest = matrix[known][order][-5:]
    assert np.ptp(farthest[:, 0]) > 10 * np.ptp(farthest[:, 1])  # logarithms tell far values apart
    assert matrix[:, 3].tolist() == (~known).tolist()
    assert TableEncoder.learn(table, robust=False).width == 3


@pytest.mark.parametrize(
    ("cells", "told_apart"), [([f"{i}" for i in range(150)], 0), ([*map(str, range(150)), "7"], 150)]
)
def test_categories_have_an_index_if_any_occurs_twice(cells, told_apart):
    (column,) = read_table(pd.DataFrame({"c": [f"c{cell}" for cell in cells]})).columns
    assert len(answered(asks_code("category", robust=True), column).categories) == told_apart


def test_of_very_many_categories_the_most_frequent_have_an_index():
    cells = [f"c{i}" for i in range(MOST_INDEXED + 5)] + ["c3", f"c{MOST_INDEXED + 1}"]
    (column,) = read_table(pd.DataFrame({"c": cells})).columns
    code = answered(asks_code("category", robust=True), column)
    assert len(code.categories) == MOST_INDEXED
    assert {"c3", f"c{MOST_INDEXED + 1}"} < set(code.categories)


def test_the_network_outside_python_reads_dates_and_indices_alike():
    rows = frame(600)
    y = np.random.default_rng(1).standard_normal(600) + rows["x"].to_numpy()
    model = gb.IntervalRegressor(preset="fast", hidden=(8,), max_epochs=2, random_state=0).fit(rows, y)
    network = model.as_network()
    new = rows.assign(shop=["unheard of", *rows["shop"][1:]])
    with pytest.warns(gb.UnlikeRowsWarning, match="such as 'unheard of' in row 0"):
        bands = model.predict_interval(new)
    np.testing.assert_allclose(network(network.rows(new))[:, 0], bands.lower, rtol=1e-4, atol=1e-4)


def test_hours_and_many_shops_are_learnt():
    rng = np.random.default_rng(0)
    n, shops = 6000, 200
    effect, shop = 3 * rng.standard_normal(shops), rng.integers(shops, size=n)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.uniform(0, 1000, n), unit="D")
    y = effect[shop] + 3 * np.sin(2 * np.pi * when.hour / 24) + 0.3 * rng.standard_normal(n)
    rows = pd.DataFrame({"when": when, "shop": [f"s{i}" for i in shop]})
    model = gb.IntervalRegressor(split_by=[], preset="fast", random_state=0).fit(rows[:5000], y[:5000])
    bands = model.predict_interval(rows[5000:])
    assert gb.metrics.mean_length(y[5000:], bands) < 0.4 * np.ptp(np.quantile(y, [0.05, 0.95]))


def test_a_date_may_be_of_python():
    moments = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=7 * i) for i in range(100)]
    table = read_table(np.array([moments, list(range(100))], dtype=object).T)
    assert TableEncoder.learn(table, robust=True).kinds == ("date", "number")
