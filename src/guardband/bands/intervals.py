"""Intervals: what every door returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.promise import Side
from guardband.bands.sides import reach

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Array = NDArray[np.float64]

ROWS = (
    "Choose rows by a position, a slice, a list of positions, or a mask of {n:,} entries. Of several levels take the "
    "mask of one, such as bands.contains(y)[:, 0]. To choose rows by name, call to_pandas()."
)


def intervals_of(
    bands: Any,
    confidence_level: float | tuple[float, ...] | None = float("nan"),
    certificate: Certificate | None = None,
) -> Intervals:
    """Return lower, point and upper, ``(n, 3)`` or ``(n, 3, L)``, as ``Intervals``; those stay as they are.

    A calibrated network puts them out so. They may be a tensor on any device.
    """
    if isinstance(bands, Intervals):
        return bands
    if hasattr(bands, "targets"):
        raise ValueError(f"Pass the intervals of one target, such as boxes[{bands.targets[0]!r}].")
    array = np.asarray(bands.detach().cpu() if hasattr(bands, "detach") else bands, dtype=np.float64)
    if array.ndim not in (2, 3) or array.shape[1] != 3:
        raise ValueError(
            f"Intervals must be gb.Intervals, or lower, point and upper as (n, 3) or (n, 3, L), found {array.shape}."
        )
    lower, point, upper = array.transpose(1, 0, *range(2, array.ndim))
    if array.ndim == 3 and confidence_level is not None and not isinstance(confidence_level, tuple):
        confidence_level = (confidence_level,) * array.shape[2]
    levels = len(confidence_level) if isinstance(confidence_level, tuple) else None
    if levels != (None if array.ndim == 2 else array.shape[2]):
        raise ValueError(f"There must be one confidence_level for each interval of a row, found {confidence_level}.")
    return Intervals(lower, point if array.ndim == 2 else point[:, 0], upper, confidence_level, certificate)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals with their point predictions and what is promised of them.

    With one confidence level ``lower`` and ``upper`` are ``(n,)``, with L levels ``(n, L)``; ``point`` is
    ``(n,)``. Unpacks as ``point, intervals = bands`` with the shapes ``(n,)`` and ``(n, 2, L)``.

    If a table's model made them, ``unlike`` marks the rows that are unlike all training rows, ``unlike_columns`` names
    the columns that are, "" for none, and ``unlike_words`` says so in one line.

    Parameters
    ----------
    lower : array of shape (n,) or (n, L)
        The lower bounds; one column for each of L levels.
    point : array of shape (n,)
        The predictions.
    upper : array of shape (n,) or (n, L)
        The upper bounds.
    confidence_level : float, tuple of float or None
        The level or levels. None if a risk is promised in place of a level.
    certificate : Certificate, default None
        What is promised.
    index : index, default None
        The index of the input, for ``to_pandas``.
    input_names : tuple of str, default ()
        The columns of the input, to avoid names that occur there.
    unlike_columns : array of str, default None
        For each row, which columns are unlike all training rows, empty for none.
    unlike_words : str, default ""
        The same in one line.

    Examples
    --------
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
    confidence_level: float | tuple[float, ...] | None
    certificate: Certificate | None = None
    index: Any = field(default=None, repr=False)
    input_names: tuple[str, ...] = field(default=(), repr=False)
    unlike_columns: NDArray[np.object_] | None = field(default=None, repr=False)
    unlike_words: str = field(default="", repr=False)

    @property
    def levels(self) -> tuple[float, ...]:
        """The confidence levels, one for each column of bounds; NaN if a risk is promised in place of a level."""
        own = float("nan") if self.confidence_level is None else self.confidence_level
        return own if isinstance(own, tuple) else (own,)

    @property
    def unlike(self) -> NDArray[np.bool_] | None:
        """Which rows are unlike all training rows, ``(n,)``; None if nothing is known of them."""
        return None if self.unlike_columns is None else self.unlike_columns != ""

    @property
    def width(self) -> Array:
        """How wide each interval is, ``(n,)`` or ``(n, L)``; infinite if it has one bound."""
        return self.upper - self.lower

    @property
    def side(self) -> Side:
        """Which bound the promise is about; without a certificate, the one that is finite if all others are not."""
        if self.certificate is not None:
            return self.certificate.promise.side
        no_lower, no_upper = np.isneginf(self.lower).all(), np.isposinf(self.upper).all()
        return "both" if no_lower == no_upper else "upper" if no_lower else "lower"

    @property
    def reach(self) -> Array:
        """How far each interval reaches, ``(n,)`` or ``(n, L)``: its width, or the distance of its only bound.

        The distance is that from the prediction.
        """
        out: Array = reach(self.lower, self.point, self.upper, self.side)
        return out

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Return which true values ``(n,)`` lie in their interval, ends included, ``(n,)`` or ``(n, L)``.

        Parameters
        ----------
        y : array of shape (n,)
            The true values of these rows, in the same order.
        """
        values = self._true_values(y)
        values = values if self.lower.ndim == 1 else values[:, None]
        inside: NDArray[np.bool_] = (self.lower <= values) & (values <= self.upper)
        return inside

    def __len__(self) -> int:
        return len(self.point)

    def __getitem__(self, rows: Any) -> Intervals:
        """Return the intervals of some rows: a slice, positions, a mask, or one position."""
        try:
            index = np.arange(len(self))[rows].reshape(-1)
        except IndexError as error:
            raise IndexError(f"{str(error).capitalize()}. {ROWS.format(n=len(self))}") from None
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

    def __repr__(self) -> str:
        from guardband.bands.few_rows import interval_text

        return interval_text(self)

    def plot(self, y: Any = None, *, level: float = 0, most: int = 200, ax: Any = None) -> Any:
        """Draw the intervals in order of their point, with the true values if they are given, and return the axes.

        Parameters
        ----------
        y : array of shape (n,), default None
            The true values. Those outside their interval are crosses. The name of a Series names the axis.
        level : int or float, default 0
            Which of several levels to draw: its place among them, or the confidence level itself.
        most : int, default 200
            How many rows to draw at most. Of more rows some are drawn at random, with a fixed seed.
        ax : matplotlib axes, default None
            Where to draw; otherwise a new figure.
        """
        from guardband.bands.plot import plot_intervals

        truth = None if y is None else self._true_values(y)
        return plot_intervals(self, truth, self._level_at(level), most, ax, getattr(y, "name", None))

    def _repr_html_(self) -> str:
        from guardband.bands.interval_table import interval_table

        return interval_table(self)

    def __iter__(self) -> Iterator[Array]:
        lower, upper = self.per_level()
        yield self.point
        yield np.stack([lower, upper], axis=1)

    def per_level(self) -> tuple[Array, Array]:
        """Return the lower and the upper bounds as ``(n, L)``, also where there is one level."""
        if self.lower.ndim == 2:
            return self.lower, self.upper
        return self.lower[:, None], self.upper[:, None]

    def _level_at(self, level: float) -> int:
        """Return the place of a level, which may be given itself."""
        levels = self.levels
        if level in levels:
            return levels.index(level)
        if level not in range(len(levels)):
            known = ", ".join(map(str, levels))
            raise ValueError(f"There is no level {level} here. Choose one of {known}, or its place, counted from 0.")
        return int(level)

    def _true_values(self, y: Any) -> Array:
        """Return true values as numbers, ``(n,)``; refuse the rows of these intervals in another order."""
        names = getattr(y, "index", None) if hasattr(y, "iloc") else None
        if names is not None and self.index is not None and len(names) == len(self.index):
            is_same = np.array_equal(names, self.index)
            if not is_same and names.is_unique and names.isin(self.index).all():
                raise ValueError("y has the rows of these intervals in another order. Pass y.loc[bands.index].")
        values = np.asarray(y, dtype=np.float64)
        if values.shape != self.point.shape:
            hint = "Pass it as one column, such as y.ravel()." if values.size == len(self) else "Pass as many."
            raise ValueError(
                f"y must have one value for each of {len(self)} intervals, found shape {values.shape}. {hint}"
            )
        return values

    def to_pandas(self, unlike: bool = False) -> pd.DataFrame:
        """Return a table with the columns point, lower and upper, and the index of the input.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
        import pandas as pd

        return pd.DataFrame(self.columns(unlike), index=self.index)

    def to_polars(self, unlike: bool = False) -> pl.DataFrame:
        """Return a table with the columns point, lower and upper.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
        import polars as pl

        return pl.DataFrame(self.columns(unlike))

    def columns(self, unlike: bool = False) -> dict[str, NDArray[Any]]:
        """Return point, lower and upper, and ``unlike`` if asked for, by the names that a table gives them.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
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
