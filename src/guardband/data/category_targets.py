"""Columns of many categories, described by what the target is like in each.

A training row is described by the rows of its category that come before it in a random order. Described by all others
it would give itself away: where another column tells the category too, they lack just its own target. New rows are
described by all training rows, and so are training rows, but for themselves, where networks that did not see them
predict them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from guardband.data.asking import AskCategories, answered
from guardband.data.codes import Categories, IndexCode, RobustCode, TargetCode, most_frequent
from guardband.data.encoder import Matrix, TableEncoder
from guardband.data.table import Column, Table

Array = NDArray[np.float64]

OF_ALL = 8.0
"""A category is described as if it had so many more rows, like all rows on average: few rows say little."""


def describe(
    encoder: TableEncoder,
    table: Table,
    y: Array,
    seed: int,
    weight: Array | None = None,
    entity: NDArray[np.intp] | None = None,
) -> tuple[TableEncoder, Matrix, Matrix] | None:
    """Return the encoder with descriptions in place of indices, and two matrices of the training rows.

    The first is to train on, the second is as if these were new rows. Rows of one number in ``entity`` do not describe
    each other. Of the targets ``y`` only their order matters. None if no column has many categories that repeat.
    """
    if not any(isinstance(code, IndexCode) and code.categories for code in encoder.codes):
        return None
    whom = np.arange(len(y)) if entity is None else entity
    turn = np.random.default_rng(seed).permutation(whom.max() + 1)[whom]
    _, place, ties = np.unique(y, return_inverse=True, return_counts=True)
    normal = ndtri((np.cumsum(ties) - ties / 2)[place] / len(y))
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    codes, numbers = list(encoder.codes), {}
    for i, code in enumerate(codes):
        if isinstance(code, IndexCode) and code.categories:
            codes[i], numbers[i] = _described(table.columns[i], normal, weight, turn)
    described = replace(encoder, codes=tuple(codes))
    x = described.encode(table)
    as_new = x.copy()
    for i, both in numbers.items():
        first = sum(code.numbers for code in codes[:i])
        for matrix, own in zip((x, as_new), both, strict=True):
            matrix[:, first : first + TargetCode.numbers] = own
    return described, x, as_new


def _described(
    column: Column, normal: Array, weight: Array, turn: NDArray[np.intp]
) -> tuple[TargetCode, tuple[Matrix, Matrix]]:
    """Return the code of a column, and the numbers of its rows, by those whose turn was before and by all others."""
    categories = most_frequent(AskCategories().of(column))
    place = Categories(categories).read(column)
    unknown = len(categories) + 1
    at: NDArray[np.intp] = np.where(np.isnan(place), unknown - 1, np.where(place < 0, unknown, place)).astype(np.intp)
    told: Array = np.stack([weight, weight * normal, weight * normal**2]) * (at < unknown)  # unknown ones tell nothing
    every: Array = np.stack([np.bincount(at, own, minlength=unknown + 1) for own in told])
    before, own = _sums(told, at, turn)
    made = [_numbers(sums) for sums in (every, before, every[:, at] - own)]
    codes = [answered(RobustCode.asks("number"), Column("", values)) for values in made[1].T]
    of_categories, by_those_before, by_others = (
        np.concatenate([code.encode(values) for code, values in zip(codes, numbers.T, strict=True)], 1)
        for numbers in made
    )
    return TargetCode(categories, tuple(map(tuple, of_categories.tolist()))), (by_those_before, by_others)


def _sums(told: Array, place: NDArray[np.intp], turn: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return for each row the sums over the rows in its place whose turn was before, and whose turn is the same."""
    order = np.lexsort((turn, place))
    place, turn, told = place[order], turn[order], told[:, order]
    starts_place = np.diff(place, prepend=-1) != 0
    starts_turn = starts_place | (np.diff(turn, prepend=-1) != 0)
    firsts = np.flatnonzero(starts_turn)
    of_turn = np.cumsum(starts_turn) - 1
    of_place = np.maximum.accumulate(np.where(starts_place, np.arange(len(order)), 0))
    so_far = np.cumsum(told, axis=1) - told
    before, own = np.empty_like(told), np.empty_like(told)
    before[:, order] = so_far[:, firsts[of_turn]] - so_far[:, of_place]
    own[:, order] = np.add.reduceat(told, firsts, axis=1)[:, of_turn]
    return before, own


def _numbers(sums: Array) -> Array:
    """Return average, spread and number of rows, from rows, their sum and that of their squares, ``(n, 3)``."""
    n, total, squares = sums
    within = np.maximum(squares - total**2 / np.maximum(n, 1e-300), 0)
    return np.stack([total / (n + OF_ALL), np.log((within + OF_ALL) / (n + OF_ALL)) / 2, np.log1p(n)], 1)
