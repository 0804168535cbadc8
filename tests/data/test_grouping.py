"""Columns become groups: values, ranges, the missing and the pooled; and they come back from JSON as they were."""

import json

import numpy as np
import pandas as pd
import pytest

from guardband.data.asking import added, in_passes, parts_of
from guardband.data.group_labels import columns_of_labels
from guardband.data.grouping import BINS, NONE, UNKNOWN, Grouping, asks_values, group_columns, group_values, grouping_of
from guardband.data.table import read_table

FRAME = pd.DataFrame(
    {
        "text": ["b", "a", None, "b", "a", "b"],
        "number": [1.0, 2.0, np.nan, 1.0, 3.0, 1.0],
        "flag": [True, False, True, True, False, True],
        "day": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01", "2024-01-02", "2024-01-01"]),
    }
)


def learn_groups(columns, by=None, *, bins=BINS, may_bin=True, **options):
    return grouping_of(group_values(columns, by, bins=bins, may_bin=may_bin), by, **options)


def learnt(*names, **options):
    return learn_groups(group_columns(list(names), read_table(FRAME), FRAME), list(names), **options)


def codes(grouping, frame):
    return grouping.of_rows(read_table(frame), frame).tolist()


def test_every_value_of_every_column_is_a_group():
    groups = learnt("text", "number", "flag", "day")
    assert groups.names == (
        "text = a", "text = b", "number = 1", "number = 2", "number = 3", "flag = no", "flag = yes",
        "day = 2024-01-01", "day = 2024-01-02",
    )  # fmt: skip
    assert codes(groups, FRAME)[:3] == [[1, 2, 6, 7], [0, 3, 5, 8], [NONE, NONE, 6, NONE]]


def test_other_values_are_unknown_unless_small_ones_are_pooled():
    odd = FRAME.assign(text="c", number=9.0)
    assert [row[:2] for row in codes(learnt("text", "number"), odd)] == [[UNKNOWN, UNKNOWN]] * 6
    pooled = learnt("text", "number", least=3)
    assert pooled.names == ("text = b", "text = all other values", "number = 1", "number = all other values")
    assert codes(pooled, odd) == [[1, 3]] * 6
    assert codes(pooled, FRAME)[:2] == [[0, 2], [1, 3]]


def test_missing_values_are_a_group_if_asked():
    groups = learnt("text", "number", missing=True)
    assert groups.names[2] == "text = missing"
    assert codes(groups, FRAME)[2] == [2, 6]


@pytest.mark.parametrize(
    ("frame", "options", "names"),
    [
        ({"a": ["missing", None, "x"]}, {"missing": True}, ("a = 'missing'", "a = 'x'", "a = missing")),
        (
            {"a": ["all other values"] * 3 + ["x"] * 3 + ["y"]},
            {"least": 3},
            ("a = 'all other values'", "a = 'x'", "a = all other values"),
        ),
        (
            {"a": ["missing", "'missing'", None]},
            {"missing": True},
            ("a = \"'missing'\"", "a = 'missing'", "a = missing"),
        ),
        ({"a": ["missing", "x"]}, {}, ("a = missing", "a = x")),
        ({"a": ["b = c"], "a = b": ["c"]}, {}, ("'a' = 'b = c'", "'a = b' = 'c'")),
    ],
)
def test_no_two_groups_have_one_name(frame, options, names):
    frame = pd.DataFrame(frame)
    groups = learn_groups(group_columns(list(frame), read_table(frame), frame), list(frame), **options)
    assert groups.names == names
    assert Grouping.from_dict(json.loads(json.dumps(groups.to_dict())), list(frame)).names == names


def test_many_numbers_are_ranges_with_as_many_rows_each():
    values = np.arange(1000.0)
    groups = learn_groups(columns_of_labels(values, 1000), bins=4)
    assert groups.names == ("group = below 250", "group = 250 to below 500", "group = 500 to below 750",
                            "group = 750 or more")  # fmt: skip
    assert np.bincount(groups.of(columns_of_labels(values, 1000))[:, 0]).tolist() == [250] * 4
    beyond = groups.of(columns_of_labels(np.array([-1e9, 1e9, np.nan]), 3))
    assert beyond[:, 0].tolist() == [0, 3, NONE]
    with pytest.raises(ValueError, match="Pass training rows too"):
        learn_groups(columns_of_labels(values, 1000), may_bin=False)


def test_thirty_numbers_are_values_and_one_more_are_ranges():
    for count, wanted in ((30, 30), (31, 5)):
        values = np.arange(count).repeat(3)
        assert len(learn_groups(columns_of_labels(values, len(values))).names) == wanted


@pytest.mark.parametrize("options", [{}, {"least": 3}, {"missing": True}])
def test_groups_survive_json(options):
    groups = learnt("text", "number", "flag", "day", **options)
    again = Grouping.from_dict(json.loads(json.dumps(groups.to_dict())), groups.by)
    assert again.names == groups.names
    assert codes(again, FRAME) == codes(groups, FRAME)


def test_whole_numbers_and_text_that_says_them_are_the_same_value():
    groups = learn_groups(columns_of_labels(np.array([1, 2, 1]), 3))
    assert groups.of(columns_of_labels(np.array(["2", "1"], dtype=object), 2)).tolist() == [[1], [0]]


def test_no_group_at_all_is_said():
    with pytest.raises(ValueError, match="every value is missing"):
        learn_groups(columns_of_labels(np.array([np.nan, np.nan]), 2))


@pytest.mark.parametrize("values", [np.zeros((3, 0)), np.zeros((2, 2, 2)), np.zeros(4), None, {"a": 1}])
def test_labels_of_another_shape_are_refused(values):
    with pytest.raises((ValueError, TypeError), match="groups must"):
        columns_of_labels(values, 3)


def test_numbers_that_differ_in_late_digits_have_names_that_differ():
    groups = learn_groups(columns_of_labels(np.array([12345.678, 12345.679, 12345.68]), 3))
    assert groups.names == ("group = 12345.678", "group = 12345.679", "group = 12345.68")


@pytest.mark.parametrize("sizes", [(4,), (4, 2), (40, 3), (3, 3, 3, 3)])
@pytest.mark.parametrize("options", [{}, {"least": 100, "missing": True}])
def test_whole_numbers_have_the_groups_that_the_same_labels_have_as_floats(sizes, options):
    """Small whole numbers are numbered, one number for each row; other labels are looked at one by one."""
    rng = np.random.default_rng(2)
    known, new = (rng.integers(0, np.array(sizes) + more, (5_000, len(sizes))) for more in (0, 2))
    groups = learn_groups(columns_of_labels(known, len(known)), **options)
    one_by_one = groups.of_labels(new.astype(float), len(new))
    np.testing.assert_array_equal(groups.of_labels(new, len(new)), one_by_one)
    np.testing.assert_array_equal(groups.of_new_labels(new, len(new)).of_rows(), one_by_one)


def test_columns_of_whole_numbers_are_found_by_their_names():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.integers(0, 3, 500), "b": rng.integers(0, 4, 500)})
    groups = learn_groups(columns_of_labels(frame, 500))
    there, back = (groups.of_labels(own, 500) for own in (frame, frame[["b", "a"]]))
    np.testing.assert_array_equal(there, back)
    np.testing.assert_array_equal(there, np.stack([frame["a"], frame["b"] + 3], axis=1))
    with pytest.raises(ValueError, match="groups must have the columns 'a', 'b', found 'a', 'c'"):
        groups.of_labels(frame.rename(columns={"b": "c"}), 500)
    with pytest.raises(ValueError, match=r"groups must have 2 column\(s\), as before, found 1"):
        groups.of_labels(frame[["a"]].to_numpy(), 500)


def test_passes_over_parts_learn_the_groups_of_the_whole():
    rng, n = np.random.default_rng(5), 900
    frame = pd.DataFrame(
        {
            "many": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n).round(2)),
            "few": rng.integers(0, 30, n).astype(float),
            "letter": rng.choice(["u", "v", "w", None], n),
            "flag": rng.random(n) < 0.5,
            "day": np.datetime64("2024-01-01") + rng.integers(0, 400, n).astype("timedelta64[D]"),
        }
    )
    columns = read_table(frame).columns
    parts = [[own.take(some) for own in columns] for some in np.array_split(rng.permutation(n), 7)]

    def over_all(questions):
        return added(questions, [parts_of(questions, part) for part in parts])

    askings = [(i, asks_values(own.name, own.kind, bins=4)) for i, own in enumerate(columns)]
    found = in_passes(askings, over_all)
    assert found == group_values(columns, bins=4)
    assert [own.starts is None for own in found] == [False, True, True, True, False]
    assert grouping_of(found, least=250).names == learn_groups(columns, bins=4, least=250).names
