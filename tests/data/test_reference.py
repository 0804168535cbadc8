import json

import numpy as np
import pandas as pd

from guardband.data.reference import CategorySummary, NumberSummary, Reference, cell_of
from guardband.data.table import read_table


def test_few_values_are_kept_whole_with_their_counts():
    summary = NumberSummary.learn("x", np.array([2.0, 1, 1, np.nan, 5]))
    assert (summary.count, summary.missing) == (5, 1)
    assert summary.knots == (1, 2, 5)
    assert summary.at_most == (2, 3, 4)


def test_many_values_are_kept_by_a_hundred_quantiles_counted_exactly():
    values = np.random.default_rng(0).standard_normal(10_000)
    summary = NumberSummary.learn("x", values)
    assert 90 <= len(summary.knots) <= 101
    assert list(summary.at_most) == [int((values <= knot).sum()) for knot in summary.knots]
    gaps = np.diff(summary.at_most)
    assert gaps.max() <= 110


def test_nothing_but_missing_values_is_a_summary():
    summary = NumberSummary.learn("x", np.full(4, np.nan))
    assert (summary.knots, summary.missing) == ((), 4)


def test_huge_numbers_do_not_overflow():
    assert len(NumberSummary.learn("x", np.array([-1.7e308, 1.7e308])).knots) == 2


def test_frequent_categories_come_first_and_rare_ones_together():
    summary = CategorySummary.learn("c", ["b", "a", "b", None])
    assert summary == CategorySummary("c", 4, 1, ("b", "a"), (2, 1), 0, (), ())
    many = CategorySummary.learn("c", [str(i) for i in range(500)])
    assert (len(many.categories), many.rare) == (200, 300)


def test_rare_categories_are_kept_by_the_cell_of_their_name():
    many = CategorySummary.learn("c", [str(i) for i in range(500)] + ["no"] * 2)
    rare = sorted(cell_of(str(i)) for i in range(500) if str(i) not in many.categories)
    assert sum(many.rare_counts) == many.rare == 301
    assert sorted(np.repeat(many.rare_cells, many.rare_counts).tolist()) == rare
    assert cell_of("Straße") == 2578  # on every machine


def test_a_reference_survives_json():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "c": ["x", None, "y"], "d": pd.date_range("2020", periods=3)})
    reference = Reference.learn(read_table(frame), np.array([1.0, 2.0, 3.0]))
    assert Reference.from_dict(json.loads(json.dumps(reference.to_dict()))) == reference
    assert [column.kind for column in reference.columns] == ["number", "category", "date"]
