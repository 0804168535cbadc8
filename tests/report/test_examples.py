import numpy as np
import pytest

from guardband.audit.strata import Family
from guardband.report.examples import example_rows, telling_columns


def family(place):
    return Family("column-0", "c", (), 1, np.asarray(place, dtype=np.int8))


def test_columns_that_explain_the_prediction_come_first_and_names_of_rows_last():
    rng = np.random.default_rng(0)
    point = rng.standard_normal(400)
    noise, halves, fifths = rng.integers(0, 5, 400), point > 0, np.digitize(point, [-1, -0.3, 0.3, 1])
    order, told = telling_columns(
        point, [family(o) for o in (noise, noise, halves, fifths)], [True, False, False, False]
    )
    assert order == [3, 2, 1, 0]
    assert told == 2


def test_many_groups_of_few_rows_explain_nothing():
    rng = np.random.default_rng(0)
    point = rng.standard_normal(12)
    order, told = telling_columns(point, [family(range(12)), family(point > 0)], [False, False])
    assert order == [1, 0]
    assert told == 2
    assert telling_columns(np.ones(12), [family(range(12))], [True]) == ([0], 1)


def test_examples_are_a_narrow_a_typical_and_a_wide_row():
    width = np.random.default_rng(0).permutation(101.0 + np.arange(101))
    found = dict(example_rows(width, np.zeros(101)))
    assert [width[found[kind]] for kind in ("narrow", "typical", "wide")] == [106, 151, 196]


def test_rows_of_one_width_differ_by_their_prediction_and_infinite_ones_are_no_example():
    point = np.arange(101.0)
    assert example_rows(np.full(101, 2.0), point) == [("low", 5), ("middle", 50), ("high", 95)]
    assert example_rows(np.full(101, np.inf), point) == []
    assert example_rows(np.array([np.inf, 3.0]), np.zeros(2)) == [("middle", 1)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_give_as_many_examples_as_differ(n):
    assert len(example_rows(np.arange(1.0, n + 1), np.zeros(n))) == (3 if n == 3 else 1)
