"""Distributions from predictions of any model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.distribution import Distribution
from guardband.bands.placement import ByQuantiles, ByResidual, ByScale, Placement
from guardband.bands.stated import Probabilities, Selection
from guardband.bands.units import Units
from guardband.calibration.places import CalibratedPlaces
from guardband.data.entities import entities_of_labels
from guardband.data.target import read_target
from guardband.words import rows_named

Array = NDArray[np.float64]

METHOD = "The calibrator"
UNITS = Units()


class DistributionCalibrator:
    """Turns quantiles, points, or points with a scale, of any model, into calibrated distributions.

    ``fit`` takes predictions of calibration rows with their true values, and ``transform`` new ones. Predictions
    are quantiles ``(n, J)`` at ``levels``, points ``(n,)``, or a tuple of points and scales, ``(n,)`` each, such as
    means and standard deviations. Quantiles that cross are put in order.

    Beyond the first and the last quantile guardband continues the distribution exponentially, at the rate of a Laplace
    distribution. The promise does not depend on it.

    Parameters
    ----------
    levels : sequence of float, default None
        The levels of the quantiles, increasing, at least two. None if predictions are points.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rule = DistributionCalibrator().fit(np.zeros(99), rng.standard_normal(99))
    >>> rows = rule.transform([10.0, 20.0])
    >>> rows.quantile([0.1, 0.9]).round(1).tolist()
    [[8.8, 11.5], [18.8, 21.5]]
    """

    def __init__(self, levels: Sequence[float] | None = None) -> None:
        self.levels = None if levels is None else _checked(levels)
        self._places: CalibratedPlaces | None = None

    def fit(self, predictions: Any, y: ArrayLike, *, entities: ArrayLike | None = None) -> DistributionCalibrator:
        """Calibrate on predictions and true values of rows that no training has seen.

        Parameters
        ----------
        predictions : array of shape (n, J) or (n,), or pair of arrays of shape (n,)
            The predictions of the calibration rows.
        y : array of shape (n,)
            Their true values.
        entities : array of shape (n,), default None
            What each row belongs to, such as a patient. The promise is then for a new row of a new one.
        """
        matrix, placement = self._read(predictions)
        truth = read_target(y, len(matrix))
        together = None if entities is None else entities_of_labels(entities, len(matrix))
        self._places = CalibratedPlaces.of(METHOD, placement, matrix, truth, together)
        return self

    def transform(self, predictions: Any) -> Distribution:
        """Return the calibrated distributions of new rows.

        Parameters
        ----------
        predictions : array of shape (n, J) or (n,), or pair of arrays of shape (n,)
            Their predictions, of the kind given to ``fit``.
        """
        return self.places.distribution(self._new(predictions), UNITS)

    def probability(
        self, predictions: Any, *, above: ArrayLike | None = None, below: ArrayLike | None = None
    ) -> Probabilities:
        """Return how probable it is that each new row lies above a value, or below it.

        Parameters
        ----------
        predictions : array of shape (n, J) or (n,), or pair of arrays of shape (n,)
            The predictions of new rows.
        above : float or array of shape (n,), default None
            The value that rows are to exceed.
        below : float or array of shape (n,), default None
            The value that rows are to stay below, in place of ``above``.
        """
        return self.places.probability(self._new(predictions), UNITS, above, below)

    def select(
        self, predictions: Any, *, above: float | None = None, below: float | None = None, fdr: float = 0.1
    ) -> Selection:
        """Return the new rows that lie above a value, or below it, with few wrong ones among them.

        Parameters
        ----------
        predictions : array of shape (n, J) or (n,), or pair of arrays of shape (n,)
            The predictions of the rows to select from, of all of them at once.
        above : float, default None
            The value that rows are to exceed.
        below : float, default None
            The value that rows are to stay below, in place of ``above``.
        fdr : float, default 0.1
            The share of the selected rows that may be wrong, on average.
        """
        return self.places.select(self._new(predictions), UNITS, above, below, fdr)

    @property
    def certificate(self) -> Certificate:
        """What is promised of quantiles."""
        return self.places.certificate

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to one file, which ``gb.load`` reads.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from guardband.doors.model_file import save

        save(self, path)

    @classmethod
    def restored(cls, levels: Sequence[float] | None, places: CalibratedPlaces) -> DistributionCalibrator:
        """Return a calibrator from a file.

        Parameters
        ----------
        levels : sequence of float or None
            The levels of the quantiles.
        places : CalibratedPlaces
            The places of the calibration rows.
        """
        out = cls(levels)
        out._places = places
        return out

    @property
    def places(self) -> CalibratedPlaces:
        """The places of the calibration rows."""
        if self._places is None:
            raise ValueError("This calibrator is not calibrated yet. Call fit(predictions, y) first.")
        return self._places

    def _new(self, predictions: Any) -> Array:
        matrix, placement = self._read(predictions)
        if type(placement) is not type(self.places.placement):
            raise ValueError(
                f"fit was given {self.places.placement.what} for each row, and these predictions are "
                f"{placement.what}. Bring predictions of one kind."
            )
        return matrix

    def _read(self, predictions: Any) -> tuple[Array, Placement]:
        """Return predictions as ``(n, J)``, and how outcomes are placed within them."""
        if self.levels is None and isinstance(predictions, tuple) and len(predictions) == 2:
            point, scale = (np.asarray(own, dtype=np.float64) for own in predictions)
            if point.ndim != 1 or point.shape != scale.shape:
                raise ValueError(f"Points and scales must have one shape (n,), found {point.shape} and {scale.shape}.")
            if (scale <= 0).any():
                raise ValueError(f"Scales must be positive. Check {rows_named(np.flatnonzero(scale <= 0))}.")
            return _finite(np.stack([point, scale], axis=1)), ByScale()
        matrix = np.asarray(predictions, dtype=np.float64)
        if self.levels is None:
            if matrix.ndim != 1:
                raise ValueError(
                    f"Predictions must be points (n,) or a tuple (points, scales), found shape {matrix.shape}. For "
                    "quantiles, pass their levels: DistributionCalibrator(levels=[...])."
                )
            return _finite(matrix[:, None]), ByResidual()
        if matrix.ndim != 2 or matrix.shape[1] != len(self.levels):
            raise ValueError(
                f"Predictions must be quantiles of shape (n, {len(self.levels)}), one for each level, found shape "
                f"{matrix.shape}."
            )
        return _finite(np.sort(matrix, axis=1)), ByQuantiles.of(self.levels)


def _checked(levels: Sequence[float]) -> tuple[float, ...]:
    own = tuple(float(level) for level in levels)
    if len(own) < 2 or not all(0 < a < b < 1 for a, b in pairwise(own)):
        raise ValueError(
            f"levels must be two or more numbers that increase strictly between 0 and 1, found {list(levels)}."
        )
    return own


def _finite(matrix: Array) -> Array:
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise ValueError(f"Predictions must be finite. Correct or remove {rows_named(wrong)}.")
    return matrix
