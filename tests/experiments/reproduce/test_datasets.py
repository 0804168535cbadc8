"""The real tables: the right rows, the right columns, the dirt taken out, the response not among the covariates."""

import numpy as np
import pytest

from guardband.data.table import numbers_from
from guardband.experiments.reproduce.datasets import ENCODINGS, load

ROWS = {"bike": 17_379, "traffic": 48_204, "house": 21_613}


@pytest.mark.parametrize(("name", "encoding"), list(ENCODINGS))
def test_all_rows_are_there_and_the_response_is_finite(name, encoding, data_dir):
    table, y = load(name, encoding, data_dir)
    assert table.n_rows == len(y) == ROWS[name]
    assert np.isfinite(y).all()
    for column in table.columns:  # nothing gives the response away
        if column.kind != "category":
            values = numbers_from(column)
            kept = np.isfinite(values)
            if np.ptp(values[kept]) > 0:
                assert abs(np.corrcoef(values[kept], y[kept])[0, 1]) < 0.9, column.name


def named(table, name):
    return next(column for column in table.columns if column.name == name)


def test_dirt_is_taken_out_of_the_full_encodings(data_dir):
    traffic, _ = load("traffic", "full", data_dir)
    temperature, rain = (numbers_from(named(traffic, name)) for name in ("temp", "rain_1h"))
    assert np.nanmin(temperature) > 200
    assert np.isnan(temperature).sum() == 10
    assert np.isnan(rain).sum() == 1
    assert sum(value != "none" for value in named(traffic, "holiday").values) > 1000  # whole days, not midnights
    assert len(set(named(traffic, "weather").values)) < 38  # Sky is Clear, sky is clear
    bike, _ = load("bike", "full", data_dir)
    assert np.isnan(numbers_from(named(bike, "hum"))).sum() == 22
    house, _ = load("house", "full", data_dir)
    assert np.nanmax(numbers_from(named(house, "bedrooms"))) < 20


def test_the_papers_house_prices_have_a_dummy_for_each_day(data_dir):
    table, y = load("house", "paper", data_dir)
    assert sum(name.startswith("date_") for name in table.names) == 372
    assert "price" not in table.names
    assert y.mean() == pytest.approx(13.05, abs=0.01)
