"""The audit of a calibrated network: its intervals for rows with known true values."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from guardband.audit.evidence import Evidence
from guardband.bands.intervals import Intervals, intervals_of
from guardband.bands.predicted import Context
from guardband.data.labelled_rows import column_target
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


@torch.no_grad()
def _intervals(guarded: GuardedNetwork, x: Inputs, n: int, batch_size: int) -> Intervals:
    parts: list[Tensor] = []
    for start in range(0, n, batch_size):
        batch = map_tensors(map_tensors(x, itemgetter(slice(start, start + batch_size))), guarded.on_its_device)
        parts.append(call(guarded, batch).double().cpu())
    level = guarded.certificate.confidence_level
    return intervals_of(torch.cat(parts), level, guarded.certificate)


def _columns(x: Inputs, intervals: Intervals) -> dict[str, NDArray[np.float64]]:
    """Return the inputs by name if they are one matrix of few columns, otherwise the prediction alone."""
    if isinstance(x, Tensor) and x.ndim == 2 and x.shape[1] <= MOST_COLUMNS:
        return {f"x{j}": column.double().cpu().numpy() for j, column in enumerate(x.unbind(1))}
    return {"prediction": intervals.point}
