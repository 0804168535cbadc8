"""Thresholds of groups beside ranks of their own rows, for rows by their groups or numbered, in numpy and torch."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.numbered_groups import NumberedGroups
from guardband.bands.predicted import Context
from guardband.bands.ranks import marginal_rank, pac_rank
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.overlapping_groups import pattern_thresholds
from guardband.data.group_sets import ROWS_AT_A_TIME
from guardband.data.grouping import NONE, UNKNOWN

LEVELS = Levels.of([0.5, 0.8])


def drawn(seed, columns, n=400):
    """Return scores, and the groups of rows: two of each column, and none in some rows."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.choice([NONE, 2 * j, 2 * j + 1], n, p=[0.2, 0.5, 0.3]) for j in range(columns)], axis=1)
    return rng.random(n), codes.astype(np.int64)


def every(columns):
    """Return all groups that a new row may have, with those that are not known."""
    axes = [[UNKNOWN, NONE, 2 * j, 2 * j + 1] for j in range(columns)]
    return np.stack([own.ravel() for own in np.meshgrid(*axes, indexing="ij")], axis=1)


def by_hand(scores, codes, new, rank):
    """Return the largest of the thresholds of a row's groups, infinite for none or for one that is not known."""
    own = {g: np.sort(scores[(codes == g).any(axis=1)]) for g in range(codes.max() + 1)}
    out = np.full((len(new), len(LEVELS)), np.inf)
    for i, row in enumerate(new):
        for j, level in enumerate(LEVELS.values):
            found = [own[g][rank(level, len(own[g])) - 1] for g in row if g >= 0]
            out[i, j] = np.inf if UNKNOWN in row else max(found, default=np.inf)
    return out


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("form", ["codes", "one column", "numbered", "torch"])
def test_a_row_has_the_largest_threshold_of_its_groups(columns, form):
    scores, codes = drawn(columns, columns)
    names = tuple("abcdef"[: 2 * columns])
    bases = [(PacCut(0.1), lambda level, n: pac_rank(level, n, 0.1 / len(names)))]
    if columns == 1:
        bases.append((MarginalCut(), marginal_rank))
    new = every(columns)
    for base, rank in bases:
        cut = GroupedCut(base, names, "kind", columns)
        assert cut.word == base.word
        arrays = cut.calibrate(scores, Context(group=codes), LEVELS, False).arrays
        expected = by_hand(scores, codes, new, rank)
        if form == "torch":
            arrays = {name: torch.from_numpy(array) for name, array in arrays.items()}
            found = cut.thresholds(arrays, Context(group=torch.from_numpy(new)), torch).numpy()
        elif form == "numbered":
            number = np.arange(2 * len(new)) % len(new)
            context = Context(group=NumberedGroups(number.astype(np.uint8), new))
            found, expected = cut.thresholds(cut.prepared(arrays, context), context), np.tile(expected, (2, 1))
        else:
            group = new[:, 0] if form == "one column" and columns == 1 else new
            found = cut.thresholds(arrays, Context(group=group))
        np.testing.assert_array_equal(found, expected)


def numbered_rows(new, first_last):
    """Return many rows, all of one kind but the first and the last, which are of another."""
    number = np.zeros(2 * ROWS_AT_A_TIME + 5, dtype=np.uint8)
    number[[0, -1][first_last]] = 1
    return NumberedGroups(number, new)


@pytest.mark.parametrize("place", [0, 1])
def test_patterns_are_solved_for_if_any_row_has_them(place):
    """One row of many has a pattern that is not known yet, the first or the last."""
    scores, codes = drawn(7, 2)
    cut = GroupedCut(MarginalCut(), tuple("abcd"), "kind", 2)
    known = Context(group=codes)
    members = np.array([[(row == g).any() for g in range(4)] for row in codes])
    patterns, number = np.unique(members, axis=0, return_inverse=True)
    kinds = np.array([[0, 2], [1, 3], [NONE, NONE], [UNKNOWN, 2]])
    asked = np.array([[True, False, True, False], [False, True, False, True]])
    wanted = np.stack([pattern_thresholds(scores, number, patterns, own, asked) for own in LEVELS.values], axis=1)
    arrays = cut.calibrate(scores, known, LEVELS, False).arrays
    cut.completed(arrays, scores, known, Context(group=kinds[:1]), LEVELS)  # the first kind alone
    assert len(arrays["pattern"]) == 1
    new = Context(group=numbered_rows(kinds, place))
    cut.completed(arrays, scores, known, new, LEVELS)
    assert len(arrays["pattern"]) == 2
    cut.completed(arrays, scores, known, new, LEVELS)  # all are known by now
    assert len(arrays["pattern"]) == 2
    found = cut.thresholds(cut.prepared(arrays, new), new)
    np.testing.assert_array_equal(found[[0, -1][place]], wanted[1])
    np.testing.assert_array_equal(found[1:-1], np.tile(wanted[0], (len(found) - 2, 1)))
    none = Context(group=NumberedGroups(np.array([2, 3], dtype=np.uint8), kinds))
    cut.completed(arrays, scores, known, none, LEVELS)
    assert np.isinf(cut.thresholds(cut.prepared(arrays, none), none)).all()
    complete = cut.calibrate_complete(scores, known, LEVELS, False)
    np.testing.assert_array_equal(cut.thresholds(complete.arrays, Context(group=kinds[:2])), wanted)


def test_a_promise_has_a_part_for_each_group_and_is_infinite_where_all_are():
    """Groups of 3, 4 and 12 rows at 50%, 80% and 90%: needed are 1, 4 and 9."""
    codes = np.repeat([0, 1, 2], [3, 4, 12])
    found = GroupedCut(MarginalCut(), ("a", "b", "c"), "kind").calibrate(
        np.arange(19.0), Context(group=codes), Levels.of([0.5, 0.8, 0.9]), True
    )
    promise = found.promise
    assert promise.by == "kind"
    assert promise.n_calibration == 19
    assert [part.promise.n_calibration for part in promise.parts] == [3, 4, 12]
    assert [part.name for part in promise.parts] == ["a", "b", "c"]
    assert [part.promise.whole_line for part in promise.parts] == [
        (False, True, True),
        (False, False, True),
        (False,) * 3,
    ]
    assert promise.whole_line == (False, False, False)
    assert all(part.promise.chosen_after for part in promise.parts)
    alone = GroupedCut(MarginalCut(), ("a", "b"), "kind").calibrate(
        np.arange(7.0), Context(group=codes[:7]), Levels.of([0.5, 0.8, 0.9]), False
    )
    assert alone.promise.whole_line == (False, False, True)


def test_groups_with_too_few_rows_are_told_with_their_numbers():
    codes = np.repeat([0, 1, 2], [3, 8, 1200])
    cut = GroupedCut(MarginalCut(), ("a", "b", "c"), "kind")
    (remark,) = cut.calibrate(np.arange(1211.0), Context(group=codes), Levels.of([0.5, 0.9]), False).remarks
    assert not remark.is_of_all
    assert remark.category is gb.InsufficientCalibrationWarning
    assert remark.in_words() == (
        "The intervals are infinite in 2 of 3 groups, because each needs at least 9 calibration rows: 'a (3)', "
        "'b (8)'. "
        'Add calibration rows, pool small groups (small_groups="pool", on the command line --small-groups pool), or '
        "choose a lower confidence level."
    )
    (remark,) = cut.calibrate(np.arange(1211.0), Context(group=codes), Levels.of([0.999, 0.9]), False).remarks
    assert "in 2 of 3 groups, because each needs at least 999 calibration rows: 'a (3)', 'b (8)'. " in remark.in_words()
    enough = GroupedCut(MarginalCut(), ("a", "b"), "kind")
    assert not enough.calibrate(np.arange(18.0), Context(group=np.repeat([0, 1], 9)), Levels.of(0.9), False).remarks


@pytest.mark.parametrize("columns", [1, 2])
def test_groups_with_infinite_scores_are_told_and_few_rows_are_not_blamed_on_them(columns):
    """Of 20 rows 19 are needed at 90%: one infinite score is allowed, two are not. A group of 3 has too few anyway."""
    codes = np.repeat([0, 1, 2], [20, 20, 3])
    scores = np.arange(43.0)
    scores[[0, 20, 21, 40]] = np.inf
    group = codes if columns == 1 else np.stack([codes, np.where(np.arange(43) % 2, 3, NONE)], axis=1)
    names = ("a", "b", "c", "d")[: 3 if columns == 1 else 4]
    if columns == 2:
        scores[0] = 0.0  # so that the fourth group has none but those of the second and third
    found = GroupedCut(MarginalCut(), names, "kind", columns).calibrate(
        scores, Context(group=group), Levels.of([0.5, 0.9]), False
    )
    few, odd = found.remarks
    assert "in 1 of" in few.in_words()
    assert "c (3)" in few.in_words()
    assert odd.category is gb.DegenerateBandWarning
    assert not odd.is_of_all
    assert odd.in_words().startswith("The intervals are infinite in 'b', because too many calibration rows there have")
    lines = [part.promise.whole_line for part in found.promise.parts]
    assert lines[:3] == [(False, False), (False, True), (False, True)]


def test_exactly_as_many_finite_scores_as_the_rank_asks_for_are_enough_for_groups_that_overlap():
    """Of 9 rows all are needed at 90%, of 10 rows too few are left if two are infinite."""
    group = np.stack([np.repeat([0, 1], [9, 10]), np.full(19, NONE)], axis=1)
    scores = np.arange(19.0)
    cut = GroupedCut(MarginalCut(), ("a", "b", "c"), "kind", 2)

    def lines(own):
        promise = cut.calibrate(own, Context(group=group), Levels.of(0.9), False).promise
        return [part.promise.whole_line[0] for part in promise.parts]

    assert lines(scores) == [False, False, True]
    assert lines(np.where(np.isin(np.arange(19), [8]), np.inf, scores)) == [True, False, True]
    assert lines(np.where(np.isin(np.arange(19), [18]), np.inf, scores)) == [False, True, True]


@pytest.mark.parametrize(
    ("codes", "columns"),
    [
        ([[0], [2]], 1),  # there are two groups, 0 and 1
        ([[0], [-3]], 1),
        ([[0, 1], [1, 0]], 1),
        ([[0], [1]], 2),
        ([[0, 1], [1, 2]], 2),
    ],
)
def test_groups_that_there_are_not_are_refused(codes, columns):
    cut = GroupedCut(PacCut(), ("a", "b"), "kind", columns)
    words = rf"group must hold {columns} number\(s\) of 2 groups for each row"
    with pytest.raises(ValueError, match=words):
        cut.calibrate(np.arange(2.0), Context(group=np.array(codes)), Levels.of(0.5), False)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_no_rows_at_all_leave_all_groups_infinite(names):
    cut = GroupedCut(MarginalCut(), names, "kind")
    found = cut.calibrate(np.empty(0), Context(group=np.empty((0, 1), dtype=np.int64)), Levels.of(0.5), False)
    assert found.promise.whole_line == (True,)
    unknown = np.array([[NONE], [UNKNOWN], [0]])
    assert np.isinf(cut.thresholds(found.arrays, Context(group=unknown))).all()


def test_overlapping_groups_on_average_are_solved_for_together_and_given_the_data_they_are_not():
    for columns, base, solves in ((1, MarginalCut(), False), (2, MarginalCut(), True), (2, PacCut(), False)):
        cut = GroupedCut(base, ("a", "b"), "kind", columns)
        assert cut.solves_patterns is solves
        group = np.tile([[0], [1]], (50, 1)) if columns == 1 else np.tile([[0, NONE], [NONE, 1]], (50, 1))
        arrays = cut.calibrate(np.arange(100.0), Context(group=group), Levels.of(0.8), False).arrays
        assert ("digit" in arrays) is solves
        assert ("group_threshold" in arrays) is not solves
        if not solves and isinstance(base, PacCut):
            assert cut.of_each.delta == base.delta / 2
            assert arrays["group_threshold"][2:, 0].tolist() == [
                2 * (pac_rank(Fraction(4, 5), 50, base.delta / 2) - 1) + g for g in range(2)
            ]
