import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from guardband.audit.drift import category_shift, chi_square_p_value, drift_of, ks_p_value, number_shift, score_shift
from guardband.data.reference import CategorySummary, NumberSummary, Reference
from guardband.data.table import read_table

RNG = np.random.default_rng(0)


def test_gap_and_p_value_are_those_of_the_two_sample_test():
    first, second = RNG.standard_normal(700), RNG.standard_normal(300) + 0.2
    exact = ks_2samp(first, second, method="asymp")
    shift = score_shift(first, second)
    assert shift.gap == pytest.approx(exact.statistic)
    assert shift.p_value == pytest.approx(exact.pvalue)
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


def test_chi_square_is_the_textbook_one_where_counts_are_large():
    table = np.array([[100.0, 200, 300], [150, 180, 270]])
    assert chi_square_p_value(*table) == pytest.approx(chi2_contingency(table, correction=False).pvalue)


def test_small_cells_are_joined():
    first, second = np.array([100.0, 1, 1, 1, 1, 1, 1]), np.array([100.0, 0, 1, 2, 0, 1, 2])
    joined = np.array([[100, 6], [100, 6]])
    assert chi_square_p_value(first, second) == pytest.approx(chi2_contingency(joined, correction=False).pvalue)
    assert chi_square_p_value(np.array([5.0]), np.array([9.0])) == 1


def test_categories_by_total_variation():
    before = CategorySummary.learn("c", ["a"] * 60 + ["b"] * 40)
    shift = category_shift(before, ["a"] * 30 + ["b"] * 40 + ["new"] * 30)
    assert shift.gap == pytest.approx(0.3)
    assert shift.detail in ("a: fewer", "other categories: more")
    assert category_shift(before, ["a"] * 60 + ["b"] * 40).detail == "no change"
    assert category_shift(before, [None] * 100).detail == "missing: more"


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
