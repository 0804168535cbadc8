"""A small boosted tree that stands in for the networks where they would have to be trained on other folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, Table, categories_from, numbers_from
from guardband.data.turns import YEAR
from guardband.training.threads import trees_on_one_thread

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

MOST_CATEGORIES = 250
MOST_INPUTS = 20
TREES, LEAVES = 60, 15


@dataclass(frozen=True)
class Inputs:
    """Columns as trees read them, ``(n, d)``, and which of them are codes of categories."""

    x: Array
    is_category: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table, y: Array, without: tuple[str, ...] = (), *, days: bool = True) -> Inputs:
        """Return the inputs; ``days``: dates also as the day itself, not only by what recurs.

        Of many inputs those are kept that have most to do with the target, whatever the order of the rows.
        """
        parts = [_columns(column, days) for column in table.columns if column.name not in without]
        x = np.concatenate([own for own, _ in parts], axis=1) if parts else np.empty((table.n_rows, 0))
        is_category = np.array([code for own, code in parts for _ in range(own.shape[1])], dtype=bool)
        varies = np.array([len(np.unique(values[~np.isnan(values)])) > 1 for values in x.T], dtype=bool)
        x, is_category = x[:, varies], is_category[varies]
        if x.shape[1] > MOST_INPUTS:
            kept = np.sort(np.argsort(-_relevance(x, y), kind="stable")[:MOST_INPUTS])
            x, is_category = x[:, kept], is_category[kept]
        return cls(x, is_category)

    def only(self, kept: Sequence[bool]) -> Inputs:
        """Return some of the inputs."""
        own = np.array(kept, dtype=bool)
        return Inputs(self.x[:, own], self.is_category[own])

    def errors(self, y: Array, folds: Ints, gap: int = 0) -> Array:
        """Return the signed error of each row by trees that saw the other folds; ``gap``: nor rows so near a fold."""
        if not self.x.shape[1]:
            return np.asarray(y - y.mean())
        errors = np.empty(len(y))
        for fold in np.unique(folds):
            own = folds == fold
            near = np.convolve(own, np.ones(2 * gap + 1), mode="same") > 0.5 if gap else own
            errors[own] = self.errors_of(y, ~near)[own]
        return errors

    def errors_of(self, y: Array, trains: NDArray[np.bool_]) -> Array:
        """Return the signed error of each row by trees that saw the rows which train."""
        if not self.x.shape[1]:
            return np.asarray(y - y[trains].mean())
        from sklearn.ensemble import HistGradientBoostingRegressor

        # scikit-learn takes no column that lacks all values
        known = [not own.all() for own in np.isnan(self.x[trains]).T]
        if not all(known):
            return self.only(known).errors_of(y, trains)
        trees = HistGradientBoostingRegressor(
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            early_stopping=False,
            categorical_features=self.is_category,
        )
        with trees_on_one_thread():
            return np.asarray(y - trees.fit(self.x[trains], y[trains]).predict(self.x))


def normal_scores(y: Array) -> Array:
    """Return targets by their rank on a normal scale: no outlier counts for more than another."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores: Array = ndtri((rankdata(y) - 0.5) / len(y))
    return scores


def _columns(column: Column, days: bool) -> tuple[Array, bool]:
    if column.kind == "category":
        cells = categories_from(column)
        levels = {cell: float(i) for i, cell in enumerate(sorted({cell for cell in cells if cell is not None}))}
        codes = np.array([np.nan if cell is None else levels[cell] for cell in cells])
        return codes[:, None], len(levels) <= MOST_CATEGORIES
    numbers = numbers_from(column, column.kind)
    if column.kind != "date":
        return numbers[:, None], False
    recurring = [numbers % 1, np.floor(numbers) % 7, numbers % YEAR]
    return np.stack([numbers, *recurring] if days else recurring, axis=1), False


def _relevance(x: Array, y: Array) -> Array:
    """Return how much the mean of the target differs between ten equal parts of each column's order."""
    scores = normal_scores(y)
    ranked = scores[np.argsort(x, axis=0, kind="stable")]
    return np.array(sum(part.mean(axis=0) ** 2 for part in np.array_split(ranked, 10)))
