"""Columns of many categories, described by what the target is like in each.

A training row is described by the rows of its category that come before it in a random order. Described by all others
it would give itself away: where another column tells the category too, they lack just its own target. New rows are
described by all training rows. Networks that are asked about rows which they did not see must get them like new ones:
described by the rows that they saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from guardband.data.asking import answered
from guardband.data.codes import Categories, IndexCode, NumberCode, RobustCode, TargetCode, most_frequent
from guardband.data.encoder import Matrix, TableEncoder
from guardband.data.questions import AskCategories
from guardband.data.table import Column, Table

Array = NDArray[np.float64]

OF_ALL = 8.0
"""A category is described as if it had so many more rows, like all rows on average: few rows say little."""


@dataclass(frozen=True, eq=False)
class Telling:
    """What rows of a column tell of categories: ``told (3, n)``, their weights and the first two moments of targets.

    ``place`` says of which category, ``first`` in which column of the matrix their numbers begin, and ``codes`` bring
    these to a robust scale.
    """

    told: Array
    place: NDArray[np.intp]
    first: int
    codes: tuple[NumberCode, ...]

    def write(self, x: Matrix, sums: Array) -> None:
        """Write the numbers that these sums make into a matrix."""
        x[:, self.first : self.first + TargetCode.numbers] = _encoded(self.codes, sums)

    def unseen(self, fold: NDArray[np.intp]) -> Array:
        """Return for each row the sums over the rows of other folds, over all others if its own is below 0."""
        fold = np.where(fold < 0, len(fold) + np.arange(len(fold)), fold)
        every = np.stack([np.bincount(self.place, own) for own in self.told])
        return every[:, self.place] - _sums(self.told, self.place, fold)[1]


@dataclass(frozen=True, eq=False)
class Described:
    """Training rows whose many categories are described: the encoder for new rows, and the matrix to train on."""

    encoder: TableEncoder
    x: Matrix
    told: tuple[Telling, ...]

    def unseen(self, fold: NDArray[np.intp]) -> Matrix:
        """Return the rows as they are new to networks that did not see their fold, ``(n,)``, below 0 for none."""
        x = self.x.copy()
        for own in self.told:
            own.write(x, own.unseen(fold))
        return x


def describe(
    encoder: TableEncoder,
    table: Table,
    y: Array,
    seed: int,
    weight: Array | None = None,
    entity: NDArray[np.intp] | None = None,
) -> Described | None:
    """Return rows with descriptions in place of indices; None if no column has many categories that repeat.

    Rows of one number in ``entity`` do not describe each other. Of the targets ``y`` only their order matters.
    """
    if not any(isinstance(code, IndexCode) and code.categories for code in encoder.codes):
        return None
    whom = np.arange(len(y)) if entity is None else entity
    turn = np.random.default_rng(seed).permutation(whom.max() + 1)[whom]
    _, rank, ties = np.unique(y, return_inverse=True, return_counts=True)
    normal = ndtri((np.cumsum(ties) - ties / 2)[rank] / len(y))
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    codes, told, sums_before = list(encoder.codes), [], []
    for i, code in enumerate(codes):
        if isinstance(code, IndexCode) and code.categories:
            first = sum(before.numbers for before in codes[:i])
            codes[i], own, sums = _told(table.columns[i], first, normal, weight, turn)
            told.append(own)
            sums_before.append(sums)
    encoder = replace(encoder, codes=tuple(codes))
    x = encoder.encode(table)
    for own, sums in zip(told, sums_before, strict=True):
        own.write(x, sums)
    return Described(encoder, x, tuple(told))


def _told(
    column: Column, first: int, normal: Array, weight: Array, turn: NDArray[np.intp]
) -> tuple[TargetCode, Telling, Array]:
    """Return the code of a column, what its rows tell, and the sums of each over the rows whose turn was before."""
    categories = most_frequent(AskCategories().of(column))
    place = Categories(categories).read(column)
    unknown = len(categories) + 1
    at: NDArray[np.intp] = np.where(np.isnan(place), unknown - 1, np.where(place < 0, unknown, place)).astype(np.intp)
    told: Array = np.stack([weight, weight * normal, weight * normal**2]) * (at < unknown)  # unknown ones tell nothing
    before, _ = _sums(told, at, turn)
    codes = tuple(answered(RobustCode.asks("number"), Column("", own)) for own in _numbers(before).T)
    every: Array = np.stack([np.bincount(at, own, minlength=unknown + 1) for own in told])
    values = tuple(map(tuple, _encoded(codes, every).tolist()))
    return TargetCode(categories, values), Telling(told, at, first, codes), before


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


def _encoded(codes: Sequence[NumberCode], sums: Array) -> Matrix:
    columns = [code.encode(values) for code, values in zip(codes, _numbers(sums).T, strict=True)]
    matrix: Matrix = np.concatenate(columns, axis=1)
    return matrix
