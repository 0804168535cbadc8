"""The state of a monitor: all that it keeps of the rows so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import Side
from guardband.bands.sides import reach
from guardband.monitor.cells import ColumnCells
from guardband.monitor.evidence_process import Stream, advanced
from guardband.monitor.history import History
from guardband.monitor.inputs import Inputs
from guardband.monitor.key_set import KeySet
from guardband.monitor.rows import Digests, PredictedRows
from guardband.monitor.watched import Watched

Array = NDArray[np.float64]

AT_A_TIME = 4096
"""So many rows are judged at a time, which keeps memory small."""


def _none() -> Digests:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class State:
    """What a monitor keeps: one stream for each statement, the history, the inputs, and rows that wait.

    ``log_evidence`` is that of all statements together now, ``peak`` its highest value so far, and ``alarm_row`` the
    row that raised the alarm, by the evidence against the ``alarm_statement``. ``counted`` and ``entities`` hold what
    counts once, and ``tables`` what is kept of whole tables. ``waiting`` are rows without an outcome, and
    ``waiting_keys`` their keys. ``used_before`` counts rows that equal one that made the model, ``came_late`` those
    that waited for their true values, and ``split`` those that came after another row of their entity was judged.
    """

    streams: tuple[Stream, ...]
    history: History
    inputs: Inputs
    waiting: PredictedRows | None = None
    waiting_keys: Digests = field(default_factory=_none)
    counted: KeySet = field(default_factory=KeySet)
    entities: KeySet = field(default_factory=KeySet)
    tables: Digests = field(default_factory=_none)
    log_evidence: float = 0.0
    peak: float = 0.0
    alarm_row: int | None = None
    alarm_statement: int | None = None
    time_is: str = ""
    used_before: int = 0
    came_late: int = 0
    split: int = 0

    @classmethod
    def empty(cls, statements: int, columns: int) -> State:
        """Return the state before the first row."""
        return cls((Stream(),) * statements, History.empty(columns), Inputs.empty(columns))

    @property
    def rows(self) -> int:
        """How many rows were judged."""
        return self.history.total

    @property
    def misses(self) -> int:
        """How many of them lay outside their intervals, at the first level."""
        return int(self.history.misses.sum())

    def judged(
        self,
        rows: PredictedRows,
        y: Array,
        watched: Watched,
        side: Side,
        columns: tuple[ColumnCells, ...],
        significance: float,
    ) -> State:
        """Return the state after rows whose true values are known, in their order."""
        state, first = self, 0
        while first < len(rows):
            last = min(first + AT_A_TIME, len(rows), first + state.inputs.next_look - state.rows)
            after = state._next(rows.take(slice(first, last)), y[first:last], watched, side, columns, significance)
            if state.alarm_row is None and after.alarm_row is not None:  # no later start is its cause
                last = first + after.alarm_row - state.rows
                after = state._next(rows.take(slice(first, last)), y[first:last], watched, side, columns, significance)
            state, first = after, last
        return state

    def _next(
        self,
        rows: PredictedRows,
        y: Array,
        watched: Watched,
        side: Side,
        columns: tuple[ColumnCells, ...],
        significance: float,
    ) -> State:
        n, before = len(rows), self.rows
        streams, paths = [], np.empty((len(self.streams), n))
        for j, (statement, stream) in enumerate(zip(watched.statements, self.streams, strict=True)):
            own = np.flatnonzero(rows.members(statement.group))
            missed = ~rows.inside(y, statement.side, statement.i)[own]
            moved, evidence = advanced(stream, statement.law, missed, before + own, seek_start=self.alarm_row is None)
            streams.append(moved)
            # between its own rows the evidence of a statement stays what it was
            paths[j] = np.append(stream.log_evidence, evidence)[np.searchsorted(own, np.arange(n), side="right")]
        path = watched.together(paths)
        over = np.flatnonzero(path >= watched.log_limit)
        is_new = self.alarm_row is None and len(over) > 0
        missed = ~rows.inside(y, side, 0)
        width = reach(rows.lower[:, 0], rows.point, rows.upper[:, 0], side)
        return replace(
            self,
            streams=tuple(streams),
            history=self.history.added(missed, width, path, rows.time, rows.cells),
            inputs=self.inputs.added(rows.cells, before + n, columns, significance),
            log_evidence=float(path[-1]),
            peak=max(self.peak, float(path.max())),
            alarm_row=before + int(over[0]) + 1 if is_new else self.alarm_row,
            alarm_statement=int(paths[:, over[0]].argmax()) if is_new else self.alarm_statement,
        )

    def timed(self, time_is: str) -> State:
        """Return the state with what times are, if rows have any."""
        if time_is and self.time_is and time_is != self.time_is:
            names = {"date": "dates", "number": "numbers"}
            raise ValueError(
                f"The times of earlier rows are {names[self.time_is]}, and these are {names[time_is]}. "
                "Use the same column."
            )
        return replace(self, time_is=time_is) if time_is else self

    def as_first_predicted(self, rows: PredictedRows, keys: Digests) -> PredictedRows:
        """Return rows, those that wait as they were predicted first: a later prediction may know more."""
        if self.waiting is None:
            return rows
        place = {key: i for i, key in enumerate(self.waiting_keys.tolist())}
        here = len(self.waiting) + np.arange(len(rows))
        return self.waiting.joined(rows).take([place.get(key, i) for key, i in zip(keys.tolist(), here, strict=True)])

    def without_waiting(self, keys: Digests) -> State:
        """Return the state in which rows with these keys wait no longer."""
        gone = np.isin(self.waiting_keys, keys)
        if self.waiting is None or not gone.any():
            return self
        return replace(self, waiting=self.waiting.take(~gone), waiting_keys=self.waiting_keys[~gone])

    def with_waiting(self, rows: PredictedRows, keys: Digests) -> State:
        """Return the state in which these rows wait too."""
        if not len(keys):
            return self
        waiting = rows if self.waiting is None else self.waiting.joined(rows)
        return replace(self, waiting=waiting, waiting_keys=np.concatenate([self.waiting_keys, keys]))
