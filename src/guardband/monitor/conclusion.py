"""What follows from the state of a monitor: the present coverage, since when, and what changed."""

from __future__ import annotations

import math

import numpy as np

from guardband.bands.promise import Side
from guardband.monitor.cells import ColumnCells
from guardband.monitor.coverage_interval import Coverage, coverage_of
from guardband.monitor.evidence_process import log_weights
from guardband.monitor.finding import Finding, StatementFinding, when
from guardband.monitor.history import LARGEST_LOG
from guardband.monitor.inputs import LowCell, low_cells, moved_since
from guardband.monitor.state import State
from guardband.monitor.watched import Watched


def finding_of(
    state: State,
    watched: Watched,
    columns: tuple[ColumnCells, ...],
    significance: float,
    side: Side,
    notes: tuple[str, ...] = (),
) -> Finding:
    """Return everything that the rows so far say."""
    coverage = present_coverage(state)
    is_alarm = state.alarm_row is not None
    changed, since, moved = "", None, state.inputs.moved
    cells: tuple[LowCell, ...] = ()
    if is_alarm:
        since = coverage.since
        seen, lost = state.history.since(since)
        if len(columns) and seen.sum():
            moved = moved_since(seen, columns, significance, since)
            cells = low_cells(seen, lost, columns, significance)
            changed = "inputs" if moved else "outcomes"
    block = 0 if since is None else state.history.block_of(since)
    begin, end = (when(float(own[block]), state.time_is) for own in (state.history.begin, state.history.end))
    statements = tuple(
        StatementFinding(each.name, each.side, each.level, stream.rows, stream.misses, as_evidence(stream.log_evidence))
        for each, stream in zip(watched.statements, state.streams, strict=True)
    )
    return Finding(
        rows=state.rows,
        waiting=len(state.waiting_keys),
        alarm=is_alarm,
        alarm_row=state.alarm_row,
        evidence=as_evidence(state.log_evidence),
        highest=as_evidence(state.peak),
        limit=math.exp(watched.log_limit),
        false_alarm=watched.false_alarm,
        significance=significance,
        side=side,
        watched=statements[_worst(state)],
        coverage=coverage,
        coverage_of_all=coverage_of(state.misses, state.rows),
        since=since,
        since_time="" if not since else begin if begin == end else f"between {begin} and {end}",
        changed=changed,
        columns=moved,
        cells=cells,
        statements=statements,
        notes=notes,
    )


def present_coverage(state: State) -> Coverage:
    """Return the coverage of all rows, or after an alarm of those since the change."""
    if state.alarm_row is None:
        return coverage_of(state.misses, state.rows)
    stream = state.streams[_worst(state)]
    rows, misses, place = stream.likeliest_start
    # the start and the statement were both chosen by looking
    weight = float(log_weights(np.array([rows]))[0]) - math.log(len(state.streams))
    return coverage_of(stream.misses - misses, stream.rows - rows, place, weight)


def as_evidence(log_evidence: float) -> float:
    """Return evidence from its logarithm; beyond the largest number it is that."""
    return math.exp(min(log_evidence, LARGEST_LOG))


def _worst(state: State) -> int:
    """Return the statement that raised the alarm, or the one with the most evidence against it."""
    if state.alarm_statement is not None:
        return state.alarm_statement
    return int(np.argmax([own.log_evidence for own in state.streams]))
