"""Intervals: what every door returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals with their point predictions and what is promised of them.

    With one confidence level ``lower`` and ``upper`` are ``(n,)``, with L levels ``(n, L)``; ``point`` is
    ``(n,)``. Unpacks as ``point, intervals = bands`` with the shapes ``(n,)`` and ``(n, 2, L)``.

    If a table's model made them, ``unlike`` marks the rows that are unlike all training rows, ``unlike_columns`` names
    the columns that are, "" for none, and ``unlike_words`` says so in one line.

    >>> import numpy as np
    >>> bands = Intervals(np.array([0.0]), np.array([1.0]), np.array([3.0]), 0.9)
    >>> point, intervals = bands
    >>> intervals.shape
    (1, 2, 1)
    """

    lower: Array
    point: Array
    upper: Array
    confidence_level: float | tuple[float, ...]
    certificate: Certificate | None = None
    index: Any = field(default=None, repr=False)
    input_names: tuple[str, ...] = field(default=(), repr=False)
    unlike_columns: NDArray[np.object_] | None = field(default=None, repr=False)
    unlike_words: str = field(default="", repr=False)

    @property
    def unlike(self) -> NDArray[np.bool_] | None:
        """Which rows are unlike all training rows, ``(n,)``; None if nothing is known of them."""
        return None if self.unlike_columns is None else self.unlike_columns != ""

    def __iter__(self) -> Iterator[Array]:
        lower, upper = self.per_level()
        yield self.point
        yield np.stack([lower, upper], axis=1)

    def per_level(self) -> tuple[Array, Array]:
        """Return the lower and the upper bounds as ``(n, L)``, also where there is one level."""
        n = len(self.point)
        return self.lower.reshape(n, -1), self.upper.reshape(n, -1)

    def to_pandas(self, unlike: bool = False) -> pd.DataFrame:
        """Return a table with the columns point, lower and upper, and the index of the input.

        ``unlike`` adds a column of that name: which columns of a row are unlike all training rows, "" for none.
        """
        import pandas as pd

        return pd.DataFrame(self.columns(unlike), index=self.index)

    def to_polars(self, unlike: bool = False) -> pl.DataFrame:
        """Return a table with the columns point, lower and upper; for ``unlike`` see ``to_pandas``."""
        import polars as pl

        return pl.DataFrame(self.columns(unlike))

    def columns(self, unlike: bool = False) -> dict[str, NDArray[Any]]:
        """Return point, lower and upper, and ``unlike`` if asked for, by the names that a table gives them."""
        columns: dict[str, NDArray[Any]] = {"point": self.point}
        if isinstance(self.confidence_level, tuple):
            lower, upper = self.per_level()
            for i, level in enumerate(self.confidence_level):
                columns[f"lower_{level}"], columns[f"upper_{level}"] = lower[:, i], upper[:, i]
        else:
            columns["lower"], columns["upper"] = self.lower, self.upper
        if unlike:
            if self.unlike_columns is None:
                raise ValueError("Nothing is known of the training rows of these intervals: remove unlike=True.")
            columns["unlike"] = self.unlike_columns
        if set(columns) & set(self.input_names):
            return {f"guardband_{name}": values for name, values in columns.items()}
        return columns
