"""The rows of an audit as a monitor would have seen them: one after the other, in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guardband.audit.evidence import Evidence
from guardband.data.table import numbers_from
from guardband.monitor.blocks import Block, blocks_of, shown
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import State
from guardband.monitor.watched import watched


@dataclass(frozen=True)
class InOrder:
    """Blocks of rows in the order of their times, the evidence that raises the alarm, and the row that did."""

    blocks: tuple[Block, ...]
    log_limit: float
    alarm_row: int | None


def in_order(evidence: Evidence, significance: float) -> InOrder | None:
    """Return what a monitor would have found; None if there are no times, or if the promise has no law."""
    column, promise = evidence.time, evidence.certificate.promise
    if column is None or column.kind == "category":
        return None
    try:
        own = watched(promise, significance)
    except ValueError:
        return None
    time = numbers_from(column)
    lower, upper = evidence.intervals.per_level()
    groups = sorted({each.group for each in own.statements if each.group is not None})
    codes = [np.where(evidence.members(group), group, -1) for group in groups] or [np.full(evidence.n, -1)]
    rows = PredictedRows(
        lower=lower,
        point=evidence.intervals.point,
        upper=upper,
        group=np.column_stack(codes),
        cells=np.empty((evidence.n, 0), dtype=np.int16),
        time=time,
        entity=np.zeros(evidence.n, dtype=np.uint64),
        prints=np.zeros(evidence.n, dtype=np.uint64),
    )
    order = np.argsort(time, kind="stable")
    state = State.empty(len(own.statements), 0).judged(
        rows.take(order), evidence.y[order], own, promise.side, (), significance
    )
    time_is = "date" if column.kind == "date" or column.name in evidence.moments else "number"
    law = promise.expectations()[0].expected
    return InOrder(blocks_of(shown(state.history), law, significance, time_is), own.log_limit, state.alarm_row)
