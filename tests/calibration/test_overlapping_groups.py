"""Thresholds for groups that overlap, beside their definition in exact arithmetic and beside whole numbers."""

from fractions import Fraction

import numpy as np
import pytest

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.bands.ranks import marginal_rank, order_statistic
from guardband.calibration import overlapping_groups, pattern_paths
from guardband.calibration.cut import MarginalCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.overlapping_groups import pattern_thresholds
from guardband.calibration.pattern_exact import exact_thresholds
from pattern_definition import by_definition


def solved(scores, members, level, new):
    """Return the thresholds of new patterns, given those of rows."""
    patterns, pattern = np.unique(members, axis=0, return_inverse=True)
    return pattern_thresholds(np.asarray(scores, float), pattern.reshape(-1), patterns, level, np.atleast_2d(new))


EVERY = np.array([[(i >> j) & 1 for j in range(3)] for i in range(1, 8)], dtype=bool)


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_are_those_of_the_definition_with_ties_and_without(seed):
    """All patterns of three groups, those that no calibration row has too; small samples, so that some are infinite."""
    rng = np.random.default_rng(seed)
    n, level = int(rng.integers(1, 10)), Fraction(int(rng.integers(1, 10)), 10)
    members = rng.random((n, 3)) < 0.6
    members = members[members.any(axis=1)]
    if not len(members):
        return
    scores = rng.integers(0, 4, len(members)) * 1.0 if seed % 2 else rng.standard_normal(len(members))
    expected = by_definition(scores, members, level, EVERY)
    assert solved(scores, members, level, EVERY) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_groups_apart_get_exactly_the_thresholds_of_their_own_ranks():
    """Hundreds of random cases: levels, sizes, ties, infinite scores, groups too small."""
    rng = np.random.default_rng(1)
    for case in range(300):
        groups, level = int(rng.integers(1, 6)), Fraction(int(rng.integers(1, 100)), 100)
        own = rng.integers(0, groups, int(rng.integers(1, 120)))
        scores = np.round(rng.standard_normal(len(own)), int(rng.integers(0, 3)) if case % 3 else 12)
        if case % 5 == 0:
            scores[rng.random(len(own)) < 0.1] = np.inf
        apart = np.eye(groups, dtype=bool)
        used = np.unique(own)
        expected = [
            order_statistic(scores[own == group], marginal_rank(level, int((own == group).sum()))) for group in used
        ]
        assert solved(scores, apart[own], level, apart[used]).tolist() == expected, case


@pytest.mark.parametrize("change", [lambda own: own, lambda own: np.round(own, 2), lambda own: np.exp(own)])
def test_many_rows_give_what_whole_numbers_give(change, monkeypatch):
    """More rows than a first guess looks at, so that it is improved in a window, and rows outside of it are checked."""
    rng = np.random.default_rng(2)
    n = 2 * overlapping_groups.SAMPLE
    members = np.column_stack([np.ones(n, bool), rng.random(n) < 0.3, rng.random(n) < 0.002])
    scores = change(np.abs(rng.standard_normal(n)) * (1 + members @ np.arange(3)))
    patterns, pattern = np.unique(members, axis=0, return_inverse=True)
    arguments = scores, pattern.reshape(-1), patterns, Fraction(9, 10), patterns
    exact = exact_thresholds(*arguments, np.zeros(len(patterns)))
    monkeypatch.setattr(overlapping_groups, "exact_thresholds", None)
    assert pattern_thresholds(*arguments) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("n", [200, 3 * overlapping_groups.SAMPLE])
@pytest.mark.parametrize("digits", [1, 15])
def test_paths_among_the_nearest_points_end_where_those_among_all_points_do(n, digits, monkeypatch):
    """To the last bit, ties or not; with one point for each group, most paths leave the nearest points."""
    rng = np.random.default_rng(5)
    members = rng.random((n, 6)) < 0.4
    members[:, 0] |= ~members.any(axis=1)
    scores = np.round(np.abs(rng.standard_normal(n)) * (1 + members[:, 1]), digits)
    found = []
    for nearest in (1, pattern_paths.NEAREST, n):
        monkeypatch.setattr(pattern_paths, "NEAREST", nearest)
        found.append(solved(scores, members, Fraction(9, 10), np.unique(members, axis=0)).tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("n", [50, 3 * overlapping_groups.SAMPLE])
def test_rows_of_no_group_count_for_nothing(n):
    rng = np.random.default_rng(6)
    members = rng.random((n, 3)) < 0.4
    scores = np.where(members.any(axis=1), rng.standard_normal(n), rng.choice([-np.inf, 0.0, 5.0, np.inf], n))
    some = members.any(axis=1)
    new = np.unique(members[some], axis=0)
    assert not some.all()
    expected = solved(scores[some], members[some], Fraction(8, 10), new).tolist()
    assert solved(scores, members, Fraction(8, 10), new).tolist() == expected


def test_a_group_that_only_training_rows_had_is_not_taken_for_another_of_its_column():
    """Calibration rows have one group of each column, and new ones a second."""
    rng = np.random.default_rng(7)
    cut = GroupedCut(MarginalCut(), ("a", "b", "x"), columns=2)
    codes = np.where(rng.random((200, 2)) < 0.5, [[0, 2]], -1)
    known, levels = Context(group=codes), Levels.of(0.9)
    found = cut.calibrate_complete(rng.standard_normal(200), known, levels, False)
    new = Context(group=np.array([[0, 2], [1, 2], [1, -1]]))
    assert np.isinf(cut.thresholds(found.arrays, new)[:, 0]).tolist() == [False, True, True]


@pytest.mark.parametrize("n", [300, 60_000])
def test_to_calibrate_for_the_own_rows_is_to_calibrate_and_complete(n):
    rng = np.random.default_rng(8)
    codes = np.where(rng.random((n, 3)) < 0.5, np.arange(3), -1)
    codes[0, 2] = -2
    cut, scores = GroupedCut(MarginalCut(), ("a", "b", "c"), columns=3), rng.random(n)
    known, levels = Context(group=codes), Levels.of([0.8, 0.9])
    one, two = cut.calibrate_complete(scores, known, levels, False), cut.calibrate(scores, known, levels, False)
    cut.completed(two.arrays, scores, known, known, levels)
    assert one.arrays.keys() == two.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, two.arrays[name])
    assert one.promise == two.promise


def test_most_problems_need_no_whole_numbers(monkeypatch):
    """They are there for what pivots leave unsolved, and take a hundred times as long."""
    monkeypatch.setattr(overlapping_groups, "exact_thresholds", None)
    rng = np.random.default_rng(3)
    for n in (5, 50, 500, 50_000):
        members = rng.random((n, 5)) < 0.5
        members[:, 0] |= ~members.any(axis=1)
        for scores in (rng.standard_normal(n), rng.integers(0, 20, n) * 0.1):
            solved(scores, members, Fraction(9, 10), members[:40])


def test_a_pattern_that_no_calibration_row_has_is_solved_for_later():
    """Rows of two groups together are new; a row of a third group, which no row was in, has no threshold."""
    rng = np.random.default_rng(4)
    cut = GroupedCut(MarginalCut(), ("a", "b", "c"), columns=3)
    codes = np.where(rng.random((200, 1)) < 0.5, [[0, -1, -1]], [[-1, 1, -1]])
    scores, levels = rng.standard_normal(200), Levels.of(0.9)
    found = cut.calibrate(scores, Context(group=codes), levels, False)
    new = np.array([[0, -1, -1], [0, 1, -1], [-1, -1, 2], [-1, -1, -1]])
    assert np.isinf(cut.thresholds(found.arrays, Context(group=new))[1:, 0]).all()
    cut.completed(found.arrays, scores, Context(group=codes), Context(group=new), levels)
    a, both, c, none = cut.thresholds(found.arrays, Context(group=new))[:, 0]
    members = codes >= 0
    assert [a, both] == solved(scores, members, Fraction(9, 10), [[True, False, False], [True, True, False]]).tolist()
    assert np.isfinite(both)
    assert both > a
    assert np.isinf([c, none]).all()


def test_patterns_that_nothing_balances_are_infinite():
    """Too few rows of a group, only infinite scores in one, or a pattern outside of all combinations of those seen."""
    members = np.array([[1, 0]] * 40 + [[1, 1]] * 3, dtype=bool)
    scores = np.arange(43.0)
    alone, both = solved(scores, members, Fraction(9, 10), [[True, False], [True, True]])
    assert np.isfinite(alone)
    assert np.isinf(both)
    scores[40:] = np.inf
    assert np.isinf(solved(scores, members, Fraction(9, 10), [[True, True]])).all()
    assert np.isinf(solved(scores, members[:, :1] & [[True, False]], Fraction(9, 10), [[True, True]])).all()


def test_what_paths_do_not_find_comes_from_whole_numbers(monkeypatch):
    rng = np.random.default_rng(5)
    members = rng.random((60, 3)) < 0.5
    members[:, 0] |= ~members.any(axis=1)
    scores, asked = rng.standard_normal(60), [[True, False, False], [True, True, False], [True, True, True]]
    wanted = solved(scores, members, Fraction(9, 10), asked)
    found = overlapping_groups._Problems.thresholds
    for lost in ([1], [0, 1, 2]):

        def some(self, new, lost=lost):
            out, sure = found(self, new)
            out[lost], sure[lost] = np.nan, False
            return out, sure

        monkeypatch.setattr(overlapping_groups._Problems, "thresholds", some)
        np.testing.assert_allclose(solved(scores, members, Fraction(9, 10), asked), wanted)


def test_what_is_not_sure_stays_if_it_is_right_but_for_rounding(monkeypatch):
    """So that a threshold does not depend, in its last digit, on which way it was found."""
    rng = np.random.default_rng(5)
    members = rng.random((60, 3)) < 0.5
    members[:, 0] |= ~members.any(axis=1)
    scores, found = rng.standard_normal(60), overlapping_groups._Problems.thresholds
    wanted = solved(scores, members, Fraction(9, 10), EVERY)
    off = 1 + np.array([0, 1e-15, -1e-15, 1e-13, -1e-13, -0.5, 0.5])
    monkeypatch.setattr(
        overlapping_groups._Problems, "thresholds", lambda self, new: (off * found(self, new)[0], np.zeros(7, bool))
    )
    again = solved(scores, members, Fraction(9, 10), EVERY)
    assert (again[:3] == (off * wanted)[:3]).all()
    np.testing.assert_allclose(again[3:], wanted[3:], rtol=1e-15)


def test_a_solution_counts_only_where_every_pattern_stays_within_its_reach():
    rng = np.random.default_rng(6)
    own = problems(3)
    own.phi = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]])
    for reach in (np.array([1.0, 2, 0.5, 1, 3]), np.full(5, 1.0), np.array([np.inf, 1, np.inf, 1, 1])):
        multiplier = rng.standard_normal((500, 3)) * rng.choice([0.1, 1, 3], (500, 1))
        wanted = [all(abs(move) <= far for move, far in zip(own.phi @ m, reach, strict=True)) for m in multiplier]
        assert 0 < sum(wanted) < 500
        assert own._is_within(multiplier, reach).tolist() == wanted


def test_a_solution_is_no_nearer_than_rounding_of_the_centre_to_rows_that_are_left_out():
    own = problems(2, centre=np.array([1e6, -2e6]))
    multiplier = 1 - np.array([[2e-6, 0], [0, 2e-6], [4e-6, 0], [0, 4e-6]]) - [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert own._is_within(multiplier, np.ones(2)).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("scores", "through", "sure"),
    [
        ([1e6, 1.0, 1e-6], 1, True),  # rounding of 1e6 does not reach from 1 to 1e-6
        ([1e6, 1e-6, 2e-6], 1, False),
        ([1e6, 1e-6, 0.0], 1, False),
        ([1e6, 1e-6, -1e-6], 2, False),
        ([1e6, 2e4, 2e4 + 1e-6], 1, True),  # whichever is below, the difference is no share of them
        ([1e6, 0.0, 2e4], 1, True),
        ([1e6, 1e3, 1e3 + 1e-6], 1, False),
        ([np.inf, 1.0, 1 + 1e-12], 1, True),
        ([np.inf, 1.0, 1e-13, 2e-13], 2, False),
    ],
)
def test_small_scores_within_rounding_of_large_ones_are_not_sure(scores, through, sure):
    scores = np.array(scores)
    gaps = np.where(np.isinf(scores), 1e4, scores)
    points = pattern_paths.Points(gaps, np.ones((len(scores), 1)), np.ones(len(scores)), -1.0, 1.0)
    always = np.ones(1, dtype=bool)
    found = pattern_paths.Followed(np.array([[through]]), np.zeros((1, 1)), gaps[[[through]]], always, ~always)
    assert problems(1)._is_sure(points, scores, found).tolist() == [sure]


def test_how_far_points_are_is_not_sure_where_the_centre_is_large():
    """Gaps are then what remains of large numbers."""
    scores, always = np.array([1.0, 1 + 1e-6]), np.ones(1, dtype=bool)
    points = pattern_paths.Points(np.array([0.0, 1e-6]), np.ones((2, 1)), np.ones(2), -1.0, 1.0)
    found = pattern_paths.Followed(np.array([[0]]), np.zeros((1, 1)), np.zeros((1, 1)), always, ~always)
    sure = [problems(1, centre=np.array([at]))._is_sure(points, scores, found)[0] for at in (1.0, -1e6)]
    assert sure == [True, False]


@pytest.mark.parametrize(("small", "found"), [(1e8, True), (1e-3, False)])
def test_a_small_difference_of_large_scores_is_no_threshold_if_small_scores_count(small, found):
    scores, always = np.array([1e8 + 1e-3, 1e8, small]), np.ones(1, dtype=bool)
    points = pattern_paths.Points(scores, np.array([[1.0, 1], [1, 0], [1, 0]]), np.ones(3), -1.0, 1.0)
    ended = pattern_paths.Followed(np.array([[0, 1]]), np.zeros((1, 2)), np.zeros((1, 2)), always, ~always)
    read = problems(2)._read(points, scores, ended, np.array([[0.0, 1.0]]), np.full(2, np.inf))
    assert np.isfinite(read).tolist() == [found]


@pytest.mark.parametrize(("seed", "n"), [(425, 300), (500, 1000)])
def test_a_tied_point_on_the_other_side_by_rounding_moves_no_threshold(seed, n):
    """Scores of one digit, of which sums of some are others: thresholds go through more points than a basis has."""
    rng = np.random.default_rng(seed)
    members = rng.random((n, 3)) < 0.5
    members[:, 0] |= ~members.any(axis=1)
    scores = np.round(np.abs(rng.standard_normal(n)) * (1 + members @ np.arange(3)), 1)
    patterns, pattern = np.unique(members, axis=0, return_inverse=True)
    arguments = scores, pattern.reshape(-1), patterns, Fraction(9, 10), patterns
    exact = exact_thresholds(*arguments, np.zeros(len(patterns)))
    np.testing.assert_allclose(pattern_thresholds(*arguments), exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("large", [1e12, -1e12, 1e15, 1e100])
@pytest.mark.parametrize("many", [1, 3])
def test_scores_that_are_far_larger_than_others_hide_none_of_these(large, many):
    """They did when rounding was told from ties by a share of the largest score."""
    rng = np.random.default_rng(many)
    for _ in range(6):
        n, level = int(rng.integers(7, 10)), Fraction(int(rng.integers(1, 10)), 10)
        members = rng.random((n, 2)) < 0.6
        members[:, 0] |= ~members.any(axis=1)
        scores = np.abs(rng.standard_normal(n))
        scores[rng.choice(n, many, replace=False)] *= large
        found = solved(scores, members, level, EVERY[:3, :2])
        assert found.tolist() == pytest.approx(by_definition(scores, members, level, EVERY[:3, :2]), rel=1e-12)


@pytest.mark.parametrize("powers", [9, 12, 14, 16, 20, 30])
def test_scores_that_spread_evenly_over_many_powers_of_ten_hide_none(powers):
    """They did without a jump between large and small ones: rounding of large scores is larger than small scores."""
    rng = np.random.default_rng(powers)
    for case in range(20):
        n, level = int(rng.integers(8, 13)), Fraction(int(rng.integers(1, 10)), 10)
        members = rng.random((n, 2)) < 0.6
        members[:, 0] |= ~members.any(axis=1)
        scores = 10 ** rng.uniform(-powers / 2, powers / 2, n)
        found = solved(scores, members, level, EVERY[:3, :2])
        wanted = by_definition(scores, members, level, EVERY[:3, :2])
        assert found.tolist() == pytest.approx(wanted, rel=overlapping_groups.DIGITS), case


def test_equal_scores_that_are_far_larger_cancel_and_leave_small_ones():
    """The largest score that a program writes, say, in rows of two patterns: their difference is exactly zero."""
    rng = np.random.default_rng(11)
    for case in range(20):
        members = EVERY[rng.integers(0, 3, 10)][:, :2]
        members[:2] = EVERY[:2, :2]
        scores = np.where(rng.random(10) < 0.4, 1e20, rng.random(10))
        level = Fraction(int(rng.integers(3, 9)), 10)
        found = solved(scores, members, level, EVERY[:3, :2])
        wanted = by_definition(scores, members, level, EVERY[:3, :2])
        assert found.tolist() == pytest.approx(wanted, rel=overlapping_groups.DIGITS), case


@pytest.mark.parametrize("powers", [300, 600])
def test_scores_as_far_apart_as_floats_are_give_no_warning(powers):
    rng = np.random.default_rng(powers)
    for case in range(5):
        members = EVERY[rng.integers(0, 3, 9)][:, :2]
        members[:2] = EVERY[:2, :2]
        scores = 10 ** rng.uniform(-powers / 2, powers / 2, 9)
        found = solved(scores, members, Fraction(1, 2), EVERY[:3, :2])
        wanted = by_definition(scores, members, Fraction(1, 2), EVERY[:3, :2])
        assert found.tolist() == pytest.approx(wanted, rel=overlapping_groups.DIGITS), case


def problems(groups, **known):
    """Return problems of so many groups, each of which is a pattern, with nothing but what a function of them needs."""
    own = object.__new__(overlapping_groups._Problems)
    own.phi, own.centre = np.eye(groups), np.zeros(groups)
    for name, value in known.items():
        setattr(own, name, value)
    return own


@pytest.mark.parametrize("others", [[], [-9.0], [9.0], [-9.0, 9.0], [-9.0, -8.0, 8.0, 9.0]])
@pytest.mark.parametrize(("one", "two", "both"), [(0.1, 0.2, 0.3), (0.7, 0.1, 0.8)])
def test_a_threshold_that_is_a_score_but_for_rounding_is_that_score(one, two, both, others):
    """0.1 + 0.2 is more than 0.3, and 0.7 + 0.1 less than 0.8; a third row of the basis counts for nothing here."""
    assert one + two != both
    scores, phi = np.array([one, two, 0.0, both, *others]), np.concatenate([np.eye(3), np.ones((1 + len(others), 3))])
    points = pattern_paths.Points(scores, phi, np.ones(len(scores)), -1.0, 1.0)
    asked, always = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), np.ones(2, dtype=bool)
    found = pattern_paths.Followed(np.array([[0, 1, 2]] * 2), np.zeros((2, 3)), np.zeros((2, 3)), always, ~always)
    read = problems(3)._read(points, scores, found, asked, np.full(3, np.inf))
    assert read.tolist() == [both, one]


def test_what_is_taken_for_rounding_depends_on_the_scores_of_a_threshold_alone():
    scores = np.array([1e13, 0.1, 0.2, 0.5])
    points = pattern_paths.Points(scores, np.array([[1.0, 0], [0, 1], [0, 1], [0, 1]]), np.ones(4), -1.0, 1.0)
    always = np.ones(2, dtype=bool)
    found = pattern_paths.Followed(np.array([[0, 2]] * 2), np.zeros((2, 2)), np.zeros((2, 2)), always, ~always)
    assert problems(2)._read(points, scores, found, np.eye(2), np.full(2, np.inf)).tolist() == [1e13, 0.2]


@pytest.mark.parametrize(
    ("ended", "endless", "reach", "threshold"),
    [
        (True, False, [np.inf, np.inf], 1.0),
        (True, False, [5.0, np.inf], 1.0),
        (True, False, [2.0, np.inf], np.nan),  # it moved farther than rows that are left out
        (False, False, [np.inf, np.inf], np.nan),
        (False, True, [np.inf, np.inf], np.inf),
        (False, True, [5.0, np.inf], np.nan),  # rows that are left out may be beyond
    ],
)
def test_only_what_holds_for_all_rows_is_a_threshold(ended, endless, reach, threshold):
    scores = np.array([1.0, 2.0])
    points = pattern_paths.Points(scores, np.eye(2), np.ones(2), -1.0, 1.0)
    each = np.array([[0, 1]]), np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([ended]), np.array([endless])
    read = problems(2)._read(points, scores, pattern_paths.Followed(*each), np.array([[1.0, 0.0]]), np.array(reach))
    assert read.tolist() == pytest.approx([threshold], nan_ok=True)


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_solution_whose_weights_are_off_by_one_row_is_none(off, monkeypatch):
    """Three rows of one group, the one in the middle in the basis with a weight that balances the others, or not."""
    own, level = problems(1, most=4.0, least=-1.0), 5.0
    points = pattern_paths.Points(np.array([-1.0, 0.0, 1.0]), np.ones((3, 1)), np.ones(3), own.least, own.most)
    weight = np.array([[-(own.most + own.least) + level * off]])
    always = np.ones(1, dtype=bool)
    found = pattern_paths.Followed(np.array([[1]]), weight, np.zeros((1, 1)), always, ~always)
    monkeypatch.setattr(overlapping_groups, "follow", lambda *_: found)
    assert (own._base(points, np.zeros(1)) is None) == bool(off)


def test_what_no_lot_of_points_solves_is_left():
    """With as many points as there are rows, no more are tried."""
    tried = []
    own = problems(2, n=1000)
    own._solved = lambda new, take: tried.append(take)
    found, sure = own.thresholds(np.ones((3, 2)))
    assert np.isnan(found).all()
    assert not sure.any()
    assert tried == [96, 384, 1536]
