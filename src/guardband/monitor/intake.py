"""How rows enter a monitor: each counts once, in the order of time, and those without a true value wait."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import DISTINCT_ROW
from guardband.data.fingerprint import with_target
from guardband.monitor.cells import ColumnCells
from guardband.monitor.reading import Reader
from guardband.monitor.rows import Digests, PredictedRows
from guardband.monitor.state import State
from guardband.monitor.tables import described, first_row_of, refuse_more
from guardband.monitor.watched import Watched

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Update:
    """What became of the rows of one update.

    Parameters
    ----------
    counted : int
        Rows that were judged.
    waiting : int
        Rows that wait for their true value.
    skipped : int
        Rows that were judged before, by their key or what they belong to.
    left_out : int
        Rows without a true value and without a key, or keys that no row waits for.
    order : array of int
        Which rows of the update were judged, by position, in the order of judging; those of a table that was judged
        before if it comes again.
    first : int
        How many rows were judged before them.
    """

    counted: int = 0
    waiting: int = 0
    skipped: int = 0
    left_out: int = 0
    order: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp), compare=False, repr=False)
    first: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Intake:
    """Takes rows into a state: what is watched, and how rows are read."""

    reader: Reader
    watched: Watched
    columns: tuple[ColumnCells, ...]
    significance: float

    def take(
        self, state: State, rows: PredictedRows, y: Array, keys: Digests | None, whole_table: bool = False
    ) -> tuple[State, Update]:
        """Return the state after rows: those whose true value is known are judged, and the others wait if they can.

        If they are a ``whole_table`` that was judged before, they are known again.
        """
        known = ~np.isnan(y)
        self.reader.refuse_known(rows)
        before, came_first = state, None
        skipped = np.zeros(len(rows), dtype=bool) if keys is None else state.counted.has(keys)
        if whole_table and known.any():
            prints = with_target(rows.prints, y)[known]
            came_first = first_row_of(prints, state.tables)
            if came_first is not None:
                if state.time_is and np.isnan(rows.time).all():
                    raise ValueError(
                        "These rows were judged before, in the order of their times. Pass time= again, on the command "
                        "line --time."
                    )
                skipped = skipped | known
            elif not skipped.any():
                if keys is None:
                    refuse_more(prints, state.tables)
                state = replace(state, tables=np.concatenate([state.tables, described(prints, state.rows)]))
            if came_first is not None and keys is None:
                return before, _come_again(rows, known, came_first, left_out=int((~known).sum()))
        waiting, left_out = 0, int((~known).sum()) if keys is None else 0
        if keys is not None:
            known, late = known & ~skipped, ~known & ~skipped
            rows = state.as_first_predicted(rows, keys)
            late_ones = int(np.isin(keys[known], state.waiting_keys).sum())
            state = replace(state.without_waiting(keys[known]), came_late=state.came_late + late_ones)
            new = late & ~np.isin(keys, state.waiting_keys)
            state, waiting = state.with_waiting(rows.take(new), keys[new]), int(new.sum())
        state, order = self._judged(state, rows.take(known), y[known], None if keys is None else keys[known])
        if came_first is not None and not len(order):
            return state, _come_again(rows, ~np.isnan(y), came_first, waiting=waiting)
        again = int(skipped.sum()) + int(known.sum()) - len(order)
        return state, Update(
            len(order), waiting, again, left_out, np.flatnonzero(known)[order], state.rows - len(order)
        )

    def take_waiting(self, state: State, y: Array, keys: Digests) -> tuple[State, Update]:
        """Return the state after true values of rows that wait, by their keys."""
        skipped = int(state.counted.has(keys).sum())
        place = {key: i for i, key in enumerate(state.waiting_keys.tolist())}
        at = np.array([place.get(key, -1) for key in keys.tolist()], dtype=np.intp)
        known = (at >= 0) & ~np.isnan(y)
        left_out = len(y) - int(known.sum()) - skipped
        if state.waiting is None or not known.any():
            return state, Update(skipped=skipped, left_out=left_out)
        rows = state.waiting.take(at[known])
        state = replace(state.without_waiting(keys[known]), came_late=state.came_late + int(known.sum()))
        state, order = self._judged(state, rows, y[known], keys[known])
        return state, Update(len(order), 0, skipped + int(known.sum()) - len(order), left_out)

    def _judged(self, state: State, rows: PredictedRows, y: Array, keys: Digests | None) -> tuple[State, Rows]:
        """Return the state after rows with known true values, and which of them count, in the order of judging."""
        used = self.reader.count_used(rows, y, state.used_before, state.rows)
        state = replace(state, used_before=state.used_before + used)
        in_time = order = np.argsort(rows.time, kind="stable")
        rows, y = rows.take(order), y[order]
        drawn = np.arange(len(y))
        if self.reader.entity is not None:
            entity = with_target(rows.prints, y) if self.reader.entity == DISTINCT_ROW else rows.entity
            known = state.entities.has(entity)
            if self.reader.entity != DISTINCT_ROW:
                state = replace(state, split=state.split + int(known.sum()))
            new = np.flatnonzero(~known)
            drawn = new[_one_of_each(entity[new], y[new])]
            rows, y, order = rows.take(drawn), y[drawn], order[drawn]
            state = replace(state, entities=state.entities.added(entity[drawn], state.rows + np.arange(len(drawn))))
        if keys is not None:  # a row that stands for others of its entity is their row, too
            places = state.rows + np.searchsorted(drawn, np.arange(len(in_time)))
            state = replace(state, counted=state.counted.added(keys[in_time], places))
        side = self.reader.certificate.promise.side
        return state.judged(rows, y, self.watched, side, self.columns, self.significance), order


def _come_again(
    rows: PredictedRows, known: NDArray[np.bool_], first: int, waiting: int = 0, left_out: int = 0
) -> Update:
    """Return what became of a table that was judged before; of entities nobody knows any more which rows were drawn."""
    own = np.flatnonzero(known)
    order = own[:0] if rows.entity.any() else own[np.argsort(rows.time[own], kind="stable")]
    return Update(0, waiting, len(own), left_out, order, first)


def _one_of_each(entity: NDArray[np.uint64], y: Array) -> NDArray[np.intp]:
    """Return one row of each entity, drawn at random by a hash of the rows, in their order."""
    seed = hashlib.blake2b(y.tobytes() + entity.tobytes(), digest_size=16).digest()
    order = np.random.default_rng(int.from_bytes(seed)).permutation(len(entity))
    _, first = np.unique(entity[order], return_index=True)
    return np.sort(order[first])
