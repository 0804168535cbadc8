"""Entities: labels that are the same in every table, splits that never divide one, and repeated rows."""

import numpy as np
import pandas as pd
import pytest

from guardband.data.entities import draws, entities_from, entities_of_labels, seed_of
from guardband.data.repeats import repeats_in
from guardband.data.split import split_rows
from guardband.data.table import read_table


def entities(frame, split_by):
    return entities_from(read_table(frame), frame, split_by)


def test_one_column_several_or_a_function_name_entities():
    frame = pd.DataFrame({"name": ["a", "a", "b", "b"], "year": [1, 2, 1, 1], "x": [0.0, 1.0, 2.0, 3.0]})
    assert entities(frame, "name").number.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert len(entities(frame, ["name", "year"]).every) == 3
    assert len(entities(frame, lambda X: X["x"] > 1).every) == 2
    assert entities(frame, ["name", "year"]).name == "combination of 'name', 'year'"


def test_a_label_is_the_same_in_every_table_and_for_large_numbers():
    first = entities(pd.DataFrame({"id": [123456789, 123456790]}), "id")
    second = entities(pd.DataFrame({"id": ["123456790", "other"]}), "id")
    assert len(first.every) == 2  # equal in single precision
    assert np.isin(first.labels, second.labels).tolist() == [False, True]


def test_a_missing_key_is_refused_with_its_row():
    with pytest.raises(ValueError, match=r"'id' has missing values.*row 1.*Fill them in"):
        entities(pd.DataFrame({"id": ["a", None]}), "id")


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no column 'storm' for split_by"):
        entities(pd.DataFrame({"x": [1.0, 2.0]}), "storm")


def test_one_row_of_each_is_drawn_evenly():
    own = entities_of_labels(np.repeat(np.arange(3), [1, 2, 5]), 8)
    rng = np.random.default_rng(0)
    drawn = np.array([own.one_row_each(rng.normal(size=8)) for _ in range(4000)])
    assert (np.diff(drawn, axis=1) > 0).all()
    assert (drawn[:, 0] == 0).all()
    counts = np.bincount(drawn[:, 2], minlength=8)[3:]
    assert counts.sum() == 4000
    assert (np.abs(counts - 800) < 5 * np.sqrt(800)).all()


def test_one_row_of_each_does_not_depend_on_how_a_table_is_divided():
    rng = np.random.default_rng(0)
    own, y = entities_of_labels(rng.integers(0, 90, 400), 400), rng.normal(size=400)
    parts = [slice(0, 1), slice(1, 250), slice(250, 400)]
    seed = sum(seed_of(own.labels[part], y[part]) for part in parts)
    random = np.concatenate([draws(seed, part.start, part.stop - part.start) for part in parts])
    least = [min(rows, key=lambda i: random[i]) for rows in (np.flatnonzero(own.labels == k) for k in own.every)]
    assert sorted(least) == own.one_row_each(y).tolist()


@pytest.mark.parametrize("size", [0.25, 3])
def test_a_split_divides_no_entity(size):
    own = entities_of_labels(np.random.default_rng(0).integers(0, 20, 300), 300)
    d1, d2 = split_rows(300, size, np.random.RandomState(0), own)
    assert not np.isin(own.labels[d1], own.labels[d2]).any()
    assert len(d1) + len(d2) == 300
    assert len(own.take(d2).every) == (5 if size == 0.25 else 3)


# ------------------------------------------------------------------------------------- repeated rows

RANDOM = np.random.default_rng(0)
N = 600
TABLES = {
    "numbers": RANDOM.normal(size=(N, 5)),
    "rounded": RANDOM.normal(size=(N, 4)).round(1),
    "categories": RANDOM.integers(0, 5, (N, 3)).astype(float),
    "mixed": np.c_[RANDOM.integers(0, 5, N), RANDOM.normal(size=N)],
    "switches": (RANDOM.random((N, 10)) < 0.5).astype(float),
    "rare switches": (RANDOM.random((N, 6)) < 0.02).astype(float),
    "one column": RANDOM.integers(0, 100, (N, 1)).astype(float),
}
TARGETS = {"numbers": RANDOM.normal(size=N), "counts": RANDOM.poisson(2, N).astype(float)}


def found(x, y):
    return repeats_in(read_table(x), y)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("table", TABLES)
def test_chance_explains_equal_rows_of_a_coarse_table(table, target):
    assert found(TABLES[table], TARGETS[target]) is None


@pytest.mark.parametrize("kinds", [8, 20])
def test_a_frequent_target_that_follows_from_the_inputs_is_no_copy(kinds):
    """Independent rows, four in ten of which have the list price of their product; then promises count each of them."""
    product = RANDOM.integers(0, kinds, N)
    y = 10.0 * product + np.where(RANDOM.random(N) < 0.4, 0.0, RANDOM.exponential(size=N))
    x = product[:, None].astype(float)
    assert found(x, y) is None
    again = np.r_[np.arange(N), RANDOM.choice(N, N // 4, replace=False)]
    assert found(x[again], y[again]) is not None  # copies are still found


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_was_repeated_is_seen(table, times):
    repeats = found(np.vstack([TABLES[table]] * times), np.tile(TARGETS["numbers"], times))
    assert repeats.extra == (times - 1) * N
    assert len(repeats.entities.every) == N
    assert f"{repeats.extra:,} of {times * N:,} rows" in repeats.in_words()


@pytest.mark.parametrize("table", TABLES)
def test_a_part_that_was_repeated_is_seen(table):
    rows = np.r_[np.arange(N), RANDOM.choice(N, N // 4, replace=False)]
    assert found(TABLES[table][rows], TARGETS["numbers"][rows]).extra == N // 4


BROUGHT = {
    "quarter": np.tile(["Q1", "Q2", "Q3", "Q4"], N),
    "moment": pd.Timestamp("2020-01-01") + pd.to_timedelta(RANDOM.permutation(10**7)[: 4 * N], unit="s"),
    "number": RANDOM.normal(size=4 * N),
    "row and a half": np.arange(4 * N) + 0.5,
    "row, some missing": np.where(RANDOM.random(4 * N) < 0.01, np.nan, np.arange(4 * N)),
}


@pytest.mark.parametrize("brought", BROUGHT)
def test_a_join_that_brings_a_column_is_seen(brought):
    frame = pd.DataFrame(np.repeat(TABLES["numbers"], 4, axis=0)).add_prefix("x").assign(brought=BROUGHT[brought])
    repeats = found(frame, np.repeat(TARGETS["numbers"], 4))
    assert (repeats.extra, repeats.besides) == (3 * N, ("brought",))
    assert "but for 'brought'" in repeats.in_words()


def test_empty_rows_do_not_hide_repeated_ones():
    empty = np.full((N // 4, 5), np.nan)
    rows = np.vstack([np.repeat(TABLES["numbers"], 4, axis=0), empty])
    repeats = found(rows, np.append(np.repeat(TARGETS["numbers"], 4), np.zeros(len(empty))))
    assert repeats.extra == 3 * N
    assert len(repeats.entities.every) == N + len(empty)


FUNCTIONS = {
    "one-hot": pd.get_dummies(pd.DataFrame(RANDOM.integers(0, 10, (N, 2)).astype(str))).to_numpy(float),
    "powers": RANDOM.integers(0, 30, (N, 1)) ** np.array([1.0, 2.0, 3.0]),
    "products": RANDOM.normal(size=(200, 6))[np.minimum(RANDOM.geometric(0.01, N), 199)],
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("table", FUNCTIONS)
def test_columns_that_follow_from_few_others_are_no_copies(table, target):
    assert found(FUNCTIONS[table], TARGETS[target]) is None


@pytest.mark.parametrize("table", ["numbers", "rounded"])
def test_copies_with_another_target_are_seen(table):
    x = TABLES[table][:, :4]
    repeats = found(np.vstack([x, x]), RANDOM.normal(size=2 * N))
    assert not repeats.rule.with_target
    assert len(repeats.entities.every) <= N


@pytest.mark.parametrize("number", ["row", "text"])
def test_rows_that_differ_in_a_number_of_their_own_are_equal(number):
    frame = pd.DataFrame(np.vstack([TABLES["numbers"]] * 2)).add_prefix("x")
    frame["id"] = RANDOM.permutation(2 * N) if number == "row" else [f"r{i}" for i in range(2 * N)]
    assert found(frame, np.tile(TARGETS["numbers"], 2)).extra == N


def test_twins_of_the_concrete_data_stay_as_they_are(data_dir):
    frame = pd.read_csv(data_dir / "concrete" / "Concrete_Data.csv")
    x, y = frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy(float)
    assert found(x, y) is None
    assert found(pd.concat([x, x]), np.tile(y, 2)).extra == 2 * len(y) - len(frame.drop_duplicates())
