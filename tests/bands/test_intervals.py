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


def test_text_shows_the_first_and_the_last_rows():
    assert repr(ONE).splitlines() == [
        "2 intervals, confidence level 90%",
        "   lower  prediction  upper",
        "0   0.00        1.00   2.00",
        "1   1.00        2.00   4.00",
    ]
    point = np.arange(1000.0)
    text = str(gb.Intervals(point - 1, point, point + 1, 0.9, index=pd.Index([f"a{i}" for i in range(1000)])))
    assert len(text.splitlines()) == 13
    assert [line.split()[0] for line in text.splitlines()[2:]] == [
        *("a0", "a1", "a2", "a3", "a4", "…", "a995", "a996", "a997", "a998", "a999")
    ]
    long = gb.Intervals(*np.zeros((3, 1)), 0.9, index=pd.Index(["a\nb" * 1000]))
    assert len(repr(long).splitlines()) == 3
    assert len(long._repr_html_()) < 5000
    assert "\x1b" not in repr(gb.Intervals(*np.zeros((3, 1)), 0.9, index=pd.Index(["\x1b[31m"])))


def test_true_values_in_another_order_are_refused():
    bands = gb.Intervals(ONE.lower, ONE.point, ONE.upper, 0.9, index=pd.Index(["a", "b"]))
    y = pd.Series([0.0, 9.0], index=["b", "a"])
    for method in (bands.contains, bands.plot):
        with pytest.raises(ValueError, match=r"another order. Pass y.loc\[bands.index\]."):
            method(y)
    assert bands.contains(y.loc[bands.index]).tolist() == [False, False]
    assert bands.contains(y.reset_index(drop=True)).tolist() == [True, False]  # other names say nothing
    assert bands.contains(pl.Series([0.0, 9.0])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("y", "hint"), [(np.zeros((2, 1)), r"Pass it as one column, such as y.ravel\(\)."), ([1.0], "Pass as many.")]
)
def test_true_values_of_another_shape_are_refused(y, hint):
    for method in (ONE.contains, ONE.plot):
        with pytest.raises(ValueError, match=f"one value for each of 2 intervals, found shape .*{hint}"):
            method(y)


@pytest.mark.parametrize("rows", ["a", 5, 1.5, TWO.contains([0.0, 1.0, 3.0]), [True, False]])
def test_rows_that_cannot_be_chosen_are_refused_with_what_can(rows):
    with pytest.raises(IndexError, match=r"Choose rows by a position, .* mask of 3 entries. .* call to_pandas\(\)."):
        TWO[rows]


def test_a_picture_shows_a_level_by_its_place_or_by_itself():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    bands = gb.Intervals(np.array([[0.0, 1.0]]), np.array([1.5]), np.array([[4.0, 2.0]]), (0.9, 0.5))
    for level, ends in ((0, [0, 4]), (1, [1, 2]), (0.9, [0, 4]), (0.5, [1, 2])):
        ax = bands.plot(level=level)
        ((low, high),) = ax.collections[0].get_segments()
        assert [low[1], high[1]] == ends
        pyplot.close(ax.figure)
    with pytest.raises(ValueError, match=r"no level 0.8 here. Choose one of 0.9, 0.5, or its place"):
        bands.plot(level=0.8)


def test_a_picture_says_how_many_rows_it_draws():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    point = np.arange(1000.0)
    ax = gb.Intervals(point - 1, point, point + 1, 0.9).plot(point, most=50)
    assert ax.get_title() == "90% intervals: 1,000 of 1,000 true values inside"
    assert ax.get_xlabel() == "50 of 1,000 rows in order of their prediction"
    assert len(ax.collections[0].get_segments()) == 50
    pyplot.close(ax.figure)


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
    assert ax.get_title() == "90% intervals: 1 of 2 true values inside"
    assert TWO.plot(level=1, ax=ax) is ax
    pyplot.close(ax.figure)


def test_the_axis_of_a_picture_has_whole_numbers_and_the_name_of_the_target():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    point = np.linspace(1e5, 3e6, 20)
    bands = gb.Intervals(point - 9e4, point, point + 9e4, 0.9)
    ax = bands.plot(pd.Series(point, name="price in $"))
    ax.figure.canvas.draw()
    assert ax.get_ylabel() == r"price in \$"
    assert "2,000,000" in [label.get_text() for label in ax.get_yticklabels()]
    assert bands.plot(point).get_ylabel() == "target"
    pyplot.close("all")
