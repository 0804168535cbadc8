import numpy as np
import pandas as pd
import polars as pl

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
