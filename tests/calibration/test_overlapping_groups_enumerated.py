"""Thresholds for groups that overlap beside all that could be: every basis is tried, in whole numbers.

The constants of ``overlapping_groups.py`` are made so small that tables of a few rows are sampled, read in blocks, seen
through windows and solved for from a few points, as those of a million rows are.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from guardband.calibration import overlapping_groups
from guardband.calibration.overlapping_groups import pattern_thresholds
from guardband.calibration.pattern_exact import exact_thresholds

BEYOND = 10**6
"""In place of an infinite score."""
WHOLE = 6
"""So many times a solution is whole: matrices of zeros and ones with up to four rows have determinants of up to 3."""


def enumerated(scores, members, level, asked):
    """Return so many times the thresholds of whole scores as ``WHOLE`` says, those that are infinite beyond all others.

    Of all b that meet as many scores as there are independent patterns, those count at which the loss of the rows less
    ``level`` times the new threshold is least: the least and the largest threshold of these are returned, ``(2, Q)``.
    """
    rank = np.linalg.matrix_rank(members)
    columns = next(
        list(own)
        for own in combinations(range(members.shape[1]), rank)
        if np.linalg.matrix_rank(members[:, own]) == rank
    )
    short, most, least = members[:, columns], level.numerator, level.numerator - level.denominator
    rows = np.array(list(combinations(range(len(scores)), rank)))
    rows = rows[np.abs(np.linalg.det(short[rows])) > 0.5]
    corners = np.rint(WHOLE * np.linalg.solve(short[rows], scores[rows][..., None])[..., 0]).astype(np.int64)
    gaps = WHOLE * scores - corners @ short.T
    losses = np.where(gaps > 0, most * gaps, least * gaps).sum(axis=1)
    edges = np.unique(short, axis=0)
    edges = [edges[list(own)] for own in combinations(range(len(edges)), rank - 1)]
    edges = np.array([[(-1) ** j * _det(np.delete(own, j, axis=1)) for j in range(rank)] for own in edges])
    edges = np.concatenate([edges, -edges])
    rates = edges @ short.T
    slopes = np.where(rates < 0, -most * rates, -least * rates).sum(axis=1)
    out = []
    for new in asked:
        move = corners @ new[columns]
        bounded = (slopes - most * (edges @ new[columns]) >= 0).all()
        known = np.linalg.matrix_rank(np.vstack([members, new])) == rank
        loss = losses - most * move
        best = move[loss == loss.min()]
        out.append((best.min(), best.max()) if bounded and known else (WHOLE * BEYOND,) * 2)
    return np.array(out).T


def _det(matrix):
    return round(np.linalg.det(matrix)) if len(matrix) else 1


def table(rng):
    """Return whole scores with ties, groups that overlap, some of them rare or in no row, and what is asked."""
    n, groups = int(rng.integers(1, 31)), int(rng.integers(1, 5))
    shares = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], groups, p=[0.05, 0.25, 0.3, 0.2, 0.2])
    members = (rng.random((n, groups)) < shares).astype(int)
    members[0, 0] = 1
    most = int(rng.choice([3, 9, 999]))
    scores = rng.integers(-most, most, n) * (1 + members[:, -1])
    scores[rng.random(n) < rng.choice([0, 0.1])] = BEYOND
    asked = np.array([[(i >> j) & 1 for j in range(groups)] for i in range(1, 2**groups)])
    return scores, members, asked


SMALL = {
    "few": {"SAMPLE": 5, "ROWS_AT_A_TIME": 4, "NEAR": 1, "MOST_ENTRIES": 40, "WINDOW": 0.2},
    "narrow": {
        "SAMPLE": 7,
        "ROWS_AT_A_TIME": 3,
        "NEAR": 2,
        "MOST_ENTRIES": 1,
        "WINDOW": 0.1,
        "WHOLE": 2,
        "FEW_PATTERNS": 2,
    },
    "as they are": {},
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("small", SMALL)
def test_thresholds_are_the_best_of_all_that_could_be(small, seed, monkeypatch):
    """A threshold that is a score of its pattern is so to the last bit. No whole numbers are needed."""
    monkeypatch.setattr(overlapping_groups, "exact_thresholds", None)
    for name, value in SMALL[small].items():
        monkeypatch.setattr(overlapping_groups, name, value)
    rng = np.random.default_rng(seed)
    for case in range(60):
        scores, members, asked = table(rng)
        level = Fraction(int(rng.integers(1, 10)), 10)
        some = members.any(axis=1)
        wanted, largest = enumerated(scores[some], members[some], level, asked)
        patterns, pattern = np.unique(members, axis=0, return_inverse=True)
        patterns = np.concatenate([patterns, ~patterns[:1] & 1])  # of no row
        scale = 2.0 ** rng.integers(-60, 60)
        real = np.where(scores == BEYOND, np.inf, scores * 0.1) * scale
        found = pattern_thresholds(real, pattern.reshape(-1), patterns.astype(bool), level, asked.astype(bool)) / scale
        ends = np.abs(wanted) < BEYOND / 2
        assert np.isinf(found).tolist() == (~ends).tolist(), case
        one = ends & (wanted == largest)
        assert found[one] == pytest.approx(wanted[one] / (10 * WHOLE), rel=1e-12, abs=1e-11), case
        assert (found[ends] >= wanted[ends] / (10 * WHOLE) - 1e-11).all(), case
        assert (found[ends] <= largest[ends] / (10 * WHOLE) + 1e-11).all(), case
        gaps = np.where(scores == BEYOND, np.inf, scores * 0.1)[:, None] - found[ends]
        near = (members[:, None] == asked[ends]).all(axis=2) & (np.abs(gaps) < 1e-11)
        assert (gaps[near] == 0).all(), case


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_give_the_least_of_the_best_wherever_they_begin(seed):
    rng = np.random.default_rng(seed)
    for case in range(60):
        scores, members, asked = table(rng)
        members[~members.any(axis=1), 0] = 1
        scores[np.flatnonzero(scores == BEYOND)[1:]] = 0  # the difference of two would be finite here alone
        level = Fraction(int(rng.integers(1, 10)), 10)
        wanted, _ = enumerated(scores, members, level, asked)
        rank = np.linalg.matrix_rank(members)
        asked, wanted = zip(
            *[own for own in zip(asked, wanted, strict=True) if np.linalg.matrix_rank([*members, own[0]]) == rank],
            strict=True,
        )
        patterns, pattern = np.unique(members, axis=0, return_inverse=True)
        patterns = np.concatenate([patterns, 1 - patterns[:1]])  # of no row
        columns = overlapping_groups._independent(patterns[:-1].astype(float))[0]
        scale = 2.0 ** rng.integers(-60, 60)
        real = np.where(scores == BEYOND, np.inf, scores * scale)
        near = rng.normal(0, 100 * scale, len(patterns))
        found = exact_thresholds(
            real, pattern.reshape(-1), patterns[:, columns], level, np.array(asked)[:, columns], near
        )
        for one, own in zip(found, wanted, strict=True):
            if abs(own) > BEYOND / 2:
                assert one == np.inf, case
            else:  # the next larger float, but for one that is a score
                exact = Fraction(int(own), WHOLE) * Fraction(scale)
                assert Fraction(float(one)) >= exact, case
                assert one - float(exact) <= 1e-15 * scale * 4000, case


def test_rows_that_are_left_out_are_farther_away_than_solutions_may_be(monkeypatch):
    for name, value in {**SMALL["few"], "WHOLE": 4}.items():
        monkeypatch.setattr(overlapping_groups, name, value)
    rng, partly, wholly = np.random.default_rng(9), 0, 0
    for _ in range(200):
        scores, members, _ = table(rng)
        scores = np.where(scores == BEYOND, np.inf, scores)
        patterns, pattern = np.unique(members, axis=0, return_inverse=True)
        pattern, has = pattern.reshape(-1), patterns.any(axis=1)
        phi, counts = patterns[has].astype(float), np.bincount(pattern, minlength=len(patterns))[has]
        problems = overlapping_groups._Problems(scores, pattern, phi, has, counts, Fraction(4, 5))
        for take in range(1, len(scores)):
            chosen = problems._chosen(take)
            if chosen is not None:
                rows, reach = chosen
                assert len(np.unique(rows)) == len(rows)
                out = np.setdiff1d(np.flatnonzero(has[pattern]), rows)
                own = problems.number[pattern[out]]
                assert (np.abs(scores[out] - (phi @ problems.centre)[own]) >= reach[own] * (1 - 1e-9)).all()
                partly, wholly = partly + bool(len(out)), wholly + bool(len(out) and np.isinf(reach).any())
    assert min(partly, wholly) > 50


def test_all_rows_within_reach_of_the_centre_are_kept_wherever_a_guess_was(monkeypatch):
    for name, value in SMALL["few"].items():
        monkeypatch.setattr(overlapping_groups, name, value)
    rng, moved = np.random.default_rng(10), 0
    members = rng.random((150, 4)) < 0.5
    members[:, 0] |= ~members.any(axis=1)
    patterns, pattern = np.unique(members, axis=0, return_inverse=True)
    phi, pattern = patterns.astype(float), pattern.reshape(-1)
    counts, has, scores = np.bincount(pattern), np.ones(len(phi), dtype=bool), rng.standard_normal(150)
    problems = overlapping_groups._Problems(scores, pattern, phi, has, counts, Fraction(4, 5))
    for _ in range(100):
        guess = rng.standard_normal(4)
        problems._look_at(guess)
        far = np.abs(scores - (phi @ problems.centre)[pattern])
        assert np.isin(np.flatnonzero(far < problems.reach), problems.rows).all()
        moved += bool((problems.centre != guess).any() and len(problems.rows) < 150 and problems.reach > 0)
    assert moved > 10
