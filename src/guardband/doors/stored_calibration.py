"""A calibration in a model file: what the calibration rows left, and the certificate that must follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from guardband.bands.certificate import Certificate
from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated, OnInsufficient, Unit
from guardband.calibration.rule import Rule
from guardband.calibration.summary import Summary
from guardband.doors.model_checks import check_summary, like_predicted

SUMMARY = "summary."


def calibration_entries(calibrated: Calibrated | None) -> dict[str, Any]:
    """Return notes, certificate and unit for JSON, None for a model that is not calibrated."""
    return {
        "notes": None if calibrated is None else list(calibrated.notes),
        "certificate": None if calibrated is None else calibrated.certificate.to_dict(),
        "unit": None if calibrated is None or calibrated.unit is None else asdict(calibrated.unit),
    }


def calibration_tensors(calibrated: Calibrated) -> dict[str, Tensor]:
    """Return what the calibration rows left."""
    return {SUMMARY + name: torch.from_numpy(array) for name, array in calibrated.summary.to_arrays().items()}


def restored_calibration(
    rule: Rule,
    entries: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    like: Predicted,
    n_rows: int,
    on_insufficient: OnInsufficient,
) -> Calibrated:
    """Return the calibration of n rows; ``like`` is one row of what the model predicts. Contradictions are refused."""
    arrays = {name.removeprefix(SUMMARY): t.numpy() for name, t in tensors.items() if name.startswith(SUMMARY)}
    summary, notes = Summary.from_arrays(arrays), tuple(entries["notes"] or ())
    unit = None if entries["unit"] is None else Unit(**entries["unit"])
    rule = rule if unit is None else rule.for_entities() or rule
    check_summary(summary, like_predicted(rule, like), n_rows)
    if unit is not None and unit.n_rows != n_rows:
        raise ValueError("its number of calibration rows does not fit")
    calibrated = Calibrated.by(rule, summary, notes, on_insufficient, unit, is_loaded=True)
    if calibrated.certificate != Certificate.from_dict(entries["certificate"]):
        raise ValueError("what is calibrated here is not what the saved certificate promises")
    return calibrated
