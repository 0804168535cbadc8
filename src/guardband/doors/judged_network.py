"""The audit of a calibrated network: its intervals for rows with known true values."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from guardband.audit.evidence import Evidence
from guardband.audit.several import SeveralEvidence
from guardband.audit.target_view import of_rows
from guardband.bands.boxes import Boxes
from guardband.bands.intervals import Intervals, intervals_of
from guardband.bands.predicted import Context
from guardband.data.fingerprint import Twins, count_overlap
from guardband.data.labelled_rows import column_target
from guardband.data.several_targets import read_targets
from guardband.data.table import Column, Table
from guardband.doors.network_groups import labels_of
from guardband.doors.tensor_prints import prints_of
from guardband.training.inputs import Inputs, call, map_tensors, rows_in

if TYPE_CHECKING:
    from guardband.doors.network import GuardedNetwork

MOST_COLUMNS = 200
"""Inputs with more columns, such as images, are not shown one by one."""


def evidence_of_network(
    guarded: GuardedNetwork, x: Inputs, y: Any, *, group: Any = None, time: Any = None, batch_size: int = 1024
) -> Evidence:
    """Return rows with the intervals of a network, for an audit."""
    tensors = map_tensors(x, lambda t: t)
    if guarded.rule.target_names:
        return cast(Evidence, _several(guarded, tensors, y, group, time, batch_size))
    target = column_target(y, rows_in(tensors))
    intervals = _intervals(guarded, tensors, len(target), batch_size)
    columns = _columns(tensors, intervals)
    table = Table(tuple(Column(name, own) for name, own in columns.items()), len(target))
    return Evidence.of_intervals(
        intervals,
        y,
        table=table,
        inputs=np.nan_to_num(np.stack(list(columns.values()), axis=1)).astype(np.float32),
        prints=prints_of(tensors, torch.from_numpy(target)),
        calibration_prints=guarded.calibration_prints,
        group=group,
        time=time,
        context=_context(guarded, tensors, batch_size, len(target)),
        risk=guarded.rule.promised_risk,
    )


def _context(guarded: GuardedNetwork, x: Inputs, batch_size: int, n: int) -> Context:
    """Return the groups of the rows, if the network has any."""
    groups = guarded.grouping
    if groups is None:
        return Context()
    parts = [
        groups.of(labels_of(groups.function, map_tensors(batch, guarded.on_its_device))).cpu().numpy()
        for batch in (map_tensors(x, itemgetter(slice(at, at + batch_size))) for at in range(0, n, batch_size))
    ]
    return Context(group=np.concatenate(parts))


def _several(guarded: GuardedNetwork, x: Inputs, y: Any, group: Any, time: Any, batch_size: int) -> SeveralEvidence:
    """Return rows with the boxes of a network that has several targets."""
    names, certificate, n = guarded.rule.target_names, guarded.certificate, rows_in(x)
    values, _ = read_targets(y, n, names)
    ends = _outputs(guarded, x, n, batch_size).numpy()
    scalar = ends.ndim == 3
    lower, point, upper = ends[:, :, 0], ends[:, :, 1] if scalar else ends[:, :, 1, 0], ends[:, :, 2]
    each = tuple(replace(certificate, promise=certificate.promise.of_target(j)) for j in range(len(names)))
    level = certificate.confidence_level
    assert level is not None  # several targets have no promise for a risk
    boxes = Boxes(lower, point, upper, level, names, certificate, each)
    known = ~np.isnan(values)
    complete = np.flatnonzero(known.all(axis=1))
    prints, evidence = prints_of(x, torch.from_numpy(values)), []
    for j, name in enumerate(names):
        rows = np.flatnonzero(known[:, j])
        own = boxes[rows][name]
        columns = {name: column[rows] for name, column in _columns(x, boxes[name]).items()}
        table = Table(tuple(Column(name, column) for name, column in columns.items()), len(rows))
        made = Evidence.of_intervals(
            own,
            values[rows, j],
            table=table,
            inputs=np.nan_to_num(np.stack(list(columns.values()), axis=1)).astype(np.float32),
            prints=prints[:0],
            calibration_prints=prints[:0],
            group=of_rows(group, rows),
            time=of_rows(time, rows),
        )
        evidence.append(replace(made, response=name))
    used = guarded.calibration_prints
    return SeveralEvidence(
        names,
        tuple(evidence),
        boxes[complete].contains(values[complete]).reshape(len(complete), -1),
        boxes,
        certificate,
        None,
        count_overlap(prints[complete], used),
        Twins.among(used).most(len(complete)),
        (),
    )


@torch.no_grad()
def _outputs(guarded: GuardedNetwork, x: Inputs, n: int, batch_size: int) -> Tensor:
    parts: list[Tensor] = []
    for start in range(0, n, batch_size):
        batch = map_tensors(map_tensors(x, itemgetter(slice(start, start + batch_size))), guarded.on_its_device)
        parts.append(call(guarded, batch).double().cpu())
    return torch.cat(parts)


def _intervals(guarded: GuardedNetwork, x: Inputs, n: int, batch_size: int) -> Intervals:
    level = guarded.certificate.confidence_level
    return intervals_of(_outputs(guarded, x, n, batch_size), level, guarded.certificate)


def _columns(x: Inputs, intervals: Intervals) -> dict[str, NDArray[np.float64]]:
    """Return the inputs by name if they are one matrix of few columns, otherwise the prediction alone."""
    if isinstance(x, Tensor) and x.ndim == 2 and x.shape[1] <= MOST_COLUMNS:
        return {f"x{j}": column.double().cpu().numpy() for j, column in enumerate(x.unbind(1))}
    return {"prediction": intervals.point}
