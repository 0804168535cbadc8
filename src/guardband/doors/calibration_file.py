"""A calibration in a model file: what the calibration rows left, and the certificate that must follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from msgspec import convert
from torch import Tensor

from guardband.bands.certificate import Certificate
from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated, Chosen, OnInsufficient, Unit
from guardband.calibration.counted import CountedSummary
from guardband.calibration.counted_at import summary_from
from guardband.calibration.rule import Rule
from guardband.doors.model_checks import check_counted, check_summary, like_predicted
from guardband.doors.stored_values import NotNegative

SUMMARY = "summary."
WIDTHS = list[tuple[tuple[NotNegative, ...] | None, tuple[NotNegative, ...] | None]]


def calibration_entries(calibrated: Calibrated | None) -> dict[str, Any]:
    """Return notes, certificate and unit for JSON, None for a model that is not calibrated."""
    chosen = None if calibrated is None else calibrated.chosen
    return ({} if chosen is None else {"chosen": asdict(chosen)}) | {
        "notes": None if calibrated is None else list(calibrated.notes),
        "certificate": None if calibrated is None else calibrated.certificate.to_dict(),
        "unit": None if calibrated is None or calibrated.unit is None else asdict(calibrated.unit),
    }


def calibration_tensors(calibrated: Calibrated) -> dict[str, Tensor]:
    """Return what the calibration rows left; what cannot be written to, such as a column of Arrow, is copied."""
    arrays = calibrated.summary.to_arrays()
    return {SUMMARY + name: torch.from_numpy(np.require(array, requirements="W")) for name, array in arrays.items()}


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
    summary, notes = summary_from(arrays), tuple(entries["notes"] or ())
    unit = None if entries["unit"] is None else Unit(**entries["unit"])
    rule = rule if unit is None else rule.for_entities() or rule
    if isinstance(summary, CountedSummary):  # which keeps the fingerprints of a few of its rows
        kept = like_predicted(rule, like)
        check_counted(summary, replace(kept, blocks=tuple(map(rule.countable, kept.blocks))))
        n_rows = summary.n if unit is None else unit.n_rows
        if n_rows < summary.n:
            raise ValueError("its number of calibration rows does not fit")
    else:
        check_summary(summary, like_predicted(rule, like), n_rows)
    if unit is not None and unit.n_rows != n_rows:
        raise ValueError("its number of calibration rows does not fit")
    chosen = Chosen(**entries["chosen"]) if entries.get("chosen") else None
    calibrated = Calibrated.by(rule, summary, notes, on_insufficient, unit, is_loaded=True, chosen=chosen)
    saved = Certificate.from_dict(entries["certificate"])
    calibrated = replace(calibrated, in_time=saved.in_time)  # of which nothing but words follows
    if calibrated.certificate != saved:
        raise ValueError("what is calibrated here is not what the saved certificate promises")
    if not saved.promise.is_parted:
        return calibrated
    convert([(part.width, part.plain_width) for part in saved.promise.statements()], WIDTHS)
    return replace(calibrated, found=replace(calibrated.found, promise=saved.promise))  # which says how wide groups are
