"""Summaries add up: any cut of the rows into blocks, added in any grouping, tells a rule the same."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guardband as gb
from guardband.calibration import summary as module
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.summary import Summary
from guardband.methods.method import Request
from guardband.methods.registry import method_named, method_names
from predictions import predictions_for


def of_rows(first, last):
    """Return the summary of rows that are known by their numbers."""
    rows = np.arange(first, last)
    totals = {"count": np.array(len(rows)), "sums": np.array([rows.sum(), (rows**2).sum()])}
    return Summary(len(rows), totals, ({"row": rows, "pair": np.stack([rows, -rows], 1)},))


def assert_same(one, two):
    assert one.n == two.n
    assert one.totals.keys() == two.totals.keys()
    for name, total in one.totals.items():
        np.testing.assert_array_equal(total, two.totals[name])
    names = one.blocks[0].keys() if one.blocks else ()
    assert names == (two.blocks[0].keys() if two.blocks else ())
    for name in names:
        np.testing.assert_array_equal(one.rows(name), two.rows(name))


def grouped(parts, choose):
    """Return the sum of parts in their order, with brackets wherever ``choose`` puts them."""
    if len(parts) == 1:
        return parts[0]
    middle = choose(len(parts))
    return grouped(parts[:middle], choose) + grouped(parts[middle:], choose)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=15), st.randoms(use_true_random=False))
def test_the_sum_is_the_same_for_any_cut_and_any_brackets_and_keeps_the_order(lengths, random):
    ends = np.cumsum([0, *lengths])
    parts = [of_rows(first, last) for first, last in pairwise(ends)]
    whole = of_rows(0, ends[-1])
    for choose in (lambda k: 1, lambda k: k - 1, lambda k: random.randint(1, k - 1)):
        assert_same(grouped(parts, choose), whole)


def test_adding_leaves_the_parts_as_they_were():
    one, two = of_rows(0, 3), of_rows(3, 10)
    both = one + two
    assert_same(one, of_rows(0, 3))
    assert_same(two, of_rows(3, 10))
    assert_same(both, of_rows(0, 10))


def test_successive_rows_of_one_array_are_joined_without_a_copy():
    rows = np.arange(40).reshape(20, 2)
    parts = [Summary(len(own), {}, ({"pair": own},)) for own in (rows[:7], rows[7:8], rows[8:])]
    whole = (parts[0] + parts[1] + parts[2]).joined().rows("pair")
    np.testing.assert_array_equal(whole, rows)
    assert np.shares_memory(whole, rows)
    for order in ([0, 2], [1, 0], [0, 0]):
        own = sum((parts[i] for i in order[1:]), parts[order[0]]).joined().rows("pair")
        np.testing.assert_array_equal(own, np.concatenate([parts[i].rows("pair") for i in order]))
        assert not np.shares_memory(own, rows)


def many(lengths):
    total = of_rows(0, lengths[0])
    for length in lengths[1:]:
        total = total + of_rows(total.n, total.n + length)
    return total


@pytest.mark.parametrize("lengths", [[7], [5, 4, 1], [1] * 50], ids=str)
def test_a_summary_survives_as_arrays(lengths):
    own = many(lengths)
    arrays = own.to_arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = Summary.from_arrays(arrays)
    assert_same(again, own)
    assert_same(again + of_rows(own.n, own.n + 4), own + of_rows(own.n, own.n + 4))


def test_a_summary_of_totals_alone_survives_as_arrays():
    own = Summary(5, {"covered": np.array([1, 2])}) + Summary(4, {"covered": np.array([0, 3])})
    assert_same(Summary.from_arrays(own.to_arrays()), own)
    assert own.totals["covered"].tolist() == [1, 5]


@pytest.mark.parametrize(
    "lengths",
    [
        [1] * 4096,
        [4096, *[1] * 4096],
        [*range(1000, 0, -1), 1],
        [*range(1, 120)],
        list(np.random.default_rng(0).integers(1, 100, 300)),
        [2**i for i in range(12, -1, -1)] * 3,
    ],
    ids=["ones", "one large, then ones", "falling", "rising", "random", "halving"],
)
def test_rows_are_copied_a_logarithm_of_times(lengths, monkeypatch):
    copied = []

    def joined(blocks, plain=module._joined):
        copied.append(sum(map(module._length, blocks)))
        return plain(blocks)

    monkeypatch.setattr(module, "_joined", joined)
    total = many(lengths)
    assert sum(copied) <= 2 * math.log2(total.n) * total.n
    assert len(total.blocks) <= module.TOGETHER * (math.log2(total.n) + 1)


EVERY = pytest.mark.parametrize("name", method_names())


def rule_of(name, **asked):
    return method_named(name).rule(Request.of([0.9, 0.5], **asked))


def assert_same_calibration(rule, one, two):
    assert one.n == two.n
    for name, total in one.totals.items():
        np.testing.assert_allclose(total, two.totals[name], rtol=1e-12)
    ours, theirs = rule.calibrate(one), rule.calibrate(two)
    assert ours.arrays.keys() == theirs.arrays.keys()
    for name, array in ours.arrays.items():
        np.testing.assert_array_equal(array, theirs.arrays[name])
    assert ours.promise == theirs.promise
    assert ours.remarks == theirs.remarks


@EVERY
@pytest.mark.parametrize("n", [12, 700])
def test_many_blocks_and_added_parts_calibrate_as_one_block_does(name, n):
    rule, nothing = rule_of(name), gb.Context()
    predicted, y = predictions_for(rule, n)
    whole = rule.summarise(predicted, y, nothing)
    rng = np.random.default_rng(1)
    for pieces in (2, 5, n):
        inner = np.sort(rng.choice(np.arange(1, n), pieces - 1, replace=False))
        cuts = [slice(a, b) for a, b in zip([0, *inner], [*inner, n], strict=True)]
        parts = [rule.summarise(predicted.rows(rows), y[rows], nothing) for rows in cuts]
        assert_same_calibration(rule, whole, grouped(parts, lambda k: k // 2))
        assert_same_calibration(rule, whole, Summary.from_arrays(grouped(parts, lambda k: k - 1).to_arrays()))


@EVERY
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_blocks_of_several_processes_calibrate_as_one_block_does(name):
    rule, nothing = rule_of(name), gb.Context()
    predicted, y = predictions_for(rule, 300)
    halves = [[(predicted.rows(own), y[own], nothing) for own in some] for some in (BEFORE, AFTER)]
    other = Calibrated.from_blocks(rule, halves[1]).summary
    both = Calibrated.from_blocks(rule, halves[0], gather=lambda own: [None, own, other])
    assert_same_calibration(rule, Calibrated.from_blocks(rule, [(predicted, y, nothing)]).summary, both.summary)


BEFORE, AFTER = [slice(0, 70), slice(70, 71)], [slice(71, 71), slice(71, 300)]


def test_no_rows_at_all_are_refused():
    rule = rule_of("conf-nn")
    predicted, y = predictions_for(rule, 5)
    nothing = (predicted.rows(slice(0)), y[:0], gb.Context())
    for blocks in ([], [nothing], [nothing, nothing]):
        with pytest.raises(ValueError, match="There are no calibration rows"):
            Calibrated.from_blocks(rule, blocks)
