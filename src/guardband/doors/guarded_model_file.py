"""The calibration of a model of any library as a file; the model itself is brought again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.calibration.cross import crossed
from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.used_rows import UsedRows
from guardband.doors.calibration_file import (
    SUMMARY,
    calibration_entries,
    calibration_tensors,
    restored_calibration,
)
from guardband.doors.crossed_model import FoldBands, fold_models
from guardband.doors.file_arguments import plain_arguments
from guardband.doors.groups import grouped, request_of, restored_groups
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.model_bands import ModelBands, asked, tau_of
from guardband.doors.model_checks import check_columns, check_tensors
from guardband.doors.model_places import placed_columns
from guardband.doors.model_probe import probe_of, refuse_another
from guardband.doors.outputs import declared
from guardband.doors.places_file import PLACES, places_tensors, restored_places
from guardband.doors.predictors import side_by_side
from guardband.doors.several_file import restored_several
from guardband.doors.several_models import SeveralBands, asked_of_each
from guardband.doors.weighting_file import WEIGHTING, restored_weighting, weighting_entries, weighting_tensors
from guardband.doors.weights import weighted
from guardband.exceptions import ModelFileError
from guardband.methods.registry import method_named

PRINTS = ("training_prints", "calibration_prints")
LABELS = "calibration_entities"


def described_model(guarded: GuardedModel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a calibrated model."""
    used, split_by = guarded.fitted_, guarded.belonging.split_by
    if callable(split_by):
        raise ValueError("A function as split_by cannot be saved. Calibrate with entities=..., or name columns.")
    entries = {
        "kind": "model",
        "arguments": plain_arguments(guarded.arguments),
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
        "several": list(guarded.calibration_.rule.target_names) or None,
    }
    tensors = {name: torch.from_numpy(getattr(used, name).view(np.int64)) for name in PRINTS}
    if used.calibration_entities is not None:
        tensors[LABELS] = torch.from_numpy(used.calibration_entities)
    tensors |= calibration_tensors(guarded.calibration_) | weighting_tensors(guarded.weighting)
    return entries, tensors | places_tensors(guarded.places)


def restored_model(
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
    check_tensors(tensors, (*PRINTS, LABELS), (SUMMARY, WEIGHTING, PLACES))
    method = method_named(arguments["method"])
    request, grouping = request_of(arguments), restored_groups(entries, arguments["groups"])
    method.check(request)
    method.check_networks(request)
    read, request = declared(arguments["outputs"], method, request)
    kind, levels = arguments["calibration"], tuple(entries["asked_levels"])
    several = restored_several(method, request, arguments["targets"], entries["several"], arguments["scales"])
    if several is not None and (kind != "split" or residuals is not None):
        raise ValueError("several targets have neither folds nor residuals")
    bands: ModelBands | FoldBands
    if several is not None:
        predictors = asked_of_each(model, several.targets, entries["declared"])
        bands = SeveralBands(side_by_side(predictors), read, levels, several.targets)
    elif kind == "split":
        bands = ModelBands(asked(model, entries["declared"], residuals), read, levels)
    else:
        models = fold_models(model, len(entries["certificate"]["promise"]["fold_sizes"]), kind)
        bands = FoldBands(tuple(ModelBands(asked(own, entries["declared"], None), read, levels) for own in models))
    training, calibration = (tensors[name].numpy().view(np.uint64) for name in PRINTS)
    weighting = restored_weighting(entries["weighting"], tensors, weights, entries["features"]["count"])
    plain = grouped(several or method.rule(request), grouping)
    if isinstance(bands, FoldBands):
        plain = crossed(plain, kind, len(bands.each))
    count = read.reading.columns * (1 if several is None else len(several.targets))
    like = np.arange(1.0, count + 1)[None]
    calibrated = restored_calibration(
        weighted(plain, weighting),
        entries,
        tensors,
        bands.read(like),
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
    one = bands if isinstance(bands, ModelBands) and several is None else None
    found = None if one is None else placed_columns(one, like, tau_of(arguments))
    n_places = len(calibration) if used.calibration_entities is None else len(used.calibration_entities)
    places = restored_places(None if found is None else found[1], tensors, calibrated, n_places)
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
        places=places,
    )
    refuse_another(guarded, entries["probe"])
    return guarded
