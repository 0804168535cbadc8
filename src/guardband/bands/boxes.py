"""Boxes: the intervals of several targets at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import ROWS, Intervals
from guardband.words import level_name, listed

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Array = NDArray[np.float64]

MOST_SHOWN = 3
"""So many targets are shown where there is little room."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Prediction intervals of several targets, with their predictions and what is promised of them.

    With one confidence level ``lower`` and ``upper`` are ``(n, q)`` for q targets, with L levels ``(n, q, L)``;
    ``point`` is ``(n, q)``. ``boxes["price"]`` are the ``Intervals`` of one target.

    Parameters
    ----------
    lower : array of shape (n, q) or (n, q, L)
        The lower bounds; one column for each target.
    point : array of shape (n, q)
        The predictions.
    upper : array of shape (n, q) or (n, q, L)
        The upper bounds.
    confidence_level : float or tuple of float
        The level or levels.
    targets : tuple of str
        The names of the targets, in the order of the columns.
    certificate : Certificate, default None
        What is promised of all targets.
    certificates : tuple of Certificate, default ()
        What is promised of each target.
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
    >>> boxes = Boxes(np.zeros((1, 2)), np.ones((1, 2)), np.array([[2.0, 3.0]]), 0.9, ("price", "days"))
    >>> boxes["days"].width, boxes.contains([[1.0, 2.5]]), boxes.contains([[2.5, 2.5]])
    (array([3.]), array([ True]), array([False]))
    """

    lower: Array
    point: Array
    upper: Array
    confidence_level: float | tuple[float, ...]
    targets: tuple[str, ...]
    certificate: Certificate | None = None
    certificates: tuple[Certificate, ...] = field(default=(), repr=False)
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
        """How wide each interval is, ``(n, q)`` or ``(n, q, L)``."""
        return self.upper - self.lower

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Return in which rows all targets lie in their intervals, ends included, ``(n,)`` or ``(n, L)``.

        Parameters
        ----------
        y : array of shape (n, q)
            The true values of these rows. The columns of a table are found by the names of the targets.
        """
        inside: NDArray[np.bool_] = np.all([own.contains(y_j) for own, y_j in zip(self, self._each(y), strict=True)], 0)
        return inside

    def __len__(self) -> int:
        return len(self.point)

    def __iter__(self) -> Iterator[Intervals]:
        """Give the intervals of each target, in order."""
        return (self._of(j) for j in range(len(self.targets)))

    def __getitem__(self, which: Any) -> Any:
        """Return the ``Intervals`` of a target by its name, or the boxes of some rows."""
        if isinstance(which, str):
            if which not in self.targets:
                raise KeyError(f"There is no target {which!r} here. Choose one of {listed(self.targets)}.")
            return self._of(self.targets.index(which))
        try:
            rows = np.arange(len(self))[which].reshape(-1)
        except IndexError as error:
            raise IndexError(f"{str(error).capitalize()}. {ROWS.format(n=len(self))}") from None
        return replace(
            self,
            lower=self.lower[rows],
            point=self.point[rows],
            upper=self.upper[rows],
            index=None if self.index is None else self.index[rows],
            unlike_columns=None if self.unlike_columns is None else self.unlike_columns[rows],
            unlike_words="",
        )

    def __repr__(self) -> str:
        from guardband.bands.few_rows import interval_text

        shown = [f"{self.targets[j]}: {interval_text(self._of(j))}" for j in range(self._shown)]
        return "\n\n".join([self._title(), *shown])

    def _repr_html_(self) -> str:
        from guardband.bands.interval_table import interval_table
        from guardband.markup import rendered

        tables = [(self.targets[j], interval_table(self._of(j, noted=False))) for j in range(self._shown)]
        certificate = self.certificate
        promise = "" if certificate is None else certificate.promise.headline(certificate.method)
        return rendered("boxes.html", title=self._title(), tables=tables, notes=[promise, self.unlike_words])

    def to_pandas(self, unlike: bool = False) -> pd.DataFrame:
        """Return a table with the columns point, lower and upper of each target, such as ``price_lower``.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
        import pandas as pd

        return pd.DataFrame(self.columns(unlike), index=self.index)

    def to_polars(self, unlike: bool = False) -> pl.DataFrame:
        """Return a table with the columns point, lower and upper of each target, such as ``price_lower``.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
        import polars as pl

        return pl.DataFrame(self.columns(unlike))

    def columns(self, unlike: bool = False) -> dict[str, NDArray[Any]]:
        """Return point, lower and upper of each target, and ``unlike`` if asked for, by the names in a table.

        Parameters
        ----------
        unlike : bool, default False
            Whether to add the column ``unlike``. For each row it names the columns that are unlike all training rows.
        """
        out: dict[str, NDArray[Any]] = {}
        for name, own in zip(self.targets, self, strict=True):
            out |= {f"{name}_{part}": values for part, values in replace(own, input_names=()).columns().items()}
        if unlike:
            if self.unlike_columns is None:
                raise ValueError("Nothing is known of the training rows of these boxes: remove unlike=True.")
            out["unlike"] = self.unlike_columns
        if set(out) & set(self.input_names):
            return {f"guardband_{name}": values for name, values in out.items()}
        return out

    def _of(self, j: int, noted: bool = True) -> Intervals:
        certificate = self.certificates[j] if self.certificates and noted else None
        return Intervals(
            self.lower[:, j],
            self.point[:, j],
            self.upper[:, j],
            self.confidence_level,
            certificate,
            self.index,
            self.input_names,
            self.unlike_columns,
            self.unlike_words if noted else "",
        )

    def _each(self, y: Any) -> Sequence[Any]:
        """Return the true values of each target."""
        names = getattr(y, "columns", None)
        if names is not None and set(self.targets) <= set(names):
            return [y[name] for name in self.targets]
        values = np.asarray(y, dtype=np.float64)
        if values.shape != self.point.shape:
            raise ValueError(
                f"y must have one row for each of {len(self):,} boxes and one column for each of "
                f"{len(self.targets)} targets, found shape {values.shape}. Pass the columns {listed(self.targets)}."
            )
        return list(values.T)

    @property
    def _shown(self) -> int:
        return min(MOST_SHOWN, len(self.targets))

    def _title(self) -> str:
        levels = self.confidence_level if isinstance(self.confidence_level, tuple) else (self.confidence_level,)
        words = f"confidence level{'s' * (len(levels) > 1)} {', '.join(map(level_name, levels))}"
        more = "" if self._shown == len(self.targets) else f" ({self._shown} shown)"
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        return f"{rows} with {len(self.targets)} targets{more}, {words}"
