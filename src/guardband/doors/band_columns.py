"""Predictions as columns of a table: which columns they are, and how a table's cells become predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.predicted import Predicted, PredictedGaussian, PredictedInterval, PredictedPoint
from guardband.bands.predicted_several import PredictedSeveral
from guardband.bands.promise import Side
from guardband.data.row_numbers import known_as
from guardband.data.table import LARGEST, Column, Table, as_array, from_tensor, is_frame, numbers_from, read_table
from guardband.words import listed, rows_named

Array = NDArray[np.float64]
Form = Literal["interval", "bounds", "point", "gaussian", "lower", "upper"]

PARTS: dict[Form, tuple[str, ...]] = {
    "interval": ("lower", "point", "upper"),
    "bounds": ("lower", "upper"),
    "point": ("point",),
    "gaussian": ("mean", "deviation"),
    "lower": ("lower", "point"),
    "upper": ("point", "upper"),
}
"""The parts of a prediction that a user brings, by its form; between bounds alone the point is halfway.

A promise for one side does not use the other bound. If the user does not bring it, the point stands in for it.
"""
KINDS: dict[type[Predicted], Form] = {
    PredictedInterval: "interval",
    PredictedPoint: "point",
    PredictedGaussian: "gaussian",
}


def brought(
    lower: ArrayLike | None, point: ArrayLike | None, upper: ArrayLike | None, side: Side = "both"
) -> tuple[Form, Predicted]:
    """Return the prediction that was brought, and its form: bounds and a point, bounds alone, or a point alone.

    A promise for one ``side`` does not need the other bound.
    """
    if point is not None and side == "upper" and upper is not None and lower is None:
        return "upper", PredictedInterval(_numbers(point), _numbers(point), _numbers(upper))
    if point is not None and side == "lower" and lower is not None and upper is None:
        return "lower", PredictedInterval(_numbers(lower), _numbers(point), _numbers(point))
    if (lower is None) != (upper is None) or (lower is None and point is None):
        raise ValueError("Bring lower and upper, with or without a point, or a point alone.")
    if lower is None or upper is None:
        return "point", PredictedPoint(_numbers(point))
    below, above = _numbers(lower), _numbers(upper)
    if point is None:
        return "bounds", PredictedInterval(below, _halfway(below, above), above)
    return "interval", PredictedInterval(below, _numbers(point), above)


def with_axes(predicted: Predicted) -> Predicted:
    """Return a prediction with all of its axes, ``(n,) or (K, n) -> (1, K, n)`` each."""
    if isinstance(predicted, PredictedSeveral):
        return PredictedSeveral(tuple(map(with_axes, predicted.targets)))
    parts = [_numbers(part) for part in predicted.parts]
    shapes = [part.shape for part in parts]
    if len(set(shapes)) > 1 or parts[0].ndim not in (1, 2) or parts[0].size == 0:
        raise ValueError(f"{predicted.what} must have one shape (n,) or (K, n), n > 0, found {shapes}.")
    return type(predicted)(*(np.atleast_2d(part)[None] for part in parts))


def by_target(predicted: Predicted) -> PredictedSeveral:
    """Return predictions with a column for each target, ``(n, q)`` each part, as one prediction for each target."""
    shapes = [np.shape(part) for part in predicted.parts]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ValueError(
            f"With several targets, {predicted.what} must have one shape (n, q) with a column for each target, found "
            f"{shapes}."
        )
    columns = range(shapes[0][1])
    return PredictedSeveral(tuple(type(predicted)(*(part[:, j] for part in predicted.parts)) for j in columns))


@dataclass(frozen=True)
class BandColumns:
    """The columns of a table that hold predictions of one form: of each part all candidates, in order.

    With several ``targets`` they hold all parts of the first target, of the second, and so on.
    """

    form: Form
    names: tuple[str, ...]
    targets: tuple[str, ...] = ()

    @classmethod
    def default(cls, form: Form, candidates: int, targets: tuple[str, ...] = ()) -> BandColumns:
        """Return columns by the names of the parts, numbered if there are several candidates, or by target."""
        if targets:
            return cls(form, tuple(f"{name}_{part}" for name in targets for part in PARTS[form]), targets)
        every = [""] if candidates == 1 else [f"_{k}" for k in range(1, candidates + 1)]
        return cls(form, tuple(f"{part}{k}" for part in PARTS[form] for k in every))

    @property
    def candidates(self) -> int:
        """How many candidates there are."""
        return len(self.names) // len(PARTS[self.form]) // max(1, len(self.targets))

    def matrix(self, predicted: Predicted) -> Array:
        """Return a prediction with all axes as a matrix, a column for each name."""
        if isinstance(predicted, PredictedSeveral):
            return np.concatenate([replace(self, targets=()).matrix(own) for own in predicted.targets], axis=1)
        parts = [getattr(predicted, part)[0] for part in PARTS[self.form]]
        return np.concatenate(parts).T

    def numbers_in(self, X: Any) -> Array:
        """Return the columns of a table as numbers, ``(n, k)``; a table with names must have a number in every cell."""
        if not is_frame(X):
            array = np.asarray(as_array(X), dtype=np.float64)
            if array.ndim != 2 or array.shape[1] != len(self.names):
                raise ValueError(
                    f"Predictions must be {len(self.names)} columns, {listed(self.names)}, found shape {array.shape}."
                )
            return array
        table = read_table(X, self.names, may_be_infinite=True).read_as(["number"] * len(self.names))
        for column in table.columns:
            need_numbers(column)
        return np.stack([numbers_from(column, column.kind) for column in table.columns], axis=1)

    def table(self, matrix: Array) -> Table:
        """Return the columns as a table to look at: what is not finite is missing."""
        columns = np.where(np.isfinite(matrix), matrix, np.nan).T
        return Table(tuple(map(Column, self.names, columns)), len(matrix))

    def predicted(self, matrix: Array) -> Predicted:
        """Return the prediction that columns hold."""
        if self.targets:
            one, each = replace(self, targets=()), np.split(matrix, len(self.targets), axis=1)
            names = np.array_split(np.array(self.names), len(self.targets))
            pairs = zip(each, names, strict=True)
            return PredictedSeveral(tuple(replace(one, names=tuple(own)).predicted(part) for part, own in pairs))
        parts = matrix.T.reshape(len(PARTS[self.form]), 1, self.candidates, len(matrix))
        if self.form == "bounds":
            lower, upper = parts
            return PredictedInterval(lower, _halfway(lower, upper), upper)
        if self.form == "lower":
            return PredictedInterval(parts[0], parts[1], parts[1])
        if self.form == "upper":
            return PredictedInterval(parts[0], parts[0], parts[1])
        kinds: dict[Form, type[Predicted]] = {form: kind for kind, form in KINDS.items()}
        return kinds[self.form](*parts)


def need_numbers(column: Column) -> None:
    """Raise if a column of predictions holds text, or if a value is missing or infinite."""
    if column.has_cells or column.kind != "number":
        held = "text" if column.has_cells else f"{column.kind}s"
        raise ValueError(f"Column {column.name!r} must hold numbers, found {held}. Name a column of numbers.")
    size = np.abs(numbers_from(column))
    for wrong, what in (
        (np.isnan(size), "a missing"),
        (np.isinf(size), "an infinite"),
        (size > LARGEST, "too large a"),
    ):
        rows = np.flatnonzero(wrong)
        if len(rows):
            raise ValueError(
                f"Column {column.name!r} has {what} value in {rows_named(known_as(rows))}. Fill it in, or remove the "
                f"row{'s' if len(rows) > 1 else ''}."
            )


def _halfway(lower: Array, upper: Array) -> Array:
    return lower / 2 + upper / 2


def _numbers(values: ArrayLike | Sequence[float] | None) -> Array:
    return np.asarray(from_tensor(values), dtype=np.float64)
