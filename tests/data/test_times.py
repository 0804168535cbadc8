"""Times: no earlier row is among the later ones, and rows of one time stay together."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from guardband.data.entities import Entities
from guardband.data.split import split_rows
from guardband.data.times import Times

DAYS = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(20), unit="D")


def times(values):
    return Times(np.asarray(values, float), "day", are_dates=False)


@pytest.mark.parametrize("seed", range(5))
def test_every_later_row_is_later_than_all_earlier_ones(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, rng.integers(3, 200), size=300).astype(float)
    early, late = times(values).split(75)
    assert values[early].max() < values[late].min()
    assert sorted([*early, *late]) == list(range(300))
    most = np.unique(values, return_counts=True)[1].max()
    assert abs(len(late) - 75) <= most / 2  # the nearest border between two times


def test_size_is_a_share_or_a_number_as_at_random():
    own = times(np.arange(100))
    for size, count in ((0.25, 25), (10, 10), (None, 0)):
        early, late = split_rows(100, size, np.random.RandomState(0), times=own)
        assert (len(early), len(late)) == (100 - count, count)
    with pytest.raises(ValueError, match="calibration_size must be a share"):
        split_rows(100, 99, np.random.RandomState(0), times=own)


def test_repeated_rows_calibrate_only_if_none_of_them_trained():
    labels = np.arange(100) % 90  # the last ten repeat the first
    early, late = times(np.arange(100)).split(25, Entities(labels.astype(np.int64), "row"))
    assert early.tolist() == list(range(75))
    assert late.tolist() == list(range(75, 90))
    with pytest.raises(ValueError, match="All rows after 49 repeat earlier rows"):
        times(np.arange(100)).split(50, Entities(np.arange(100) % 50, "row"))


def test_missing_times_are_refused_with_their_rows():
    with pytest.raises(ValueError, match=r"Column 'day' has missing values, .* \(rows 1, 3\)\. Fill them in"):
        times([0, np.nan, 1, np.nan]).split(1)


@pytest.mark.parametrize("values", [np.zeros(50), np.r_[0, np.ones(49)]])
def test_a_time_that_does_not_tell_rows_apart_is_refused(values):
    with pytest.raises(ValueError, match="A split by time needs at least 2 rows that came before others"):
        times(values).split(10)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(DAYS, name="day"),
        pl.Series("day", DAYS.to_list()),
        DAYS.to_numpy(),
        DAYS.tz_localize("UTC").to_series().reset_index(drop=True),
        np.array([str(day.date()) for day in DAYS], dtype=object),
    ],
)
def test_dates_of_any_kind_are_days(column):
    own = Times.of(True, column, None, 20)
    assert own.are_dates
    np.testing.assert_array_equal(own.values, 19_723 + np.arange(20))
    assert own.in_words(own.values[0]) == "2024-01-01"
    named = Times.of("when", None, pd.DataFrame({"when": column}), 20)
    assert named.name == "when"
    np.testing.assert_array_equal(named.values, own.values)


@pytest.mark.parametrize(
    ("split_by_time", "time", "words"),
    [
        (True, None, "split_by_time=True needs to know when each row came"),
        (3, None, "split_by_time must be the name of a column, True or False, found 3"),
        ("when", np.arange(20), "both say when rows came"),
        ("wen", None, "X has no column 'wen', as split_by_time asks for"),
        (True, np.arange(3), r"time must be one column of 20 rows, found shape \(3,\)"),
        (True, np.array(["a", "b"] * 10), "'time' must hold numbers or dates .* found text"),
        (True, np.array([True, False] * 10), "'time' must hold numbers or dates .* found True and False"),
    ],
)
def test_what_does_not_say_when_rows_came_is_refused(split_by_time, time, words):
    with pytest.raises(ValueError, match=words):
        Times.of(split_by_time, time, pd.DataFrame({"when": DAYS}), 20)


def test_without_a_time_nothing_is_known():
    assert Times.of(False, None, None, 20) is None
