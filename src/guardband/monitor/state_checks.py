"""Whether what a file holds can be the state of a monitor: whoever writes a file can write any numbers into it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from guardband.monitor.cells import CELLS, ColumnCells
from guardband.monitor.evidence_process import ODDS, Stream
from guardband.monitor.history import BLOCKS, FIRST_SIZE, History
from guardband.monitor.inputs import FIRST_LOOK
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import State

KINDS = ("number", "boolean", "date", "category")
TIMES = ("", "date", "number")
MOST = 2**53
"""Rows and counts are smaller: larger numbers are not exact as floating-point numbers."""


def check_columns(columns: Iterable[ColumnCells]) -> None:
    """Raise unless the cells of each column can be used."""
    for own in columns:
        need(own.kind in KINDS, f"the kind of column {own.name!r} is not known")
        alike = len(own.names) == len(own.before) == CELLS + 1
        need(alike and len(own.edges) < CELLS and len(own.categories) < CELLS, "a column has another number of cells")
        need(all(0 <= count < MOST for count in own.before) and sum(own.before) > 0, "a column has no training rows")
        need(all(map(math.isfinite, own.edges)) and list(own.edges) == sorted(own.edges), "cells are out of order")


def check_state(state: State) -> None:
    """Raise unless counts, evidence and rows that wait fit each other."""
    _check_history(state.history)
    rows = state.rows
    for own in state.streams:
        _check_stream(own, rows)
    need(not math.isnan(state.log_evidence) and state.log_evidence < math.inf, "its evidence is no number")
    need(not math.isnan(state.peak) and state.peak < math.inf, "its evidence is no number")
    need((state.alarm_row is None) == (state.alarm_statement is None), "its alarm is about nothing")
    if state.alarm_row is not None and state.alarm_statement is not None:
        need(0 < state.alarm_row <= rows, "its alarm is about nothing")
        need(0 <= state.alarm_statement < len(state.streams), "its alarm is about nothing")
    need(state.time_is in TIMES, "its times are of no known kind")
    counts = (state.used_before, state.came_late, state.split)
    need(all(0 <= own < MOST for own in counts), "its counts are out of range")
    _check_inputs(state)
    if state.waiting is not None:
        _check_waiting(state.waiting, len(state.waiting_keys), state.inputs.counts.shape[0])


def need(holds: bool, otherwise: str) -> None:
    """Raise unless something holds."""
    if not holds:
        raise ValueError(otherwise)


def _check_history(own: History) -> None:
    sizes = (FIRST_SIZE << i for i in range(48))
    need(own.size in sizes, "the size of its blocks is wrong")
    need(int(own.rows.min()) >= 0 and int(own.rows.max()) <= own.size, "its history is out of range")
    filled = np.clip(own.total - own.size * np.arange(BLOCKS), 0, own.size)
    need(bool((own.rows == filled).all()), "its history is out of range")
    for some in (own.misses, own.finite):
        need(bool(((some >= 0) & (some <= own.rows)).all()), "its history is out of range")
    for cells in (own.seen, own.lost):
        need(bool(((cells >= 0) & (cells <= own.rows[:, None, None])).all()), "its history is out of range")
    need(not np.isnan(own.width).any(), "its history is out of range")
    need(not any(np.isnan(some).any() or (some == np.inf).any() for some in (own.peak, own.last)), "it has no evidence")
    need(not any(np.isinf(some).any() for some in (own.begin, own.end)), "its times are out of range")


def _check_stream(own: Stream, rows: int) -> None:
    lists = (own.bets, own.best, own.start, own.misses_before, own.place)
    need(all(len(some) == len(ODDS) for some in lists), "its bets are of another number")
    need(0 <= own.misses <= own.rows <= rows, "its counts are out of range")
    counts = (*own.start, *own.misses_before, *own.place)
    need(all(0 <= some <= rows for some in counts), "its counts are out of range")
    evidence = (*own.bets, *own.best, own.log_evidence)
    need(not any(math.isnan(some) or some == math.inf for some in evidence), "its evidence is no number")


def _check_inputs(state: State) -> None:
    own = state.inputs
    need(0 <= own.look < 47 and own.next_look > state.rows, "its looks at the columns do not fit")
    need(own.look == 0 or FIRST_LOOK << (own.look - 1) <= state.rows, "its looks at the columns do not fit")
    need(bool(((own.counts >= 0) & (own.counts <= state.rows)).all()), "its looks at the columns do not fit")
    for moved in own.moved:
        need(0 <= moved.gap < 2 and 0 <= moved.p_value < 2, "a column is out of range")  # rounding may exceed 1
        need(0 <= moved.row <= state.rows, "a column is out of range")


def _check_waiting(own: PredictedRows, n: int, columns: int) -> None:
    kinds = {"group": np.integer, "cells": np.int16, "entity": np.uint64, "prints": np.uint64}
    for each in fields(own):
        array = getattr(own, each.name)
        need(np.issubdtype(array.dtype, kinds.get(each.name, np.floating)), "rows that wait are of another kind")
        axes = 2 if each.name in ("lower", "upper", "group", "cells") else 1
        need(array.ndim == axes and len(array) == n, "rows that wait do not match")
    need(own.lower.shape == own.upper.shape, "rows that wait do not match")
    need(bool((own.lower <= own.upper).all()), "an interval of a row that waits has no ends")
    need(own.cells.shape[1] == columns, "rows that wait do not match")
    need(
        int(own.cells.min(initial=-1)) >= -1 and int(own.cells.max(initial=0)) <= CELLS,
        "cells of rows are out of range",
    )
