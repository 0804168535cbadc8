import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom, ks_2samp

from guardband.audit.drift import (
    ENOUGH,
    category_shift,
    cells_p_value,
    drift_of,
    fisher_p_value,
    ks_p_value,
    number_shift,
    score_shift,
)
from guardband.data.reference import CategorySummary, NumberSummary, Reference
from guardband.data.table import read_table
from laws import SIGNIFICANCE

RNG = np.random.default_rng(0)


def exact_ks_p_value(gap, n, m):
    """Return the chance of a gap at least as large, by the ways through the grid of both counts, without ties."""
    chances, p = {(0, 0): 1.0}, 0.0
    for left in range(n + m, 0, -1):
        step = {}
        for (i, j), chance in chances.items():
            for to, share in (((i + 1, j), (n - i) / left), ((i, j + 1), (m - j) / left)):
                step[to] = step.get(to, 0.0) + chance * share
        p += sum(chance for (i, j), chance in step.items() if abs(i / n - j / m) >= gap - 1e-12)
        chances = {(i, j): c for (i, j), c in step.items() if c and abs(i / n - j / m) < gap - 1e-12}
    return p


@pytest.mark.parametrize(("n", "m"), [(1, 30), (5, 5), (3, 40), (20, 20), (12, 35), (50, 20), (40, 40)])
def test_p_value_of_the_gap_is_never_below_the_exact_one_and_close_for_equal_sizes(n, m):
    gaps = {abs(i / n - j / m) for i in range(n + 1) for j in range(m + 1)}
    for gap in sorted(gaps)[:: max(1, len(gaps) // 40)]:
        exact = exact_ks_p_value(gap, n, m)
        if 1e-9 < exact < 0.1:
            assert exact <= ks_p_value(gap, n, m)
            if n == m == 40 and exact > 1e-3:
                assert ks_p_value(gap, n, m) <= 1.3 * exact


def test_gap_and_p_value_are_those_of_the_two_sample_test():
    first, second = RNG.standard_normal(700), RNG.standard_normal(300) + 0.2
    exact = ks_2samp(first, second, method="exact")
    shift = score_shift(first, second)
    assert shift.gap == pytest.approx(exact.statistic)
    assert exact.pvalue <= shift.p_value <= 1.2 * exact.pvalue
    assert shift.detail == "errors are larger"
    assert score_shift(second, first).detail == "errors are smaller"
    assert score_shift(first, first).p_value == 1


def test_scores_may_be_infinite():
    first = np.append(RNG.random(50), np.inf)
    assert score_shift(first, first).gap == 0


def test_numbers_from_a_summary_lose_at_most_a_hundredth_of_the_gap():
    first, second = RNG.standard_normal(5000), RNG.standard_normal(2000) + 0.3
    shift = number_shift(NumberSummary.learn("x", first), second)
    exact = ks_2samp(first, second).statistic
    assert exact - 0.02 <= shift.gap <= exact + 1e-12
    assert shift.p_value < 1e-10
    assert shift.detail == "values are higher"


def test_columns_of_few_values_are_compared_exactly():
    first, second = RNG.integers(0, 5, 400).astype(float), RNG.integers(1, 5, 300).astype(float)
    assert number_shift(NumberSummary.learn("x", first), second).gap == pytest.approx(ks_2samp(first, second).statistic)


def test_more_missing_values_are_a_shift():
    first = RNG.standard_normal(1000)
    second = first.copy()
    second[:200] = np.nan
    shift = number_shift(NumberSummary.learn("x", first), second)
    assert (shift.detail, shift.p_value < 1e-10, shift.gap) == ("more are missing", True, 0.2)
    assert number_shift(NumberSummary.learn("x", second), first).detail == "fewer are missing"


def test_nothing_present_is_nothing_to_compare():
    empty = np.full(3, np.nan)
    shift = number_shift(NumberSummary.learn("x", empty), empty)
    assert (shift.gap, shift.p_value, shift.detail) == (0, 1, "nothing to compare")


def streets(rng, kinds, rows, even):
    """Return street names, all as frequent or some far more frequent than others."""
    shares = np.ones(kinds) if even else 1 / np.arange(1, kinds + 1)
    return [f"street {i}" for i in rng.choice(kinds, rows, p=shares / shares.sum())]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize(("first", "second"), [(60, 20), (400, 400), (1500, 30)])
@pytest.mark.parametrize("kinds", [2, 50, 500])
def test_categories_without_drift_are_seldom_flagged(kinds, first, second, even):
    rng, replications = np.random.default_rng(kinds + first + even), 100
    p_values = [
        category_shift(
            CategorySummary.learn("c", streets(rng, kinds, first, even)), streets(rng, kinds, second, even)
        ).p_value
        for _ in range(replications)
    ]
    for level in (0.01, 0.1):
        assert np.sum(np.array(p_values) <= level) <= binom.isf(SIGNIFICANCE, replications, level)


def test_p_values_of_cells_are_exact_over_all_divisions_of_few_rows():
    """All ways to divide nine rows of three categories between samples of five and four, weighted as they come."""
    both, m = np.array([4, 3, 2]), 4
    ways = [(a, b, m - a - b) for a in range(5) for b in range(4) if 0 <= m - a - b <= 2]
    chances = np.array([math.prod(math.comb(int(t), s) for t, s in zip(both, way, strict=True)) for way in ways])
    p_values = np.array([cells_p_value(both - np.array(way), np.array(way)) for way in ways])
    for level in np.unique(p_values):
        # draws decide between equal statistics: give them their standard error
        assert chances[p_values <= level].sum() / chances.sum() <= level * (1 + 4 / math.sqrt(ENOUGH))


@pytest.mark.parametrize("kinds", [2, 50, 500, 5000])
def test_categories_that_have_moved_are_found(kinds):
    rng = np.random.default_rng(0)
    before = CategorySummary.learn("c", streets(rng, kinds, 4000, True))
    moved = streets(rng, kinds, 2000, True)
    moved[:400] = ["street 1"] * 400
    assert category_shift(before, moved).p_value < 1e-6
    other = [f"{street} in town" for street in streets(rng, kinds, 1000, True)]
    assert category_shift(before, other).p_value < 1e-3


def test_many_small_moves_are_found_together():
    rng = np.random.default_rng(0)
    before = CategorySummary.learn("c", streets(rng, 400, 4000, True))
    assert category_shift(before, [f"street {i}" for i in (400 * rng.random(2000) ** 1.4).astype(int)]).p_value < 0.001


def test_p_values_of_categories_are_the_same_in_every_run():
    rng = np.random.default_rng(0)
    before, now = CategorySummary.learn("c", streets(rng, 50, 300, True)), streets(rng, 50, 300, True)
    assert category_shift(before, now) == category_shift(before, now)


def test_one_cell_or_no_row_is_nothing_to_compare():
    assert cells_p_value(np.array([5, 0]), np.array([9, 0])) == 1
    assert cells_p_value(np.array([5, 3]), np.array([0, 0])) == 1


def test_more_rows_than_numpy_divides_are_compared_cell_by_cell():
    first = np.array([600_000_000, 400_000_000])
    assert cells_p_value(first, first // 1000) == 1
    assert cells_p_value(first, np.array([590_000, 410_000])) < 1e-10


@pytest.mark.parametrize("table", [(3, 20, 0, 15), (0, 40, 9, 30), (5, 50, 5, 50), (1, 1000, 3, 20)])
def test_missing_shares_are_compared_by_fishers_test(table):
    first, n, second, m = table
    law = hypergeom(n + m, first + second, m)
    exact = 2 * min(law.cdf(second), law.sf(second - 1))
    assert fisher_p_value(first, n, second, m) == pytest.approx(min(1, exact))


@pytest.mark.parametrize(("first", "second"), [(20, 20), (60, 25), (200, 200), (1000, 30)])
@pytest.mark.parametrize("missing", [0.02, 0.3])
def test_numbers_with_missing_values_are_seldom_flagged_without_drift(first, second, missing):
    rng, replications, p_values = np.random.default_rng(first + second), 1000, []
    for _ in range(replications):
        before, now = rng.random(first), rng.random(second)
        before[rng.random(first) < missing] = np.nan
        now[rng.random(second) < missing] = np.nan
        p_values.append(number_shift(NumberSummary.learn("x", before), now).p_value)
    for level in (0.01, 0.1):
        assert np.sum(np.array(p_values) <= level) <= binom.isf(SIGNIFICANCE, replications, level)


def test_categories_by_total_variation():
    before = CategorySummary.learn("c", ["a"] * 60 + ["b"] * 40)
    shift = category_shift(before, ["a"] * 30 + ["b"] * 40 + ["new"] * 30)
    assert shift.gap == pytest.approx(0.3)
    assert shift.detail in ("a: fewer", "many values that training did not have")
    assert category_shift(before, ["a"] * 60 + ["b"] * 40).detail == "no change"
    assert category_shift(before, [None] * 100).detail == "missing: more"


def test_dates_and_new_categories_are_said_as_such():
    days = NumberSummary.learn("day", np.arange(100.0), "date")
    assert number_shift(days, np.arange(100.0, 200.0)).detail == "later dates"
    assert number_shift(days, np.arange(-100.0, 0.0)).detail == "earlier dates"
    many = CategorySummary.learn("c", [f"c{i}" for i in range(5000)])
    assert many.rare
    new = [f"new {i}" for i in range(5000)]
    assert category_shift(many, new).detail == "many values that training rarely or never had"
    few = CategorySummary.learn("c", ["a", "b"])
    assert category_shift(few, new).detail == "many values that training did not have"
    assert category_shift(many, ["c0"] * 9).detail in ("c0: more", "values that were rare in training: fewer")


def test_columns_are_flagged_with_their_number_allowed_for():
    X, y = RNG.standard_normal((2000, 40)), RNG.standard_normal(2000)
    reference = Reference.learn(read_table(X), y)
    new = RNG.standard_normal((1000, 40))
    assert drift_of(reference, read_table(new), y, None, None, 0.01).drifted == ()
    new[:, 7] += 0.5
    found = drift_of(reference, read_table(new), y, None, None, 0.01)
    assert found.drifted == ("x7",)
    assert found.columns[0].name == "x7"
    assert found.scores is None


def test_dates_and_booleans_are_compared_where_they_are_text():
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=200), "open": [True, False] * 100})
    text = frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d"), open=frame["open"].map({True: "yes", False: "no"}))
    y = np.ones(200)
    found = drift_of(Reference.learn(read_table(frame), y), read_table(text), y, None, None, 0.01)
    assert [shift.gap for shift in found.columns] == [0, 0]


def test_without_a_reference_inputs_are_not_compared():
    found = drift_of(None, read_table(np.ones((3, 1))), np.ones(3), None, None, 0.01)
    assert found.columns is None
    assert found.drifted == ()
    assert found.to_dict()["columns"] is None


def test_p_value_of_no_gap_is_one():
    assert ks_p_value(0.0, 10, 10) == 1
