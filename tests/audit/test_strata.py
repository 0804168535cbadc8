from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from guardband.audit.audit import audit
from guardband.audit.families import as_moment
from guardband.audit.strata import Bins, bins_of_column, bins_of_labels, bins_of_numbers, judge, stratum, without_noise
from guardband.bands.law import Law
from guardband.data.table import Column
from judged import evidence_of
from laws import SIGNIFICANCE


def test_ranges_hold_about_equal_counts_and_missing_values_apart():
    values = np.append(np.arange(100.0), np.nan)
    bins = bins_of_numbers(values, 5)
    assert bins.labels == ("0 to 19", "20 to 39", "40 to 59", "60 to 79", "80 to 99", "missing")
    assert np.bincount(bins.stratum_of).tolist() == [20, 20, 20, 20, 20, 1]


def test_few_values_are_groups_of_their_own():
    assert bins_of_numbers(np.array([1.0, 0.0, 1.0]), 5).labels == ("0", "1")
    assert bins_of_numbers(np.full(9, 3.0), 10).labels == ("3",)


def test_ties_never_straddle_two_ranges():
    values = np.repeat(np.arange(12.0), [1, 1, 1, 1, 60, 1, 1, 1, 1, 1, 1, 1])
    places = bins_of_numbers(values, 5).stratum_of
    assert all(len(np.unique(places[values == v])) == 1 for v in np.unique(values))


def test_infinite_widths_are_a_range():
    bins = bins_of_numbers(np.append(np.arange(50.0), np.full(10, np.inf)), 5)
    assert bins.labels[-1].endswith("∞")


def test_frequent_labels_others_and_missing():
    cells = ["a"] * 5 + ["b"] * 3 + ["c", "d", None]
    bins = bins_of_labels(cells, most=2)
    assert bins.labels == ("a", "b", "2 others", "missing")
    assert np.bincount(bins.stratum_of).tolist() == [5, 3, 2, 1]
    assert bins_of_labels(["10", "9", "10"]).labels == ("9", "10")
    assert bins_of_labels(["x" * 100, " "]).labels == ("(blank)", "x" * 47 + "…")


def test_a_column_is_numbers_or_categories():
    assert bins_of_column(Column("c", np.array(["x", None], dtype=object))).labels == ("x", "missing")
    assert bins_of_column(Column("d", np.array([0.0, 14_975.0])), as_moment).labels == (
        "1970-01-01",
        "2011-01-01",
    )
    assert as_moment(14_975.5) == "2011-01-01 12:00"


def test_strata_count_by_hand_and_have_the_band_of_their_size():
    covered = np.array([True, True, False, True, True, True])
    bins = bins_of_labels(["a", "a", "a", "b", "b", "b"])
    first, second = judge(bins, covered, Law((90, 99)), 0.01, 2)
    assert (first.n, first.covered, first.share) == (3, 2, 2 / 3)
    assert (second.n, second.covered) == (3, 3)
    law = betabinom(3, 90, 10)
    assert (first.low, first.high) == (law.ppf(0.005), law.ppf(0.995))


def test_a_flag_allows_for_the_number_of_groups():
    law, exact = Law((901, 1000)), betabinom(200, 901, 100)
    unlikely = int(exact.ppf(0.004)) - 1
    assert stratum("g", 200, unlikely, law, 0.01).flag == "low"
    assert stratum("g", 200, unlikely, law, 0.01 / 10).flag is None
    assert stratum("g", 200, 200, law, 0.01).flag == "high"
    assert stratum("g", 0, 0, law, 0.01).flag is None


def test_both_ways_together_mark_a_group_no_more_often_than_the_significance():
    law, exact = Law((901, 1000)), betabinom(2000, 901, 100)
    marked = [c for c in range(2001) if stratum("g", 2000, c, law, 0.01).flag]
    assert 0.009 < exact.pmf(marked).sum() <= 0.01


def test_chance_alone_marks_a_family_no_more_often_than_the_significance():
    audits = [audit(evidence_of(600, seed=seed)) for seed in range(40)]
    flagged = sum(any(f.flagged for f in own.families if f.key == key) for own in audits for key in ("width", "size"))
    assert flagged <= binom.isf(SIGNIFICANCE, 80, 0.01)


def test_a_group_that_is_covered_less_is_found():
    rng = np.random.default_rng(0)
    group = Column("shop", rng.choice(np.array(["north", "south"], dtype=object), 4000))
    evidence = evidence_of(4000, group=group)
    evidence.y[group.values == "north"] += 2.5
    (family,) = (family for family in audit(evidence).families if family.key == "group")
    assert family.title == "By shop"
    assert {s.label: s.flag for s in family.strata} == {"north": "low", "south": None}


@pytest.mark.parametrize(
    "values", [np.array([3.0, 1.0, 2.0] * 40), np.array(["2020-02", "2020-01", None] * 40, object)]
)
def test_time_is_in_order(values):
    evidence = replace(evidence_of(120), time=Column("when", values))
    (family,) = (family for family in audit(evidence).families if family.key == "time")
    labels = [s.label for s in family.strata]
    assert labels in (["1", "2", "3"], ["2020-01", "2020-02", "missing"])


def test_a_group_is_marked_if_and_only_if_it_lies_outside_the_range_shown():
    rng = np.random.default_rng(0)
    laws = [Law((901, 1000)), Law((92, 101)), Law(share=0.9), Law((95, 101), candidates=10, open=True), Law((19, 19))]
    seen = set()
    for _ in range(300):
        law, groups = laws[rng.integers(len(laws))], int(rng.integers(1, 40))
        sizes = rng.integers(0, 3000 // groups, groups)
        labels = np.repeat(np.arange(groups), sizes)
        bins = Bins(tuple(map(str, range(groups))), labels.astype(np.int8))
        shares = np.repeat(rng.uniform(0.7, 1, groups), sizes)
        for own in judge(bins, rng.random(len(labels)) < shares, law, 0.01, groups):
            tail = 0.01 / groups / 2
            low, high = law.p_value(own.covered, own.n) < tail, law.p_value_above(own.covered, own.n) < tail
            assert own.flag == ("low" if low else "high" if high else None)
            assert (own.flag is None) == (own.low <= own.covered <= own.high)
            seen.add(own.flag)
    assert seen == {None, "low", "high"}


def test_a_family_says_how_many_groups_its_ranges_allow_for():
    own = audit(evidence_of(600))
    compared = {family.key: (family.compared, len(family.strata)) for family in own.families}
    assert compared["width"] == compared["size"] == (10, 10)
    assert compared["column-0"] == compared["column-1"] == (10, 5)


def test_widths_that_differ_by_rounding_are_one_and_no_family():
    evidence = evidence_of(600)
    bands = evidence.intervals
    noisy = 2.0 + 1e-12 * np.random.default_rng(0).standard_normal(600)
    for level in (0.0, 1e6):  # far from zero the ends themselves are rounded more coarsely
        point = bands.point + level
        moved = replace(bands, lower=point - noisy / 2, point=point, upper=point + noisy / 2)
        keys = [family.key for family in audit(replace(evidence, intervals=moved)).families]
        assert "width" not in keys
        assert "size" in keys


def test_few_widths_with_rounding_are_groups_of_their_own():
    rng = np.random.default_rng(0)
    values = rng.choice([1.0, 2.0, np.inf], 500)
    noisy = values * (1 + 1e-13 * rng.standard_normal(500))
    bins = bins_of_numbers(without_noise(noisy), 10)
    assert bins.labels == ("1", "2", "∞")
    np.testing.assert_array_equal(bins.stratum_of, np.searchsorted([1, 2, np.inf], values))
    spread = rng.random(500)
    np.testing.assert_array_equal(without_noise(spread), spread)
    assert np.isinf(without_noise(np.full(3, np.inf))).all()
