import numpy as np
import pandas as pd
import polars as pl
import pytest

import guardband as gb

ONE = gb.Intervals(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([2.0, 4.0]), 0.9)
TWO = gb.Intervals(np.zeros((3, 2)), np.ones(3), np.full((3, 2), 2.0), (0.9, 0.5))


def test_unpacks_to_a_point_and_a_three_dimensional_array():
    point, intervals = ONE
    assert point.shape == (2,)
    assert intervals.tolist() == [[[0.0], [2.0]], [[1.0], [4.0]]]
    assert list(TWO)[1].shape == (3, 2, 2)


def test_tables_name_their_columns():
    assert list(ONE.to_pandas().columns) == ["point", "lower", "upper"]
    assert ONE.to_polars().columns == ["point", "lower", "upper"]
    assert TWO.to_polars().columns == ["point", "lower_0.9", "upper_0.9", "lower_0.5", "upper_0.5"]


def test_a_name_the_input_has_gets_a_prefix():
    bands = gb.Intervals(ONE.lower, ONE.point, ONE.upper, 0.9, input_names=("lower", "x"))
    assert list(bands.to_pandas().columns) == ["guardband_point", "guardband_lower", "guardband_upper"]


def test_pandas_keeps_the_input_index():
    bands = gb.Intervals(ONE.lower, ONE.point, ONE.upper, 0.9, index=pd.Index(["a", "b"]))
    assert list(bands.to_pandas().index) == ["a", "b"]
    assert isinstance(bands.to_polars(), pl.DataFrame)


def test_levels_that_differ_late_keep_their_own_columns():
    levels = (0.9999991, 0.9999992)
    bands = gb.Intervals(np.zeros((1, 2)), np.zeros(1), np.ones((1, 2)), levels)
    assert len(bands.to_pandas().columns) == 5


def test_width_and_what_is_contained():
    np.testing.assert_array_equal(ONE.width, [2, 3])
    np.testing.assert_array_equal(ONE.contains([2.0, 0.9]), [True, False])  # the ends belong to the interval
    np.testing.assert_array_equal(ONE.contains([np.nan, 1.0]), [False, True])
    assert TWO.contains([0.0, 1.0, 3.0]).tolist() == [[True, True], [True, True], [False, False]]
    with pytest.raises(ValueError, match="one value for each of 2 intervals"):
        ONE.contains([1.0])


def test_some_rows_keep_what_belongs_to_them():
    bands = gb.Intervals(ONE.lower, ONE.point, ONE.upper, 0.9, index=pd.Index(["a", "b"]))
    assert len(bands) == 2
    for rows in (slice(1, None), [1], -1, np.array([False, True])):
        part = bands[rows]
        assert (len(part), part.lower.tolist(), part.to_pandas().index.tolist()) == (1, [1.0], ["b"])
    assert TWO[:2].upper.shape == (2, 2)
    with pytest.raises(IndexError):
        bands[2]


def test_intervals_are_an_array_as_a_network_puts_them_out():
    np.testing.assert_array_equal(np.asarray(ONE), [[0, 1, 2], [1, 2, 4]])
    assert np.asarray(TWO).shape == (3, 3, 2)


@pytest.mark.parametrize("endless", [False, True])
def test_a_picture_shows_what_is_inside(endless):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    upper = np.array([2.0, np.inf]) if endless else ONE.upper
    ax = gb.Intervals(ONE.lower, ONE.point, upper, 0.9).plot([1.5, -1.0])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["interval", "prediction", "true value, inside", "true value, outside"]
    inside, outside = ax.collections[1:]
    assert inside.get_offsets().tolist() == [[0, 1.5]]
    assert outside.get_offsets().tolist() == [[1, -1]]
    assert np.isfinite(ax.get_ylim()).all()
    assert TWO.plot(level=1, ax=ax) is ax
    pyplot.close(ax.figure)
