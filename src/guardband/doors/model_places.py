"""Where outcomes lie within what a model of any library predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guardband.bands.placement import ByQuantiles, ByResidual, ByScale, Placement
from guardband.bands.predicted import OneDeviation, PredictedGaussian, PredictedInterval
from guardband.calibration.places import CalibratedPlaces
from guardband.data.entities import Entities
from guardband.nn.reading import QuantileColumns

if TYPE_CHECKING:
    from guardband.doors.model_bands import ModelBands
    from guardband.doors.predictors import Columns

Array = NDArray[np.float64]


def placed_columns(bands: ModelBands, columns: Columns, tau: float) -> tuple[Array, Placement] | None:
    """Return what a model predicts as a placement takes it, ``(n, J)``, and the placement; None if it has none.

    ``tau`` is the level of its bounds.
    """
    reading = bands.declared.reading
    predicted = bands.read(columns)
    if isinstance(reading, QuantileColumns):
        return np.sort(np.asarray(columns, dtype=np.float64), axis=1), ByQuantiles.of(reading.quantiles)
    if predicted.candidates != 1 or predicted.copies != 1:
        return None
    parts = [np.asarray(part[0, 0], dtype=np.float64) for part in predicted.parts]
    if isinstance(predicted, OneDeviation):
        return np.stack([parts[1], parts[2] - parts[1]], axis=1), ByScale()
    if isinstance(predicted, PredictedGaussian):
        return np.stack(parts, axis=1), ByScale()
    if isinstance(predicted, PredictedInterval):
        return np.stack(parts, axis=1), ByQuantiles.of((tau / 2, 0.5, 1 - tau / 2))
    return np.stack(parts, axis=1), ByResidual()


def model_places(
    method: str, bands: ModelBands, columns: Columns, tau: float, y: Array, entities: Entities | None
) -> CalibratedPlaces | None:
    """Return where calibration rows lie within their predictions, if all are finite."""
    found = placed_columns(bands, columns, tau)
    if found is None or not np.isfinite(found[0]).all():
        return None
    return CalibratedPlaces.of(method, found[1], found[0], y, entities)
