"""What the training rows held, and which rows are unlike all of them."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from guardband.data.asking import answered
from guardband.data.table import Column, read_table
from guardband.data.unlike import MOST_EXAMPLES, MOST_KEPT, Seen, SeenCategories, SeenNumbers, Unlike


def place(row):
    return f"row {row:,}"


def seen_numbers(values, kind):
    return answered(SeenNumbers.asks(kind), Column("x", values, kind))


def seen_categories(cells):
    return answered(SeenCategories.asks(), Column("x", np.array(cells, dtype=object), decided="category"))


def frame(n=100):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": random.uniform(10, 20, n),
            "town": random.choice(["Wien", "Graz"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), unit="D"),
            "age": np.where(np.arange(n) % 9, 1.0 * np.arange(n), np.nan),
        }
    )


def compared(new, first_row=0):
    return Seen.learn(read_table(frame())).compare(read_table(new), first_row)


def test_training_rows_are_not_unlike_themselves():
    found, columns = compared(frame())
    assert (found.n, found.count, found.cells) == (100, 0, ())
    assert columns.tolist() == [""] * 100


def test_each_reason_is_counted_and_named_with_an_example():
    new = frame(6).astype({"town": object})
    new.loc[2, "town"] = "Bern"
    new.loc[[2, 4], "size"] = [31.0, -1e300]
    new.loc[3, "day"] = pd.NaT
    new.loc[5, "day"] = pd.Timestamp("2030-01-01 12:00")
    new.loc[1, "age"] = np.nan
    found, columns = compared(new, first_row=1)
    assert columns.tolist() == ["", "", "size, town", "day", "size", "day"]
    assert found.to_dict() == {
        "rows": 4,
        "of": 6,
        "columns": [
            {
                "column": "size",
                "reason": "number",
                "rows": 2,
                "examples": [{"value": "31", "row": 3}, {"value": "\N{MINUS SIGN}1e300", "row": 5}],
            },
            {"column": "town", "reason": "category", "rows": 1, "examples": [{"value": "Bern", "row": 3}]},
            {"column": "day", "reason": "missing", "rows": 1, "examples": [{"value": "missing", "row": 4}]},
            {"column": "day", "reason": "number", "rows": 1, "examples": [{"value": "2030-01-01 12:00", "row": 6}]},
        ],
    }
    words = found.in_words(place)
    assert words.startswith("4 of 6 rows are unlike all training rows. 'size': 2 rows far outside 10.")
    for part in (
        "'town': 1 row with a category that training did not have, such as 'Bern' in row 3.",
        "'day' is missing in 1 row, such as row 4, and never was in training.",
        "far outside 2024-01-01 to 2024-04-09, the range in training, such as 2030-01-01 12:00 in row 6.",
    ):
        assert part in words
    assert words.endswith("Check these rows: the promise is about rows like the training rows.")
    assert "\n" not in words


@pytest.mark.parametrize(
    ("value", "is_far"), [(29.9, False), (0.1, False), (30.1, True), (-0.1, True), (np.nan, False)]
)
def test_far_outside_is_beyond_the_range_by_more_than_its_length(value, is_far):
    seen = seen_numbers(np.append(np.linspace(10, 20, 30), np.nan), "number")
    (column,) = read_table(np.array([[value]])).columns
    assert [(reason, mask.tolist()) for reason, mask in seen.compare(column)] == [("number", [is_far])]


def test_one_absurd_value_in_training_does_not_hide_others():
    values = np.append(np.linspace(10, 20, 500), 1e12)
    assert seen_numbers(values, "number") == SeenNumbers(10.0, 20.0, True)
    heavy = np.exp(2 * np.random.default_rng(0).standard_normal(500))
    assert seen_numbers(heavy, "number").most == heavy.max()
    rare = np.append(np.zeros(500), 1.0)  # nothing says that the one is absurd
    assert seen_numbers(rare, "number").most == 1.0


def test_a_column_of_one_value_tells_any_other_but_for_rounding():
    seen = seen_numbers(np.full(9, 0.3), "number")
    (column,) = read_table(np.array([[0.1 + 0.2], [0.31]])).columns
    (_, (_, far)) = seen.compare(column)
    assert far.tolist() == [False, True]
    assert seen.in_words == "other than 0.3, the only value in training"


def test_numbers_at_the_edge_of_what_there_is_do_no_harm():
    seen = seen_numbers(np.array([-1.7e308, 1.7e308]), "number")
    (column,) = read_table(np.array([[1e308]])).columns
    assert not any(mask.any() for _, mask in seen.compare(column))
    (column,) = read_table(np.array([[5.0]])).columns
    assert list(seen_numbers(np.full(3, np.nan), "number").compare(column)) == []


def test_a_column_whose_categories_are_always_new_says_nothing():
    assert seen_categories([f"id {i}" for i in range(500)]).prints is None
    many = [f"street {i % (MOST_KEPT + 1)}" for i in range(2 * MOST_KEPT + 2)]
    assert seen_categories(many).prints is None
    fewer = [f"street {i % MOST_KEPT}" for i in range(2 * MOST_KEPT)]
    assert len(seen_categories(fewer).prints) == MOST_KEPT
    street = seen_categories([f"street {i % 400}" for i in range(1200)])  # more than the summary of drift keeps
    (column,) = read_table(np.array([["street 399"], ["street 400"]], dtype=object)).columns
    assert [(reason, mask.tolist()) for reason, mask in street.compare(column)] == [("category", [False, True])]


def test_categories_are_the_same_as_numbers_and_as_text():
    (learnt,) = read_table(pd.DataFrame({"c": pd.Categorical([1, 2, 1, 2])})).columns
    seen = Seen.learn(read_table(pd.DataFrame({"c": pd.Categorical([1, 2, 1, 2])})))
    assert learnt.kind == "category"
    found, columns = seen.compare(read_table(pd.DataFrame({"c": [1.0, 3.0]})))
    assert columns.tolist() == ["", "c"]
    assert found.cells[0].examples == (("3", 1),)


def test_what_was_seen_survives_json():
    seen = Seen.learn(read_table(frame()))
    assert Seen.from_dict(json.loads(json.dumps(seen.to_dict()))) == seen


def test_counts_of_batches_add_up_to_those_of_the_whole():
    new = frame(100).astype({"town": object})
    new.loc[::7, "town"] = [f"town {i % 5}" for i in range(len(new.loc[::7]))]
    new.loc[::11, "size"] = 1e6 + np.arange(len(new.loc[::11]))
    new["day"] = pd.NaT
    whole, columns = compared(new, first_row=1)
    total, parts = Unlike(), []
    for start in range(0, 100, 13):
        found, own = compared(new.iloc[start : start + 13], first_row=start + 1)
        total, parts = total + found, [*parts, *own]
    assert parts == columns.tolist()
    assert sorted(total.to_dict()["columns"], key=str) == sorted(whole.to_dict()["columns"], key=str)
    assert (total.n, total.count) == (whole.n, whole.count) == (100, 100)
    assert max(len(own.examples) for own in total.cells) == MOST_EXAMPLES
    assert "'day' is missing in every row, and never was in training." in total.in_words(place)


def test_a_long_table_is_compared_in_blocks_to_the_same_end(monkeypatch):
    seen = Seen.learn(read_table(pd.DataFrame({"a": np.arange(50.0), "b": ["x", "y"] * 25, "c": [True, False] * 25})))
    rows = pd.DataFrame({"a": np.arange(50.0), "b": ["x"] * 50, "c": [True] * 50}, dtype=object)
    rows.loc[[3, 20, 21, 49], "a"] = [900.0, None, -900.0, 901.0]
    rows.loc[[5, 21, 48], "b"] = ["z", None, "z"]
    rows.loc[[0, 21], "c"] = None
    whole, names = seen.compare(read_table(rows), 100)
    monkeypatch.setattr("guardband.data.unlike.ROWS_AT_A_TIME", 7)
    blocks, same = seen.compare(read_table(rows), 100)
    assert blocks == whole
    assert blocks.count == 7
    np.testing.assert_array_equal(same, names)
    assert names[21] == "a, b, c"


def test_dates_of_any_age_have_words():
    seen = seen_numbers(np.array([0.0, 1.0]), "date")
    (column,) = read_table(pd.DataFrame({"d": [datetime.datetime(9999, 1, 1)]})).columns
    assert seen.example(column, 0) == "9999-01-01"
