"""Distribution: for each row, how likely each outcome is, calibrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Level, Levels
from guardband.bands.placement import Placement
from guardband.bands.ranks import marginal_rank, spread_ranks
from guardband.bands.units import Units

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Array = NDArray[np.float64]

MOST_POINTS = 999
"""``mean`` and ``crps`` look at all calibration places, or at so many that are spread evenly over them."""
AT_ONCE = 2**17
"""So many numbers are computed at a time: memory does not grow with the number of rows."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """A calibrated distribution of the outcome for each of n rows.

    n2 calibration rows told where outcomes lie within their predictions. The quantile at p is the outcome at the k-th
    smallest of these places, with k = ceil(p (n2 + 1)). At least p of new rows lie at or below it, on average over
    calibration sets. Where k > n2 it is infinite.

    ``mean``, ``sample`` and ``crps`` need finite outcomes. They take the outcomes at the n2 places as equally likely,
    and leave out infinite places and what may lie beyond all of them.

    Parameters
    ----------
    predictions : array of shape (n, J)
        What the model predicts for each row, such as J quantiles.
    placement : Placement
        Where an outcome lies within its prediction.
    places : array of shape (n2,)
        The places of the calibration rows, in increasing order.
    units : Units, default Units()
        The scale on which outcomes are placed, and the way back.
    certificate : Certificate, default None
        What is promised.
    index : index, default None
        The index of the input, for ``to_pandas``.
    input_names : tuple of str, default ()
        The columns of the input, to avoid names that occur there.

    Examples
    --------
    >>> from guardband.bands.placement import ByResidual
    >>> rows = Distribution(np.array([[10.0], [20.0]]), ByResidual(), np.arange(-4.0, 5.0))
    >>> rows.quantile(0.5), rows.quantile([0.1, 0.9])[0]
    (array([10., 20.]), array([ 6., 14.]))
    >>> rows.cdf(10), rows.mean()
    (array([0.5, 0. ]), array([10., 20.]))
    """

    predictions: Array
    placement: Placement
    places: Array
    units: Units = field(default_factory=Units)
    certificate: Certificate | None = None
    index: Any = field(default=None, repr=False)
    input_names: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.predictions)

    def __getitem__(self, rows: Any) -> Distribution:
        """Return the distributions of some rows: a slice, positions, a mask, or one position."""
        chosen = np.arange(len(self))[rows].reshape(-1)
        index = None if self.index is None else self.index[chosen]
        return replace(self, predictions=self.predictions[chosen], index=index)

    def __repr__(self) -> str:
        return f"Distribution of {len(self):,} rows by {len(self.places):,} calibration rows"

    def cdf(self, y: ArrayLike) -> Array:
        """Return the calibrated probability of an outcome at or below y: (number of places at or below) / (n2 + 1).

        Parameters
        ----------
        y : float, array of shape (n,) or (n, L)
            One value for all rows, one for each, or L for each.

        Returns
        -------
        array of shape (n,) or (n, L)
            The probabilities. A single value gives ``(n,)``.
        """
        values = np.asarray(y, dtype=np.float64)
        if values.ndim == 2 and len(values) == len(self):
            return np.stack([self.cdf(column) for column in values.T], axis=1)
        values = self._one_each(values, "y")

        def shares(rows: slice) -> Array:
            work = self.units.to_work(values[rows])
            at = self.placement.place(self.predictions[rows], work)
            counts = np.searchsorted(self.places, at, side="right")
            return np.where(np.isposinf(work), 1.0, counts / (len(self.places) + 1))[:, None]

        return self._blocks(shares, 1)[:, 0]

    def quantile(self, p: Level | Sequence[Level] | ArrayLike) -> Array:
        """Return the calibrated quantile at p, or at several levels; it is infinite if there are too few places for it.

        Parameters
        ----------
        p : float or sequence of float
            The levels, strictly between 0 and 1.

        Returns
        -------
        array of shape (n,) or (n, L)
            The quantiles. A single level gives ``(n,)``. They increase with the level.
        """
        levels = quantile_levels(p)
        n = len(self.places)
        ranks = [marginal_rank(level, n) for level in levels.values]
        own = np.array([self.places[k - 1] if k <= n else np.inf for k in ranks])
        out = self._blocks(lambda block: self.units.rounded(self._at_least(block, own)), len(own))
        return out[:, 0] if levels.scalar else out

    def sample(self, k: int, seed: int = 0) -> Array:
        """Return k outcomes drawn at random for each row, independent of each other.

        Parameters
        ----------
        k : int
            How many to draw for each row.
        seed : int, default 0
            The seed. The same seed gives the same outcomes.

        Returns
        -------
        array of shape (n, k)
            The outcomes.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k must be a number of samples, at least 1, found {k!r}.")
        rng, finite = np.random.default_rng(seed), self._finite()

        def draw(rows: slice) -> Array:
            own = self.predictions[rows]
            places = finite[rng.integers(len(finite), size=(len(own), k))]
            return self.units.rounded(self.units.back(self.placement.outcome(own, places)))

        return self._blocks(draw, int(k))

    def mean(self) -> Array:
        """Return the mean of each row's distribution, ``(n,)``."""
        own = self._spread()
        return self._blocks(lambda rows: self._outcomes(rows, own).mean(axis=1, keepdims=True), 1, len(own))[:, 0]

    def crps(self, y: ArrayLike) -> Array:
        """Return the continuous ranked probability score of each row, ``(n,)``: the lower, the better.

        It is the mean distance between y and an outcome of the distribution, less half of that between two such
        outcomes. It has the unit of y, and for a distribution without spread it is the absolute error.

        Parameters
        ----------
        y : array of shape (n,)
            The true values.
        """
        truth, own = self._one_each(np.asarray(y, dtype=np.float64), "y"), self._spread()
        m = len(own)
        weight = (2 * np.arange(1, m + 1) - m - 1) / m**2

        def score(rows: slice) -> Array:
            points = self._outcomes(rows, own)
            apart = (points * weight).sum(axis=1)  # row by row: no block size changes a bit of it
            points -= truth[rows, None]
            scores: Array = np.abs(points, out=points).mean(axis=1) - apart
            return scores[:, None]

        return self._blocks(score, 1, len(own))[:, 0]

    def place(self, work: Array) -> Array:
        """Return where outcomes on the scale of places lie, ``(n,) -> (n,)``, in blocks of rows.

        Parameters
        ----------
        work : array of shape (n,)
            One outcome for each row, on the scale of places.
        """
        out = np.empty(len(self))
        for rows in self._rows(self.placement.columns):
            out[rows] = self.placement.place(self.predictions[rows], work[rows])
        return out

    def to_pandas(self, levels: Sequence[Level] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> pd.DataFrame:
        """Return a table with a column for each quantile, and the index of the input.

        Parameters
        ----------
        levels : sequence of float, default (0.05, 0.25, 0.5, 0.75, 0.95)
            The levels of the quantiles.
        """
        import pandas as pd

        return pd.DataFrame(self.columns(levels), index=self.index)

    def to_polars(self, levels: Sequence[Level] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> pl.DataFrame:
        """Return a table with a column for each quantile.

        Parameters
        ----------
        levels : sequence of float, default (0.05, 0.25, 0.5, 0.75, 0.95)
            The levels of the quantiles.
        """
        import polars as pl

        return pl.DataFrame(self.columns(levels))

    def columns(self, levels: Sequence[Level]) -> dict[str, Array]:
        """Return quantiles by the names that a table gives them, such as ``quantile_0.05``.

        Parameters
        ----------
        levels : sequence of float
            The levels of the quantiles.
        """
        values = self.quantile(list(levels))
        columns = {f"quantile_{level:g}": values[:, i] for i, level in enumerate(map(float, levels))}
        if set(columns) & set(self.input_names):
            return {f"guardband_{name}": own for name, own in columns.items()}
        return columns

    def _at_least(self, rows: slice, places: Array) -> Array:
        """Return outcomes that no outcome with one of these places exceeds, however both are rounded."""
        work = self.placement.outcome(self.predictions[rows], places)
        with np.errstate(invalid="ignore"):
            above = work + self.placement.slack(self.predictions[rows], work)
        return self.units.back(np.where(np.isfinite(work), above, work), up=True)

    def _outcomes(self, rows: slice, places: Array) -> Array:
        return self.units.back(self.placement.outcome(self.predictions[rows], places))

    def _spread(self) -> Array:
        finite = self._finite()
        return finite[spread_ranks(len(finite), MOST_POINTS) - 1]

    def _finite(self) -> Array:
        """Return the places that are finite: an outcome beside a prediction of no width lies infinitely far out."""
        finite = self.places[np.isfinite(self.places)]
        if not len(finite):
            raise ValueError("No calibration row has a finite place: the predictions have no width. Check the model.")
        return finite

    def _rows(self, width: int) -> Iterator[slice]:
        step = max(1, AT_ONCE // max(1, width))
        for first in range(0, len(self), step):
            yield slice(first, min(first + step, len(self)))

    def _blocks(self, compute: Callable[[slice], Array], columns: int, width: int | None = None) -> Array:
        """Return what is computed of blocks of rows, ``(n, columns)``; ``width`` numbers are needed for each row."""
        out = np.empty((len(self), columns))
        for rows in self._rows(max(columns, width or 0, self.placement.columns)):
            out[rows] = compute(rows)
        return out

    def _one_each(self, values: Array, name: str) -> Array:
        if values.ndim == 0:
            values = np.broadcast_to(values, (len(self),))
        if values.shape != (len(self),):
            raise ValueError(
                f"{name} must be one number, or one for each of {len(self)} rows, found shape {values.shape}."
            )
        if np.isnan(values).any():
            raise ValueError(f"{name} has a missing value in row {int(np.isnan(values).argmax())}. Fill it in.")
        return values


def quantile_levels(p: Any) -> Levels:
    """Return levels of quantiles as exact fractions; those that are not between 0 and 1 are refused."""
    given = p.tolist() if isinstance(p, np.ndarray) else p
    if given is None:
        raise ValueError("Say which quantiles you want, such as [0.05, 0.5, 0.95].")
    try:
        return Levels.of(given)
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("confidence_level", "The level of a quantile")) from None
