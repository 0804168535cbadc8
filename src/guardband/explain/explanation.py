"""Explanations: what each column adds to the width of an interval and to the prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import Side
from guardband.words import plain

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Of = Literal["width", "point"]
"""What is explained: the width of an interval, or the prediction."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why intervals are as wide as they are, and predictions as large: what each column adds.

    ``model.explain`` makes one. The contributions of a row add up to its width less the average width of the
    background rows, and to its prediction less their average prediction. They are interventional Shapley values.

    Parameters
    ----------
    columns : tuple of str
        The d columns.
    cells : tuple of tuples of str
        The values of the n explained rows in these columns, as text.
    rows : array of shape (n,)
        The positions of the explained rows in ``X``, counted from 0.
    confidence_level : float or None
        The confidence level of the intervals. None if a risk is promised.
    widths : array of shape (n,)
        The width of each interval.
    points : array of shape (n,)
        Each prediction.
    base_width : float
        The average width of the background rows.
    base_point : float
        The average prediction of the background rows.
    width : array of shape (n, d)
        What each column adds to the width. Negative values make the interval narrower.
    point : array of shape (n, d)
        What each column adds to the prediction. Negative values make it smaller.
    width_error : array of shape (n, d)
        The standard errors of the contributions to the width. They are 0 if ``exact``.
    point_error : array of shape (n, d)
        The standard errors of the contributions to the prediction. They are 0 if ``exact``.
    exact : bool
        Whether all combinations of columns were tried. Otherwise random orders of the columns were.
    n_background : int
        How many background rows the rows were compared with.
    side : {"both", "lower", "upper"}, default "both"
        Which bound the promise is about. If there is only one, "width" stands for its distance from the prediction.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...] = field(repr=False)
    rows: NDArray[np.intp]
    confidence_level: float | None
    widths: Array = field(repr=False)
    points: Array = field(repr=False)
    base_width: float
    base_point: float
    width: Array = field(repr=False)
    point: Array = field(repr=False)
    width_error: Array = field(repr=False)
    point_error: Array = field(repr=False)
    exact: bool
    n_background: int
    side: Side = "both"

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return "\n".join(self.in_words(i) for i in range(len(self)))

    def in_words(self, i: int = 0, *, of: Of | None = None, most: int = 5) -> str:
        """Return what makes an interval wide and what moves its prediction, in plain words.

        Parameters
        ----------
        i : int, default 0
            Which of the explained rows, counted from 0.
        of : {"width", "point"}, default None
            Whether to explain the width or the prediction alone. By default both.
        most : int, default 5
            How many columns to name, those that change the row most. All others are added up.

        Returns
        -------
        str
            Some sentences. A number after ± is twice the standard error of a contribution.
        """
        from guardband.explain.sentences import sentences

        return " ".join(sentences(self, i, own, most) for own in (("width", "point") if of is None else (of,)))

    def by_column(self, of: Of = "width") -> dict[str, float]:
        """Return how much each column matters for the explained rows: its mean absolute contribution, largest first.

        Parameters
        ----------
        of : {"width", "point"}, default "width"
            Whether to look at the width or at the prediction.
        """
        means = np.abs(self.contributions(of)[0]).mean(0)
        return {self.columns[j]: float(means[j]) for j in np.argsort(-means, kind="stable")}

    def contributions(self, of: Of = "width") -> tuple[Array, Array]:
        """Return the contributions to the width or to the prediction and their standard errors, ``(n, d)`` each.

        Parameters
        ----------
        of : {"width", "point"}, default "width"
            Whether to look at the width or at the prediction.
        """
        if of not in ("width", "point"):
            raise ValueError(f'of must be "width" or "point", found {of!r}.')
        return (self.width, self.width_error) if of == "width" else (self.point, self.point_error)

    def whole(self, i: int, of: Of = "width") -> tuple[float, float]:
        """Return the width of an explained row, or its prediction, and the average of the background rows.

        Parameters
        ----------
        i : int
            Which of the explained rows, counted from 0.
        of : {"width", "point"}, default "width"
            Whether to look at the width or at the prediction.
        """
        values, average = (self.widths, self.base_width) if of == "width" else (self.points, self.base_point)
        return float(values[i]), average

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with one line for each explained row and column: its value, contributions and their errors."""
        import pandas as pd

        n, d = self.width.shape
        return pd.DataFrame(
            {
                "row": np.repeat(self.rows, d),
                "column": list(self.columns) * n,
                "value": [cell for cells in self.cells for cell in cells],
                "width": self.width.ravel(),
                "width_error": self.width_error.ravel(),
                "point": self.point.ravel(),
                "point_error": self.point_error.ravel(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers, ready for JSON."""
        own: dict[str, Any] = plain({name: getattr(self, name) for name in self.__dataclass_fields__})
        return own

    def plot(self, row: int = 0, *, of: Of = "width", most: int = 10, ax: Any = None) -> Any:
        """Draw the contributions of one explained row as bars, largest first, and return the axes.

        Needs matplotlib: ``pip install "guardband[plots]"``.

        Parameters
        ----------
        row : int, default 0
            Which of the explained rows, counted from 0.
        of : {"width", "point"}, default "width"
            Whether to draw what makes the interval wide or what moves the prediction.
        most : int, default 10
            How many columns to draw at most. The others are added up in one bar.
        ax : matplotlib axes, default None
            Where to draw; otherwise a new figure.
        """
        from guardband.explain.plot import plot_contributions

        return plot_contributions(self, row, of, most, ax)
