"""Columns of many categories, described by what the target is like in each.

A training row is described by the other rows of its category: those of its own fold are left out, so that its own
target does not give itself away. New rows are described by all training rows.
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

FOLDS = 20
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

    The last is as if these were new rows. Rows of one number in ``entity`` are in one fold. Only the order of the
    targets ``y`` matters. None if no column has many categories that repeat.
    """
    if not any(isinstance(code, IndexCode) and code.categories for code in encoder.codes):
        return None
    whom = np.arange(len(y)) if entity is None else entity
    fold = np.random.default_rng(seed).permutation(whom.max() + 1)[whom] % FOLDS
    _, place, ties = np.unique(y, return_inverse=True, return_counts=True)
    normal = ndtri((np.cumsum(ties) - ties / 2)[place] / len(y))
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    codes, left_out = list(encoder.codes), {}
    for i, code in enumerate(codes):
        if isinstance(code, IndexCode) and code.categories:
            codes[i], left_out[i] = _described(table.columns[i], normal, weight, fold)
    described = replace(encoder, codes=tuple(codes))
    x = described.encode(table)
    as_new = x[:: -(-len(x) // MOST_AS_NEW)].copy()
    for i, numbers in left_out.items():
        first = sum(code.numbers for code in codes[:i])
        x[:, first : first + TargetCode.numbers] = numbers
    return described, x, as_new


def _described(
    column: Column, normal: Array, weight: Array, fold: NDArray[np.intp]
) -> tuple[TargetCode, NDArray[np.float32]]:
    """Return the code of a column, and the numbers of its rows, each by the rows of other folds."""
    categories = most_frequent(AskCategories().of(column))
    place = Categories(categories).read(column)
    kept = len(categories) + 1  # of missing values too; the last place is for all other categories
    place = np.where(np.isnan(place), kept - 1, np.where(place < 0, kept, place)).astype(np.intp)
    sums = np.stack(
        [
            np.bincount(place * FOLDS + fold, own, minlength=(kept + 1) * FOLDS).reshape(-1, FOLDS)
            for own in (weight, weight * normal, weight * normal**2)
        ]
    )
    sums[:, kept] = 0  # what is not told apart is like a category never seen
    every = sums.sum(-1)
    others = _numbers(every[:, place] - sums[:, place, fold])
    codes = [answered(RobustCode.asks("number"), Column("", own)) for own in others.T]
    numbers, by_others = (
        np.concatenate([code.encode(own) for code, own in zip(codes, made.T, strict=True)], 1)
        for made in (_numbers(every), others)
    )
    return TargetCode(categories, tuple(map(tuple, numbers.tolist()))), by_others


def _numbers(sums: Array) -> Array:
    """Return average, spread and number of rows, from rows, their sum and that of their squares, ``(n, 3)``."""
    n, total, squares = sums
    within = np.maximum(squares - total**2 / np.maximum(n, 1e-300), 0)
    return np.stack([total / (n + OF_ALL), np.log((within + OF_ALL) / (n + OF_ALL)) / 2, np.log1p(n)], 1)
