"""Columns of many categories, described by what the target is like in each.

A training row is described by the rows of its category that come before it in a random order. Described by all others
it would give itself away: where another column tells the category too, they lack just its own target. New rows are
described by all training rows.
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
MOST_AS_NEW = 20_000


def describe(
    encoder: TableEncoder,
    table: Table,
    y: Array,
    seed: int,
    weight: Array | None = None,
    entity: NDArray[np.intp] | None = None,
) -> tuple[TableEncoder, Matrix, Matrix] | None:
    """Return the encoder with descriptions in place of indices, the matrix of the training rows, and that of some.

    The last is as if these were new rows. Rows of one number in ``entity`` do not describe each other. Of the targets
    ``y`` only their order matters. None if no column has many categories that repeat.
    """
    if not any(isinstance(code, IndexCode) and code.categories for code in encoder.codes):
        return None
    whom = np.arange(len(y)) if entity is None else entity
    turn = np.random.default_rng(seed).permutation(whom.max() + 1)[whom]
    _, place, ties = np.unique(y, return_inverse=True, return_counts=True)
    normal = ndtri((np.cumsum(ties) - ties / 2)[place] / len(y))
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    codes, before = list(encoder.codes), {}
    for i, code in enumerate(codes):
        if isinstance(code, IndexCode) and code.categories:
            codes[i], before[i] = _described(table.columns[i], normal, weight, turn)
    described = replace(encoder, codes=tuple(codes))
    x = described.encode(table)
    as_new = x[:: -(-len(x) // MOST_AS_NEW)].copy()
    for i, numbers in before.items():
        first = sum(code.numbers for code in codes[:i])
        x[:, first : first + TargetCode.numbers] = numbers
    return described, x, as_new


def _described(
    column: Column, normal: Array, weight: Array, turn: NDArray[np.intp]
) -> tuple[TargetCode, NDArray[np.float32]]:
    """Return the code of a column, and the numbers of its rows, each by the rows whose turn was before."""
    categories = most_frequent(AskCategories().of(column))
    place = Categories(categories).read(column)
    unknown = len(categories) + 1
    at: NDArray[np.intp] = np.where(np.isnan(place), unknown - 1, np.where(place < 0, unknown, place)).astype(np.intp)
    told: Array = np.stack([weight, weight * normal, weight * normal**2]) * (at < unknown)  # unknown ones tell nothing
    every: Array = np.stack([np.bincount(at, own, minlength=unknown + 1) for own in told])
    before = _numbers(_sums_before(told, at, turn))
    codes = [answered(RobustCode.asks("number"), Column("", own)) for own in before.T]
    of_categories, of_rows = (
        np.concatenate([code.encode(own) for code, own in zip(codes, made.T, strict=True)], 1)
        for made in (_numbers(every), before)
    )
    return TargetCode(categories, tuple(map(tuple, of_categories.tolist()))), of_rows


def _sums_before(told: Array, place: NDArray[np.intp], turn: NDArray[np.intp]) -> Array:
    """Return for each row the sums over the rows in the same place whose turn was before, ``(k, n) -> (k, n)``."""
    order = np.lexsort((turn, place))
    place, turn = place[order], turn[order]
    starts_place = np.diff(place, prepend=-1) != 0
    starts_turn = starts_place | (np.diff(turn, prepend=-1) != 0)
    of_place, of_turn = (
        np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0)) for starts in (starts_place, starts_turn)
    )
    so_far = np.cumsum(told[:, order], axis=1) - told[:, order]
    sums = np.empty_like(told)
    sums[:, order] = so_far[:, of_turn] - so_far[:, of_place]
    return sums


def _numbers(sums: Array) -> Array:
    """Return average, spread and number of rows, from rows, their sum and that of their squares, ``(n, 3)``."""
    n, total, squares = sums
    within = np.maximum(squares - total**2 / np.maximum(n, 1e-300), 0)
    return np.stack([total / (n + OF_ALL), np.log((within + OF_ALL) / (n + OF_ALL)) / 2, np.log1p(n)], 1)
