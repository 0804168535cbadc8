import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_array

from guardband.data.encoder import PlainNumbers, TableEncoder
from guardband.data.table import is_frame, read_table, take_columns, take_rows

COLUMNS = {
    "number": [1.5, None, 3.0],
    "whole": [1, 2, 3],
    "yes": [True, False, True],
    "town": ["Wien", None, "Graz"],
    "day": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 3), None],
}


def as_lists(table):
    return {c.name: (c.kind, [None if v is None or v != v else v for v in c.values]) for c in table.columns}


def test_every_library_reads_alike():
    frames = [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)]
    read = [as_lists(read_table(frame)) for frame in frames]
    assert read[0] == read[1] == read[2]
    assert read[0]["number"] == ("number", [1.5, None, 3.0])
    assert read[0]["yes"] == ("boolean", [1.0, 0.0, 1.0])
    assert read[0]["town"] == ("category", ["Wien", None, "Graz"])
    assert read[0]["day"][1][1] - read[0]["day"][1][0] == 2


def test_categoricals_are_categories_even_of_numbers_written_as_text():
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b", None])})
    assert as_lists(read_table(frame)) == {"c": ("category", ["a", "b", None])}
    assert as_lists(read_table(pl.DataFrame({"c": ["a", "b"]}, schema={"c": pl.Categorical}))) == {
        "c": ("category", ["a", "b"])
    }


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_some_rows_of_any_library_are_those_rows(library):
    rows = np.array([0, 2])
    own = library({"number": [1.5, 2.5, 3.0], "town": ["Wien", None, "Graz"]})
    assert as_lists(read_table(take_rows(own, rows))) == {
        "number": ("number", [1.5, 3.0]),
        "town": ("category", ["Wien", "Graz"]),
    }
    series = own["number"]
    assert np.asarray(take_rows(series, rows)).tolist() == [1.5, 3.0]


def test_some_rows_of_arrays_and_lists_are_those_rows():
    rows = np.array([0, 2])
    for own in (np.arange(6).reshape(3, 2), torch.arange(6).reshape(3, 2), [[0, 1], [2, 3], [4, 5]]):
        assert take_rows(own, rows).tolist() == [[0, 1], [4, 5]]
    assert take_rows(None, rows) is None


def encoded(X):
    return TableEncoder.learn(read_table(X)).encode(read_table(X)).tolist()


def test_columns_of_one_name_are_refused_with_what_to_do():
    twice = pd.DataFrame(np.zeros((3, 4)), columns=["a", "b", "a", "b"])
    told = "Several columns have the same name: 'a', 'b'. Give each column a name of its own."
    for read in (read_table, is_frame, lambda rows: take_columns(rows, ["a"])):
        with pytest.raises(ValueError, match=told):
            read(twice)


def test_arrays_tensors_and_lists_read_alike():
    array = np.arange(6.0).reshape(3, 2)
    others = (
        torch.tensor(array),
        torch.tensor(array).bfloat16(),
        array.tolist(),
        array.astype(object),
        array.astype(int),
    )
    for other in others:
        assert encoded(other) == encoded(array)


def test_masked_entries_are_missing():
    masked = np.ma.masked_array([[1.0], [2.0], [3.0]], [[False], [True], [False]])
    assert encoded(masked) == encoded(np.array([[1.0], [np.nan], [3.0]]))


def test_object_arrays_may_mix_text_and_numbers():
    encoder = TableEncoder.learn(read_table(np.array([["a", 1], ["b", 2]], dtype=object)))
    assert [type(code).__name__ for code in encoder.codes] == ["OneHotCode", "NumberCode"]


def test_a_cell_is_the_same_whatever_stands_around_it():
    frame = pd.DataFrame({"c": np.array([1.0, "a", 2.0, True, 2.5], dtype=object)})
    encoder = TableEncoder.learn(read_table(frame))
    every = encoder.encode(read_table(frame))
    for i in range(5):
        assert encoder.encode(read_table(frame.iloc[[i]]))[0].tolist() == every[i].tolist()


def test_categories_of_numbers_stay_themselves_without_the_dtype():
    for values in ([1.0, 2.0], [1, 2], [True, False], [1.5, 2.5]):
        encoder = TableEncoder.learn(read_table(pd.DataFrame({"c": pd.Categorical(values)})))
        out = encoder.encode(read_table(pd.DataFrame({"c": values})))
        assert out.sum(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan, pd.NaT])
@pytest.mark.parametrize("dtype", ["string", "object", "str", "category"])
def test_missing_text_is_missing(missing, dtype):
    frame = pd.DataFrame({"c": pd.Series(["a", None, "b"], dtype=dtype)})
    if dtype == "object":
        frame = pd.DataFrame({"c": np.array(["a", missing, "b"], dtype=object)})
    assert encoded(frame) == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_text_is_read_alike_wherever_it_comes_from():
    """What a CSV of the command line holds, and the same cells as another reader leaves them."""
    clean = pd.DataFrame({"c": ["low", None, "high", None]})
    raw = pd.DataFrame({"c": [" low", "none", "high ", "?"]})
    encoder = TableEncoder.learn(read_table(clean))
    for robust in (False, True):
        assert TableEncoder.learn(read_table(raw), robust) == TableEncoder.learn(read_table(clean), robust)
    np.testing.assert_array_equal(encoder.encode(read_table(raw)), encoder.encode(read_table(clean)))


def test_a_column_of_text_may_be_all_missing_in_new_rows():
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"c": ["a", None, "b"]})))
    assert encoder.encode(read_table(pd.DataFrame({"c": [np.nan]}))).tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("library", ["pandas", "pandas nullable", "polars", "pyarrow"])
def test_whole_numbers_and_dates_far_out_are_rounded(library):
    big, end = 2**60 + 1, datetime.datetime(9999, 12, 31)
    table = pa.table({"i": pa.array([big, None, 3]), "d": pa.array([end, None, end], pa.timestamp("us"))})
    frames = {
        "pandas": lambda: pd.DataFrame({"i": [float(big), np.nan, 3.0], "d": table["d"].to_pandas()}),
        "pandas nullable": lambda: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
        "polars": lambda: pl.from_arrow(table),
        "pyarrow": lambda: table,
    }
    numbers, dates = (column.values for column in read_table(frames[library]()).columns)
    np.testing.assert_array_equal(numbers, [2.0**60, np.nan, 3.0])
    np.testing.assert_array_equal(dates, [2932896.0, np.nan, 2932896.0])


def test_numbers_are_no_dates():
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"d": pd.date_range("2024-01-01", periods=9)})))
    with pytest.raises(ValueError, match="'d' held dates when the model was fitted, but now holds numbers"):
        encoder.encode(read_table(pd.DataFrame({"d": [1704067200000]})))
    assert np.isfinite(encoder.encode(read_table(pd.DataFrame({"d": [np.nan]})))).all()


def test_rounding_is_no_variation():
    frame = pd.DataFrame({"v": [0.1 + 0.2] * 30 + [0.3] * 31})
    for robust in (False, True):
        encoder = TableEncoder.learn(read_table(frame), robust)
        assert np.abs(encoder.encode(read_table(frame))).max() < 1e-6


def test_kinds_are_learnt_on_the_rows_given():
    values = np.array([1.0, 2.0, 3.0, "oops"], dtype=object)[:, None]
    table = read_table(values)
    encoder = TableEncoder.learn(table.take(np.arange(3)))
    assert [type(code).__name__ for code in encoder.codes] == ["NumberCode"]
    with pytest.raises(ValueError, match="held numbers when the model was fitted, but now "):
        encoder.encode(table)


def test_times_of_day_zones_and_durations_are_days():
    frame = pl.DataFrame(
        {
            "time": [datetime.time(12), datetime.time(6)],
            "long": [datetime.timedelta(days=2), None],
            "zone": [datetime.datetime(1970, 1, 2, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))] * 2,
        }
    )
    columns = {c.name: c.values.tolist() for c in read_table(frame).columns}
    assert columns["time"] == [0.5, 0.25]
    assert columns["long"][0] == 2
    assert columns["zone"] == [1, 1]


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (np.zeros(3), ValueError, "Reshape your data"),
        (np.zeros((0, 2)), ValueError, r"0 sample\(s\)"),
        (np.zeros((2, 0)), ValueError, r"0 feature\(s\)"),
        (np.array([[1.0, np.inf]]), ValueError, "X contains infinity in the column 'x1'"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
        (csr_array(np.eye(2)), TypeError, "dense"),
        (np.array([[{"a": 1}]], dtype=object), TypeError, "must be a string or a number"),
        (pl.DataFrame({"c": [[1, 2], [3, 4]]}), TypeError, "must be a string or a number"),
        (pd.DataFrame({"c": [1j, 2j]}), ValueError, "Complex data not supported"),
        (np.array([["a", np.inf]], dtype=object), ValueError, "X contains infinity in the column 'x1'"),
    ],
)
def test_what_is_no_table_is_refused(X, error, words):
    with pytest.raises(error, match=words):
        read_table(X)


def test_encoding_learns_on_its_rows_alone():
    train = pd.DataFrame({"x": [0.0, 2.0, None, 4.0], "c": ["a", "b", "a", None]})
    encoder = TableEncoder.learn(read_table(train))
    new = pd.DataFrame({"x": [2.0, None], "c": ["never seen", "b"]})
    out = encoder.encode(read_table(new))
    # x standardised, x missing, c = a, c = b, c missing
    np.testing.assert_allclose(out, [[0, 0, 0, 0, 0], [0, 1, 0, 1, 0]], atol=1e-7)


def test_many_categories_share_a_rare_one_with_the_unseen():
    names = [f"c{i}" for i in range(150)]
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"c": names * 2 + names[:100]})))
    out = encoder.encode(read_table(pd.DataFrame({"c": ["c0", "c149", "new"]})))
    assert out.shape == (3, 101)
    assert out[:, -1].tolist() == [0, 1, 1]


def test_constant_and_empty_columns_are_harmless():
    frame = pd.DataFrame({"same": [7.0, 7.0], "none": [np.nan, np.nan]})
    assert np.isfinite(TableEncoder.learn(read_table(frame)).encode(read_table(frame))).all()


def test_huge_values_do_not_overflow():
    frame = pd.DataFrame({"x": [1e300, -1e300, 0.0]})
    assert np.isfinite(encoded(frame)).all()
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"x": [0.0, 1e-10]})))
    assert np.isfinite(encoder.encode(read_table(frame))).all()


def test_numbers_that_arrive_as_text_are_read_and_other_text_is_refused():
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"x": [1.0, 2.0, 3.0]})))
    np.testing.assert_allclose(encoder.encode(read_table(pd.DataFrame({"x": ["2"]}))), [[0.0]], atol=1e-7)
    with pytest.raises(ValueError, match="held numbers when the model was fitted"):
        encoder.encode(read_table(pd.DataFrame({"x": ["two"]})))
    with pytest.raises(ValueError, match="X contains infinity"):
        encoder.encode(read_table(pd.DataFrame({"x": ["inf"]})))


def test_dates_and_truth_that_arrive_as_text_are_the_same_numbers():
    days, truth = ["2024-01-01", "2024-03-05T12:00", None], [True, False, True]
    typed = pd.DataFrame({"d": [None if d is None else datetime.datetime.fromisoformat(d) for d in days], "b": truth})
    encoder = TableEncoder.learn(read_table(typed))
    assert encoder.kinds == ("date", "boolean")
    text = pd.DataFrame({"d": days, "b": ["Yes", "false", " true "]})
    assert encoder.encode(read_table(text)).tolist() == encoder.encode(read_table(typed)).tolist()
    with pytest.raises(ValueError, match="held dates when the model was fitted, but now "):
        encoder.encode(read_table(text.assign(d="soon")))
    with pytest.raises(ValueError, match="held booleans when the model was fitted, but now "):
        encoder.encode(read_table(text.assign(b="maybe")))


def test_categories_that_arrive_as_numbers_are_written_out():
    encoder = TableEncoder.learn(read_table(pd.DataFrame({"c": ["1", "2"]}, dtype="string")))
    out = encoder.encode(read_table(pd.DataFrame({"c": [2.0, 1.0]})))
    assert out.tolist() == [[0, 1], [1, 0]]


def test_an_own_network_gets_numbers_as_they_are():
    frame = pd.DataFrame({"a": [1.0, 5.0], "b": [2, 3]})
    assert PlainNumbers().encode(read_table(frame)).tolist() == [[1, 2], [5, 3]]
    with pytest.raises(ValueError, match=r"The column 'a' has missing values \(NaN\) in row 1,"):
        PlainNumbers().encode(read_table(pd.DataFrame({"a": [1.0, np.nan]})))
    with pytest.raises(ValueError, match="The column 'a' holds text, but"):
        PlainNumbers().encode(read_table(pd.DataFrame({"a": ["x"]})))
