"""Thresholds of overlapping groups by their definition, in fractions: slow, with nothing in common with the package."""

from fractions import Fraction
from itertools import combinations

import numpy as np


def by_definition(scores, members, level, every):
    """Return the thresholds of new rows by exact arithmetic: no score enters but as a fraction.

    The thresholds phi b of the quantile regression with the new row far above minimise
    sum_i pinball(score_i - phi_i b) - level phi b. A least value is taken where phi b meets as many scores as there are
    independent patterns. Of all such b the least phi b counts: a new score beyond it has the largest weight.
    """
    scores = [Fraction(float(score)) for score in scores]
    rows = [[Fraction(int(own)) for own in row] for row in members]
    rank, width = _rank(rows), range(len(rows[0]))
    columns = next(own for own in combinations(width, rank) if _rank([[r[j] for j in own] for r in rows]) == rank)
    short = [[row[j] for j in columns] for row in rows]
    corners = []
    for chosen in combinations(range(len(rows)), rank):
        b = _solution([short[i] for i in chosen], [scores[i] for i in chosen])
        if b is not None:
            gaps = [score - _dot(row, b) for score, row in zip(scores, short, strict=True)]
            corners.append((sum(level * gap if gap > 0 else (level - 1) * gap for gap in gaps), b))
    out = []
    for own in every:
        new = [Fraction(int(own[j])) for j in columns]
        if _rank([*rows, [Fraction(int(one)) for one in own]]) > rank or not _is_bounded(short, new, level):
            out.append(np.inf)
        else:
            out.append(float(min((value - level * _dot(new, b), _dot(new, b)) for value, b in corners)[1]))
    return out


def _is_bounded(rows, new, level):
    """Return whether no direction d lets the sum fall without end: that is decided on all edges of the arrangement."""
    r = len(new)
    for chosen in combinations(range(len(rows)), r - 1):
        normal = _normal([rows[i] for i in chosen], r)
        for d in ([], normal, [-own for own in normal]):
            slope = -level * _dot(new, d) if d else Fraction(0)
            for row in rows if d else []:
                rate = _dot(row, d)
                slope += -level * rate if rate < 0 else (1 - level) * rate
            if slope < 0:
                return False
    return True


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _normal(rows, r):
    """Return a vector at right angles to r - 1 rows, nothing but zeros if these are dependent."""
    out = []
    for j in range(r):
        minor = [[row[k] for k in range(r) if k != j] for row in rows]
        out.append((-1) ** j * _determinant(minor))
    return out


def _determinant(matrix):
    if not matrix:
        return Fraction(1)
    return sum(
        (
            (-1) ** j * matrix[0][j] * _determinant([row[:j] + row[j + 1 :] for row in matrix[1:]])
            for j in range(len(matrix))
            if matrix[0][j]
        ),
        Fraction(0),
    )


def _rank(rows):
    rows, rank = [list(row) for row in rows], 0
    for j in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][j] / rows[rank][j]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def _solution(matrix, right):
    """Return the solution by Cramer's rule."""
    whole = _determinant(matrix)
    if not whole:
        return None
    each = range(len(matrix))
    return [
        _determinant([[*row[:j], y, *row[j + 1 :]] for row, y in zip(matrix, right, strict=True)]) / whole for j in each
    ]
