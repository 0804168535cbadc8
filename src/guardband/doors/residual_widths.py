"""Widths for a model that predicts a point alone, by a model of how far off it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import column_target
from guardband.data.table import is_frame, read_table
from guardband.doors.predictors import Predictor

Array = NDArray[np.float64]

LEAST_SHARE = 0.05
"""No width is less than this share of the median error: a model of errors that says none at all is not believed."""


@dataclass(frozen=True, eq=False)
class ResidualWidths:
    """Boosted trees that predict the absolute error of a point model, and how they read rows."""

    point: Predictor
    encoder: TableEncoder
    names: tuple[str, ...] | None
    trees: Any
    least: float

    @classmethod
    def learn(cls, point: Predictor, X: Any, y: Any) -> ResidualWidths:
        """Return what these rows teach about the errors of a model, better rows that did not train it."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        table = read_table(X).settled()
        errors = np.abs(column_target(y, table.n_rows) - _one_point(point, X, table.n_rows))
        encoder = TableEncoder.learn(table)
        trees = HistGradientBoostingRegressor(loss="absolute_error", random_state=0).fit(encoder.encode(table), errors)
        names = table.names if is_frame(X) else None
        return cls(point, encoder, names, trees, LEAST_SHARE * float(np.median(errors)))

    @property
    def predictor(self) -> Predictor:
        """The point with a lower and an upper bound, each as far off as the error to expect."""
        return Predictor(lambda X, levels: self._bands(X), "bands")

    def _bands(self, X: Any) -> Array:
        table = read_table(X, self.names).read_as(self.encoder.kinds)
        point = _one_point(self.point, X, table.n_rows)
        width = np.maximum(self.trees.predict(self.encoder.encode(table)), self.least)
        return np.stack([point - width, point, point + width], axis=1)


def _one_point(model: Predictor, X: Any, n_rows: int) -> Array:
    columns = model.columns(X, n_rows, ())
    if columns.shape[1] != 1:
        raise ValueError("This model predicts more than a point, and needs no residuals. Remove residuals=...")
    return columns[:, 0]
