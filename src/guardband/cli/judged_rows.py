"""Rows with known true values, read for the model or the rule that they judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardband.cli.console import Speaker
from guardband.cli.labelled import Labelled, read_labelled
from guardband.cli.model_columns import load_for_tables
from guardband.cli.options import columns_in, need_column, need_roles
from guardband.cli.provenance import target_of
from guardband.cli.stream import Inputs
from guardband.doors.read_once import AnyPath
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.data.disk import DiskTable


def read_judged(
    model_path: AnyPath,
    disk: DiskTable,
    target: str | None,
    report_by: str | None,
    time: str | None,
    split_by: list[str],
    device: str,
    speaker: Speaker,
) -> tuple[Model, Labelled]:
    """Return the model in a file, and the rows of a table that judge it."""
    with speaker.loading(f"Loading {model_path}"):
        model = load_for_tables(model_path, device)
    inputs = Inputs.of(model, disk)
    own, *others = judged_targets(model, model_path, target, disk, inputs)
    need_roles(own, ((report_by, "--report-by"), (time, "--time")), disk.names, disk.label)
    fixed = model.belonging.keys
    keys = fixed or tuple(columns_in(split_by, disk.names))
    for name in keys:
        need_column(name, disk.names, "--split-by, as when the model was made" if fixed else "--split-by", disk.label)
    rows = read_labelled(
        disk,
        list(inputs.kinds),
        own,
        speaker,
        report_by=report_by,
        time=time,
        split_by=keys,
        kinds=inputs.kinds,
        others=others,
    )
    return model, rows


def judged_targets(
    model: Model, model_path: AnyPath, target: str | None, disk: DiskTable, inputs: Inputs
) -> tuple[str, ...]:
    """Return the columns of a table that hold true values of a model's targets; ``target`` is the one that is named."""
    several = model.calibration_.rule.target_names
    if not several:
        return (target_of(model_path, target, list(inputs.kinds), disk.names),)
    if target is not None:
        raise ValueError(f"{model_path} predicts {listed(several)}. Remove --target.")
    for name in several:
        need_column(name, disk.names, "the model's targets", disk.label)
    return several
