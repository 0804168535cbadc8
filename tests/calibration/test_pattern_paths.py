"""Paths from one solution to the next beside their definition: every basis is tried, in whole numbers."""

from itertools import combinations, product

import numpy as np
import pytest

from guardband.calibration import pattern_paths
from guardband.calibration.pattern_paths import Points, Solutions, farthest, follow, follow_all

WHOLE = 6
"""So many times an inverse is whole: matrices of zeros and ones with up to four rows have determinants of up to 3."""
PARTS = 64
"""So many times numbers of rows and moves of right-hand sides are whole."""


def problem(rng, unit=1, offset=0):
    """Return whole points of which no two solutions have a point in common but by chance, and where paths start."""
    while True:
        r, m = int(rng.integers(1, 5)), int(rng.integers(5, 11))
        phi = (rng.random((m, r)) < 0.5).astype(float)
        if np.linalg.matrix_rank(phi) == r and phi.any(axis=1).all():
            break
    most, count = float(rng.integers(1, 10)), rng.integers(1, 6, m) / unit
    points = Points(rng.integers(-(2**20), 2**20, m) + offset, phi, count, most - 10, most)
    basis = points.basis_near(np.argsort(np.abs(points.score)))
    return points, Solutions.through(points, basis)


def solutions(points, start, towards):
    """Return all bases that are best shortly before the end, with thresholds and weights at the end, as dictionaries.

    All is in whole numbers, which floats hold. Where a weight is at a limit at the end, its rate says on which side of
    it it was before.
    """
    m, r = points.phi.shape
    rows = np.array(list(combinations(range(m), r)))
    rows = rows[np.abs(np.linalg.det(points.phi[rows])) > 0.5]
    inverse = np.rint(WHOLE * np.linalg.inv(points.phi[rows])).astype(int)
    phi, score, count = points.phi.astype(int), points.score.astype(int), points.count
    most, least = int(points.most), int(points.least)
    multiplier = np.einsum("bij,bj->bi", inverse, score[rows])
    gap = WHOLE * score - multiplier @ phi.T
    inside = (rows[:, :, None] == np.arange(m)).any(axis=1)
    assert (gap[~inside] != 0).all()
    weights = np.where(inside, 0, np.where(gap > 0, most, least) * count)
    times = 2 * PARTS * WHOLE
    rest = times // WHOLE * (start.total(points)[0] + towards - weights @ phi)
    weight = np.einsum("bi,bij->bj", rest, inverse)
    rate = np.einsum("i,bij->bj", times // WHOLE * towards, inverse)
    low, high = times * least * count[rows], times * most * count[rows]
    best = ((weight > low) | ((weight == low) & (rate <= 0))) & ((weight < high) | ((weight == high) & (rate >= 0)))
    return [
        (dict(zip(rows[b].tolist(), (weight[b] / times).tolist(), strict=True)), multiplier[b] / WHOLE)
        for b in np.flatnonzero(best.all(axis=1))
    ]


def moves(rng, r, n=6):
    return rng.integers(-50, 51, (n, r)) * rng.choice([0.25, 0.5, 2], (n, 1)) * (rng.random((n, r)) < 0.7)


def compared(points, start, towards, found):
    """Check where paths ended; return how many did, how many went beyond all points, and how many moved."""
    for q in range(len(towards)):
        wanted = solutions(points, start, towards[q])
        assert found.endless[q] == (not wanted)
        assert found.ended[q] == bool(wanted)
        if wanted:
            own = dict(zip(found.basis[q].tolist(), found.weight[q].tolist(), strict=True))
            one = [(weight, b) for weight, b in wanted if weight.keys() == own.keys()]
            assert len(one) == 1
            assert own == pytest.approx(one[0][0], rel=1e-9, abs=1e-9)
            assert found.multiplier[q] == pytest.approx(one[0][1], rel=1e-12, abs=1e-6)
    moved = (found.multiplier != start.multiplier).any(axis=1)
    return int(found.ended.sum()), int(found.endless.sum()), int((moved & found.ended).sum())


def test_paths_end_where_no_other_basis_is_better_or_beyond_all_points():
    rng, ended = np.random.default_rng(0), np.zeros(3, dtype=int)
    for _ in range(300):
        unit = int(rng.choice([1, 16]))
        points, start = problem(rng, unit)
        towards = moves(rng, points.phi.shape[1]) / unit
        found = follow(points, start.repeated(len(towards)), towards, 100)
        ended += compared(points, start, towards, found)
    assert ended.min() > 100


def test_paths_that_leave_the_nearest_points_end_there_too(monkeypatch):
    """Thresholds start at some distance from zero, which is no distance from the start."""
    monkeypatch.setattr(pattern_paths, "NEAREST", 1)
    rng, ended = np.random.default_rng(1), np.zeros(3, dtype=int)
    for _ in range(200):
        points, start = problem(rng, offset=int(rng.integers(-(2**20), 2**20)))
        towards = moves(rng, points.phi.shape[1])
        ended += compared(points, start, towards, follow_all(points, start, towards, 100))
    assert ended.min() > 100


def test_a_path_is_left_once_its_thresholds_moved_too_far():
    rng, left = np.random.default_rng(2), np.zeros(2, dtype=int)
    for _ in range(100):
        points, start = problem(rng)
        towards, within = moves(rng, points.phi.shape[1]), 2.0 ** rng.integers(16, 22)
        free = follow(points, start.repeated(len(towards)), towards, 100)
        found = follow(points, start.repeated(len(towards)), towards, 100, within)
        moved = np.array([largest(b - start.multiplier[0]) for b in found.multiplier])
        assert (moved <= within).all()
        assert (free.ended | ~found.ended).all()
        for name in ("basis", "weight", "multiplier"):
            assert np.array_equal(getattr(free, name)[found.ended], getattr(found, name)[found.ended])
        left += [int((free.ended & ~found.ended).sum()), int(found.ended.sum())]
    assert left.min() > 50


def largest(b):
    return max(abs(sum(own)) for own in product(*[(0.0, one) for one in b]))


def test_the_farthest_threshold_is_that_of_some_pattern():
    b = np.random.default_rng(3).standard_normal((50, 4)) * [[1, 1, 0.1, 3]]
    assert farthest(b) == pytest.approx([largest(own) for own in b])


@pytest.mark.parametrize("up", [1, -1])
def test_a_path_takes_no_more_pivots_than_it_may(up):
    """One group and one row a score: from the sixth score, halfway, each two units of weight lead to another score."""
    points = Points(np.arange(1.0, 11), np.ones((10, 1)), np.ones(10), -1.0, 1.0)
    start = Solutions.through(points, np.array([5]))
    for pivots in range(4):
        found = follow(points, start, np.array([[-up * (2.0 * pivots + 0.5)]]), pivots)
        assert found.ended.all()
        assert found.multiplier.tolist() == [[6 + up * pivots]]
        assert found.weight == pytest.approx(-up * 0.5)
        assert not follow(points, start, np.array([[-up * (2.0 * pivots + 0.5)]]), pivots - 1).ended.any()


def test_a_start_goes_through_its_basis_with_all_other_points_on_their_sides():
    rng = np.random.default_rng(4)
    for _ in range(50):
        points, start = problem(rng)
        own, rest = start.basis[0], np.setdiff1d(np.arange(len(points.score)), start.basis[0])
        threshold = points.phi @ start.multiplier[0]
        assert threshold[own] == pytest.approx(points.score[own], rel=1e-12, abs=1e-6)
        assert start.gap[0, rest] == pytest.approx((points.score - threshold)[rest])
        assert start.side[0, rest].tolist() == np.sign(points.score - threshold)[rest].tolist()
        assert not start.gap[0, own].any()
        assert not start.side[0, own].any()
        assert start.inverse[0] @ points.phi[own] == pytest.approx(np.eye(len(own)), abs=1e-12)
        halfway = [(points.least * count + points.most * count) / 2 for count in points.count[own]]
        assert start.weight[0].tolist() == halfway
        weight = [points.count[i] * (points.most if points.score[i] > threshold[i] else points.least) for i in rest]
        assert start.total(points)[0] == pytest.approx(weight @ points.phi[rest] + halfway @ points.phi[own])


def test_some_of_the_points_are_these_points():
    points = Points(np.arange(4.0), np.eye(4), np.arange(4.0) + 1, -1.0, 1.0)
    some = points.rows(np.array([2, 0]))
    assert (some.score.tolist(), some.count.tolist(), some.phi.argmax(axis=1).tolist()) == ([2, 0], [3, 1], [2, 0])


def test_points_of_a_basis_are_independent_where_rounding_is_large():
    """The last of 36 rows is farther than 1e-9 from all sums of the others, but not much: then all come once more."""
    i, j = np.indices((36, 37))
    rows = ((i == j) | ((i < j) & ((j - i) % 2 == 1) & (j < 36))).astype(float)
    points = Points(np.zeros(73), np.concatenate([rows, rows, np.eye(37)[-1:]]), np.ones(73), -1.0, 1.0)
    assert points.basis_near(np.arange(73)).tolist() == [*range(36), 72]
    assert points.basis_near(np.arange(72)) is None
