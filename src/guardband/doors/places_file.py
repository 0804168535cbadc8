"""Places of calibration rows in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.bands.placement import ByQuantiles, ByResidual, ByScale, Placement
from guardband.calibration.calibrated import Calibrated, Unit
from guardband.calibration.places import CalibratedPlaces
from guardband.doors.distribution_calibrator import METHOD, DistributionCalibrator
from guardband.doors.model_checks import check_tensors

PLACES = "placed."
NAMES = {"places", "kept", "kept_places"}


def tails_of(placement: Placement | None) -> list[float] | None:
    """Return the tails of a placement for JSON: all else follows from what the model predicts."""
    return [placement.below, placement.above] if isinstance(placement, ByQuantiles) else None


def with_tails(placement: Placement | None, tails: list[float] | None) -> Placement | None:
    """Return a placement with the tails of a file; a file of an earlier version has none."""
    if not isinstance(placement, ByQuantiles) or tails is None:
        return placement
    return replace(placement, below=tails[0], above=tails[1])


def places_tensors(places: CalibratedPlaces | None) -> dict[str, Tensor]:
    """Return the places of calibration rows, if there are any."""
    arrays = {} if places is None else places.to_arrays()
    return {PLACES + name: torch.from_numpy(np.require(array, requirements="W")) for name, array in arrays.items()}


def described_distribution(rule: DistributionCalibrator) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a calibrated ``DistributionCalibrator``."""
    places = rule.places
    entries = {
        "kind": "distribution",
        "placement": places.placement.name,
        "levels": None if rule.levels is None else list(rule.levels),
        "unit": None if places.unit is None else asdict(places.unit),
    }
    return entries, places_tensors(places)


def restored_distribution(entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> DistributionCalibrator:
    """Return the calibrator of a file; contradictions are refused."""
    check_tensors(tensors, (), (PLACES,))
    rule, name = DistributionCalibrator(entries["levels"]), entries["placement"]
    if (rule.levels is not None) != (name == ByQuantiles.name):
        raise ValueError("its levels are not those of its predictions")
    kinds = {ByResidual.name: ByResidual(), ByScale.name: ByScale()}
    placement = kinds[name] if rule.levels is None else ByQuantiles.of(rule.levels)
    unit = None if entries["unit"] is None else Unit(**entries["unit"])
    arrays = _arrays(tensors)
    if set(arrays) != NAMES:
        raise ValueError("it lacks the places of its calibration rows")
    places = CalibratedPlaces.from_arrays(arrays, method=METHOD, placement=placement, unit=unit)
    if unit is not None and unit.n_rows < len(places.places):
        raise ValueError("its number of calibration rows does not fit")
    return DistributionCalibrator.restored(rule.levels, places)


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name.removeprefix(PLACES): t.numpy() for name, t in tensors.items() if name.startswith(PLACES)}


def restored_places(
    placement: Placement | None, tensors: Mapping[str, Tensor], calibrated: Calibrated, n: int
) -> CalibratedPlaces | None:
    """Return the places of n calibration rows, or of as many entities; None if the file holds none."""
    arrays = _arrays(tensors)
    if not arrays:
        return None
    if placement is None or set(arrays) != NAMES:
        raise ValueError("it holds places of calibration rows that its networks do not have")
    fields: dict[str, Any] = {"unit": calibrated.unit, "notes": calibrated.notes, "in_time": calibrated.in_time}
    own = CalibratedPlaces.from_arrays(arrays, method=calibrated.rule.method, placement=placement, **fields)
    if len(own.places) != n:
        raise ValueError("its number of places is not that of its calibration rows")
    return own
