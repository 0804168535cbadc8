"""A calibrated rule as a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.data.grouping import Grouping
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.used_rows import UsedRows
from guardband.doors.band_columns import PARTS, BandColumns
from guardband.doors.band_rows import LoadedRows
from guardband.doors.bands import BandCalibrator
from guardband.doors.calibration_file import (
    SUMMARY,
    calibration_entries,
    calibration_tensors,
    restored_calibration,
)
from guardband.doors.file_arguments import plain_arguments
from guardband.doors.model_checks import check_tensors
from guardband.doors.weighting_file import restored_weighting, weighting_entries

PRINTS, LABELS = "calibration_prints", "calibration_entities"


def described_rule(rule: BandCalibrator) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a rule."""
    columns, used, split_by, grouping = rule.columns, rule.fitted_, rule.belonging.keys, rule.grouping
    entries = {
        "kind": "rule",
        "arguments": {**plain_arguments(rule.arguments), "tau": None},
        "form": columns.form,
        "columns": list(columns.names),
        "several": list(columns.targets) or None,
        "split_by": list(split_by) or None,
        "group_by": None if grouping is None or grouping.by is None else list(grouping.column_names),
        "grouping": None if grouping is None else grouping.to_dict(),
        "weighting": weighting_entries(rule.weighting),
        **calibration_entries(rule.calibration_),
        "reference": used.reference.to_dict(),
        "repeat_rule": None if used.repeat_rule is None else used.repeat_rule.to_dict(),
    }
    tensors = {PRINTS: torch.from_numpy(used.calibration_prints.view(np.int64))}
    if used.calibration_entities is not None:
        tensors[LABELS] = torch.from_numpy(used.calibration_entities)
    return entries, tensors | calibration_tensors(rule.calibration_)


def restored_rule(
    entries: Mapping[str, Any], tensors: Mapping[str, Tensor], arguments: Mapping[str, Any]
) -> BandCalibrator:
    """Return the rule of a file; ``arguments`` are those of the file. Contradictions are refused."""
    targets = tuple(entries.get("several") or ())
    columns = BandColumns(entries["form"], tuple(entries["columns"]), targets)
    if bool(targets) != (arguments.get("targets") is not None):
        raise ValueError("its targets are not what its arguments ask for")
    reference = Reference.from_dict(entries["reference"])
    kinds = {own.kind for own in reference.columns}
    if len(columns.names) % (len(PARTS[columns.form]) * max(1, len(targets))) or len(set(columns.names)) < len(
        columns.names
    ):
        raise ValueError("its columns are not those of such predictions")
    if columns.form in ("lower", "upper") and columns.form != arguments["side"]:
        raise ValueError("its columns lack a bound that its promise is about")
    if columns.names != tuple(own.name for own in reference.columns) or kinds != {"number"}:
        raise ValueError("its summary of the calibration rows is of other columns")
    if entries["repeat_rule"] is not None and not set(entries["repeat_rule"]["columns"]) <= set(columns.names):
        raise ValueError("its repeated rows are of other columns")
    if (LABELS in tensors) != (entries["unit"] is not None):
        raise ValueError("what its rows belong to is not what its certificate says")
    check_tensors(tensors, (PRINTS, LABELS), (SUMMARY,))
    prints = tensors[PRINTS].numpy().view(np.uint64)
    like = columns.predicted(np.arange(1.0, len(columns.names) + 1)[None])
    used = UsedRows(
        training_prints=prints[:0],
        calibration_prints=prints,
        reference=reference,
        calibration_entities=tensors[LABELS].numpy() if LABELS in tensors else None,
        repeat_rule=None if entries["repeat_rule"] is None else RepeatRule.from_dict(entries["repeat_rule"]),
    )
    return BandCalibrator.restored(
        {name: value for name, value in arguments.items() if name not in ("tau", "groups")},
        LoadedRows(columns, used, entries["split_by"]),
        like,
        lambda rule: restored_calibration(rule, entries, tensors, like, len(prints), arguments["on_insufficient"]),
        None if entries["grouping"] is None else Grouping.from_dict(entries["grouping"], entries["group_by"]),
        restored_weighting(entries["weighting"], tensors, None, len(columns.names)),
    )
