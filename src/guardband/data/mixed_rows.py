"""Rows whose columns come from different rows of one table, whatever kind of table it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Context, Predicted
from guardband.data.grouping import Grouping
from guardband.data.table import Table, as_array, take_columns
from guardband.data.tree_groups import TreeGroups

Sources = NDArray[np.intp]
"""Of mixed rows, ``(m, d)``: the row that each column comes from."""


@dataclass(frozen=True)
class Mixer:
    """A table as a model reads it, and what the model predicts for rows mixed from it.

    ``players`` are the columns, by place, that the model uses. ``context`` is what else a rule knows of mixed rows.
    """

    table: Table
    predict: Callable[[Sources], Predicted]
    players: NDArray[np.intp]
    context: Callable[[Sources], Context] = lambda _: Context()


def mixed_groups(grouping: Grouping | TreeGroups | None, table: Table, X: Any) -> Callable[[Sources], Context]:
    """Return which groups rows have that are mixed from a table; ``X`` is what the user gave."""
    if grouping is None:
        return lambda _: Context()
    if isinstance(grouping, Grouping) and callable(grouping.by):
        rows, own = take_columns(X, table.names), grouping
        return lambda sources: Context(group=own.of_rows_of(mix_rows(rows, sources), len(sources)))

    def known(sources: Sources) -> Context:
        columns = tuple(column.take(sources[:, j]) for j, column in enumerate(table.columns))
        return Context(group=grouping.of_rows(Table(columns, len(sources)), X))

    return known


def mix_rows(X: Any, sources: Sources) -> Any:
    """Return mixed rows as what the table is: column j of row i is that of row ``sources[i, j]``.

    >>> mix_rows(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0], [0, 0]])).tolist()
    [[1, 4], [3, 2], [1, 2]]
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        values = X if hasattr(X, "detach") or isinstance(X, np.ndarray) else as_array(X)
        return values[sources, np.arange(sources.shape[1])]
    columns = [column[sources[:, j]] for j, column in enumerate(frame.iter_columns())]
    return nw.from_dict({column.name: nw.maybe_reset_index(column) for column in columns}).to_native()


def stack_rows(X: Any, background: Any) -> Any:
    """Return the rows of one table with those of another below; each column must be of one kind in both."""
    top, bottom = (nw.from_native(own, eager_only=True, pass_through=True) for own in (X, background))
    if isinstance(top, nw.DataFrame) != isinstance(bottom, nw.DataFrame) or (
        isinstance(top, nw.DataFrame) and top.implementation != bottom.implementation
    ):
        raise TypeError(
            f"X and background must be tables of one kind, found {type(X).__name__} and {type(background).__name__}. "
            "Pass both as the kind that the model was fitted on."
        )
    if not isinstance(top, nw.DataFrame):
        return _stacked_arrays(X, background)
    missing = [name for name in top.columns if name not in set(bottom.columns)]
    if missing:
        raise ValueError(f"background lacks the column {missing[0]!r} of X. Add it to background.")
    bottom = nw.from_native(take_columns(background, top.columns), eager_only=True)
    numbers = [name for name in top.columns if _are_other_numbers(top[name].dtype, bottom[name].dtype)]
    top, bottom = (own.with_columns(nw.col(name).cast(nw.Float64) for name in numbers) for own in (top, bottom))
    for name in top.columns:
        kinds = [getattr(nw.to_native(own[name]), "dtype", own[name].dtype) for own in (top, bottom)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"The column {name!r} is of another type in background than in X. Convert it to the type of X, "
                "with the same categories if it has any."
            )
    return nw.to_native(nw.concat([nw.maybe_reset_index(top), nw.maybe_reset_index(bottom)]))


def _stacked_arrays(X: Any, background: Any) -> Any:
    shapes = [np.shape(own) for own in (X, background)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            f"X and background must be tables with the same columns, found the shapes {shapes[0]} and {shapes[1]}."
        )
    if hasattr(X, "detach") and hasattr(background, "detach"):
        import torch

        return torch.cat([X, background.to(X)])
    return np.concatenate([as_array(X), as_array(background)])


def _are_other_numbers(one: Any, other: Any) -> bool:
    return bool(one != other and one.is_numeric() and other.is_numeric())
