"""Intervals: what every door returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
    >>> bands.width, bands.contains([2.0]), len(bands)
    (array([3.]), array([ True]), 1)
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

    @property
    def width(self) -> Array:
        """How wide each interval is, ``(n,)`` or ``(n, L)``."""
        return self.upper - self.lower

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Return which true values ``(n,)`` lie in their interval, ends included, ``(n,)`` or ``(n, L)``."""
        values = np.asarray(y, dtype=np.float64)
        if values.shape != self.point.shape:
            raise ValueError(f"y must have one value for each of {len(self)} intervals, found shape {values.shape}.")
        values = values if self.lower.ndim == 1 else values[:, None]
        inside: NDArray[np.bool_] = (self.lower <= values) & (values <= self.upper)
        return inside

    def __len__(self) -> int:
        return len(self.point)

    def __getitem__(self, rows: Any) -> Intervals:
        """Return the intervals of some rows: a slice, positions, a mask, or one position."""
        index = np.arange(len(self))[rows].reshape(-1)
        return replace(
            self,
            lower=self.lower[index],
            point=self.point[index],
            upper=self.upper[index],
            index=None if self.index is None else self.index[index],
            unlike_columns=None if self.unlike_columns is None else self.unlike_columns[index],
            unlike_words="",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return lower, point and upper as one array, ``(n, 3)`` or ``(n, 3, L)``, as a calibrated network does."""
        lower, upper = self.per_level()
        every = np.stack([lower, np.broadcast_to(self.point[:, None], lower.shape), upper], axis=1)
        return (every if self.lower.ndim == 2 else every[:, :, 0]).astype(dtype or np.float64)

    def plot(self, y: Any = None, *, level: int = 0, most: int = 200, ax: Any = None) -> Any:
        """Draw the intervals in order of their point, with the true values if they are given, and return the axes.

        Parameters
        ----------
        y : array of shape (n,), default None
            The true values. Those outside their interval are crosses.
        level : int, default 0
            Which of several levels to draw.
        most : int, default 200
            How many rows to draw at most. Of more rows some are drawn at random, with a fixed seed.
        ax : matplotlib axes, default None
            Where to draw; otherwise a new figure.
        """
        from guardband.bands.plot import plot_intervals

        return plot_intervals(self, None if y is None else np.asarray(y, dtype=np.float64), level, most, ax)

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
