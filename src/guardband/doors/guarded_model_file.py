"""The calibration of a model of any library as a file; the model itself is brought again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.used_rows import UsedRows
from guardband.doors.groups import grouped, request_of, restored_groups
from guardband.doors.guarded_model import GuardedModel, ModelBands, asked
from guardband.doors.model_checks import check_columns, check_tensors
from guardband.doors.model_probe import probe_of, refuse_another
from guardband.doors.outputs import declared
from guardband.doors.stored_calibration import (
    SUMMARY,
    calibration_entries,
    calibration_tensors,
    restored_calibration,
)
from guardband.doors.weighting_file import WEIGHTING, restored_weighting, weighting_entries, weighting_tensors
from guardband.doors.weights import weighted
from guardband.exceptions import ModelFileError
from guardband.methods.registry import method_named

PRINTS = ("training_prints", "calibration_prints")
LABELS = "calibration_entities"


def described(guarded: GuardedModel, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a calibrated model; ``arguments`` are its own, for JSON."""
    used, split_by = guarded.fitted_, guarded.belonging.split_by
    if callable(split_by):
        raise ValueError("A function as split_by cannot be saved. Calibrate with entities=..., or name columns.")
    entries = {
        "kind": "model",
        "arguments": arguments,
        "declared": guarded.declared_outputs,
        "asked_levels": list(guarded.bands.levels),
        "has_residuals": guarded.has_residuals,
        "split_by": split_by if split_by is None or isinstance(split_by, str) else list(split_by),
        "features": {"names": list(guarded.names or ()), "count": len(guarded.encoder.codes)},
        "encoder": guarded.encoder.to_dict(),
        **calibration_entries(guarded.calibration_),
        "reference": used.reference.to_dict(),
        "repeat_rule": None if used.repeat_rule is None else used.repeat_rule.to_dict(),
        "grouping": None if guarded.grouping is None else guarded.grouping.to_dict(),
        "weighting": weighting_entries(guarded.weighting),
        "probe": probe_of(guarded),
    }
    tensors = {name: torch.from_numpy(getattr(used, name).view(np.int64)) for name in PRINTS}
    if used.calibration_entities is not None:
        tensors[LABELS] = torch.from_numpy(used.calibration_entities)
    return entries, tensors | calibration_tensors(guarded.calibration_) | weighting_tensors(guarded.weighting)


def restored(
    entries: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    arguments: Mapping[str, Any],
    model: Any,
    residuals: Any,
    weights: Any = None,
) -> GuardedModel:
    """Return a model together with its calibration; ``arguments`` are those of the file, ``weights`` a function."""
    if model is None:
        raise ModelFileError("it holds the calibration of a model of your own: pass the model as load(..., model=...).")
    if (residuals is not None) != entries["has_residuals"]:
        what = "needs the rows of its residuals: pass residuals=(X, y)" if residuals is None else "uses no residuals"
        raise ModelFileError(f"it {what} as you did to calibrate.")
    encoder = TableEncoder.from_dict(entries["encoder"])
    check_columns({**entries, "in_features": encoder.width, "seen": None}, encoder)
    check_tensors(tensors, (*PRINTS, LABELS), (SUMMARY, WEIGHTING))
    method = method_named(arguments["method"])
    request, grouping = request_of(arguments), restored_groups(entries, arguments["groups"])
    method.check(request)
    method.check_networks(request)
    read, request = declared(arguments["outputs"], method, request)
    bands = ModelBands(asked(model, entries["declared"], residuals), read, tuple(entries["asked_levels"]))
    training, calibration = (tensors[name].numpy().view(np.uint64) for name in PRINTS)
    weighting = restored_weighting(entries["weighting"], tensors, weights, entries["features"]["count"])
    plain = grouped(method.rule(request), grouping)
    calibrated = restored_calibration(
        weighted(plain, weighting),
        entries,
        tensors,
        bands.read(np.zeros((1, read.reading.columns)) + np.arange(1, read.reading.columns + 1)),
        len(calibration),
        request.on_insufficient,
    )
    rule = None if entries["repeat_rule"] is None else RepeatRule.from_dict(entries["repeat_rule"])
    used = UsedRows(
        training_prints=training,
        calibration_prints=calibration,
        reference=Reference.from_dict(entries["reference"]),
        calibration_entities=tensors[LABELS].numpy() if LABELS in tensors else None,
        repeat_rule=rule,
    )
    guarded = GuardedModel(
        model,
        bands,
        calibrated,
        used,
        encoder,
        tuple(entries["features"]["names"]) or None,
        Belonging(entries["split_by"], rule),
        arguments,
        entries["has_residuals"],
        entries["declared"],
        grouping,
        weighting,
        plain,
    )
    refuse_another(guarded, entries["probe"])
    return guarded
