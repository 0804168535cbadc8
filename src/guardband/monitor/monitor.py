"""The monitor: a promise in use, watched row by row."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate
from guardband.data.fingerprint import fingerprints
from guardband.data.labelled_rows import column_target
from guardband.data.table import Table, read_table
from guardband.monitor.blocks import Block, ColumnHistory, blocks_of, columns_of, shown
from guardband.monitor.cells import ColumnCells, cells_of
from guardband.monitor.coverage_interval import Coverage, coverage_of
from guardband.monitor.evidence_process import log_weights
from guardband.monitor.finding import Finding, StatementFinding, when
from guardband.monitor.inputs import LowCell, low_cells, moved_since
from guardband.monitor.keys import digests
from guardband.monitor.monitor_card import monitor_card
from guardband.monitor.reading import Reader, time_column
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import State
from guardband.monitor.state_file import need_base, read_state, write_state
from guardband.monitor.tables import described, first_row_of, refuse_more
from guardband.monitor.watched import watched

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

LARGEST_LOG = 700.0


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


class Monitor:
    """Watches a promise in use, and raises an alarm if more rows fall outside than it allows."""

    def __init__(self, model: Any, significance: float = 0.01) -> None:
        if not 0 < significance < 1:
            raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}. Use 0.01.")
        certificate = _certificate_of(model)
        guarded = model if hasattr(model, "read_rows") and hasattr(model, "outputs") else None
        columns = () if guarded is None else cells_of(guarded.fitted_.reference, frozenset(guarded.belonging.keys))
        self._begin(certificate, guarded, columns, significance, _digest_of(certificate, guarded))
        self._state = State.empty(len(self._watched.statements), len(columns))

    def _begin(
        self,
        certificate: Certificate,
        model: Guarded | None,
        columns: tuple[ColumnCells, ...],
        significance: float,
        digest: str,
    ) -> None:
        self.significance = significance
        self.certificate = certificate
        self._watched = watched(certificate.promise, significance)
        self._columns = columns
        self._digest = digest
        self._base = ""
        self._chain: list[dict[str, str]] = []
        names = {own.name: own.group for own in self._watched.statements if own.group is not None}
        self._reader = Reader(certificate, model, columns, names, certificate.promise.entity)

    # ------------------------------------------------------------------------------------ rows

    def update(
        self,
        y: Any,
        bands: Any = None,
        *,
        X: Any = None,
        keys: Any = None,
        groups: Any = None,
        time: Any = None,
        entities: Any = None,
        whole_table: bool = False,
    ) -> Update:
        """Judge rows whose true values are known, and return what became of them.

        Pass ``bands``, or ``X`` if the monitor has a model that predicts rows, or neither if the rows wait since
        ``expect``. If anything is wrong with the input, nothing is counted.

        Parameters
        ----------
        y : array of shape (n,)
            The true values, in the order of the rows. With keys, NaN stands for one that is not known yet: the row
            waits.
        bands : Intervals or array of shape (n, 3), default None
            The intervals of these rows.
        X : table of n rows, default None
            The rows themselves. With them the monitor can say which columns have changed.
        keys : array of shape (n,), default None
            A key for each row. Each key counts once, and finds the row again if its true value arrives later.
        groups : array of shape (n,), default None
            The group of each row, if groups have a promise of their own and the model does not find them itself.
        time : array of shape (n,) or str, default None
            The time of each row, or the name of a column of ``X``. Rows are judged in this order.
        entities : array of shape (n,), default None
            What each row belongs to, if the promise is for new entities. Each entity counts once.
        whole_table : bool, default False
            Whether these rows are a table that may be passed again by mistake. It then counts once, also without keys.
            A larger table that contains it is refused unless rows have keys.
        """
        if bands is None and X is None:
            return self._judge_waiting(y, keys)
        rows, table = self._read(bands, X, time, entities, groups)
        values = column_target(y, len(rows), may_miss=True)
        own = None if keys is None else digests(keys, len(rows))
        return self._take(rows, table, values, own, time, X, whole_table)

    def expect(
        self, keys: Any, bands: Any = None, *, X: Any = None, groups: Any = None, time: Any = None, entities: Any = None
    ) -> Update:
        """Remember rows that are predicted now and judged later: ``update(y, keys=keys)`` brings their true values.

        Parameters
        ----------
        keys : array of shape (n,)
            A key for each row.
        bands : Intervals or array of shape (n, 3), default None
            Their intervals. Without them the monitor's model predicts ``X``.
        X : table of n rows, default None
            The rows themselves.
        groups : array of shape (n,), default None
            The group of each row, if groups have a promise of their own and the model does not find them itself.
        time : array of shape (n,) or str, default None
            The time of each row, or the name of a column of ``X``.
        entities : array of shape (n,), default None
            What each row belongs to, if the promise is for new entities.
        """
        rows, table = self._read(bands, X, time, entities, groups)
        return self._take(rows, table, np.full(len(rows), np.nan), digests(keys, len(rows)), time, X)

    def _read(self, bands: Any, X: Any, time: Any, entities: Any, groups: Any) -> tuple[PredictedRows, Table | None]:
        if bands is None:
            return self._reader.predicted(X, time, entities, groups)
        return self._reader.brought(bands, X, time, entities, groups), None

    def _take(
        self,
        rows: PredictedRows,
        table: Table | None,
        y: Array,
        keys: Any,
        time: Any,
        X: Any,
        whole_table: bool = False,
    ) -> Update:
        """Judge rows whose true value is known, and let the others wait."""
        known = ~np.isnan(y)
        self._reader.refuse_known(rows)
        if table is not None and known.any():
            self._reader.refuse_used(table.take(np.flatnonzero(known)), y[known])
        state = self._state
        if time is not None:
            state = replace(state, time_is=time_column(time, len(rows), X).kind)
        came_first = None
        skipped = np.zeros(len(rows), dtype=bool) if keys is None else state.counted.has(keys)
        if whole_table and known.any():
            prints = _prints(rows, table, y)[known]
            came_first = first_row_of(prints, state.tables)
            if came_first is None and not skipped.any():
                if keys is None:
                    refuse_more(prints, state.tables)
                state = replace(state, tables=np.concatenate([state.tables, described(prints, state.rows)]))
            elif keys is None:
                return _come_again(rows, known, came_first or 0, left_out=int((~known).sum()))
        waiting = 0
        if keys is not None:
            known, late = known & ~skipped, ~known & ~skipped
            rows = _as_first_predicted(state, rows, keys)
            state = _without(state, np.isin(state.waiting_keys, keys[known]))
            new = late & ~np.isin(keys, state.waiting_keys)
            state, waiting = _with_waiting(state, rows.take(new), keys[new]), int(new.sum())
        left_out = int((~known).sum()) if keys is None else 0
        self._state, order = self._judge(state, rows.take(known), y[known], None if keys is None else keys[known])
        if came_first is not None and not len(order):
            return _come_again(rows, ~np.isnan(y), came_first, waiting=waiting)
        counted_before = int(skipped.sum()) + int(known.sum()) - len(order)
        judged, first = np.flatnonzero(known)[order], self.rows - len(order)
        return Update(len(order), waiting, counted_before, left_out, judged, first)

    def _judge_waiting(self, y: Any, keys: Any) -> Update:
        """Judge rows that wait, by their keys."""
        if keys is None:
            raise ValueError("Pass bands= or X= with the true values, or keys= of rows that wait.")
        n = len(np.atleast_1d(np.asarray(y, dtype=np.float64)))
        own = digests(keys, n)
        values = column_target(y, n, may_miss=True)
        state = self._state
        order = np.argsort(state.waiting_keys)
        at = np.searchsorted(state.waiting_keys, own, sorter=order)
        place = order[np.minimum(at, len(order) - 1)] if len(order) else np.zeros(n, dtype=np.intp)
        found = np.zeros(n, dtype=bool) if not len(order) else state.waiting_keys[place] == own
        known = found & ~np.isnan(values)
        skipped = int(state.counted.has(own).sum())
        counted = 0
        if known.any():
            assert state.waiting is not None
            rows = state.waiting.take(place[known])
            state = _without(state, np.isin(state.waiting_keys, own[known]))
            self._state, order = self._judge(state, rows, values[known], own[known])
            counted = len(order)
        return Update(counted, 0, skipped + int(known.sum()) - counted, n - int(known.sum()) - skipped)

    def _judge(self, state: State, rows: PredictedRows, y: Array, keys: Any) -> tuple[State, Rows]:
        """Return the state after rows with known true values, and which of them count, in the order of judging."""
        if keys is not None:
            state = replace(state, counted=state.counted.added(keys))
        order = np.argsort(rows.time, kind="stable")
        rows, y = rows.take(order), y[order]
        if self._reader.entity is not None and rows.entity.any():
            new = np.flatnonzero(~state.entities.has(rows.entity))
            drawn = new[_one_of_each(rows.entity[new], y[new])]
            rows, y, order = rows.take(drawn), y[drawn], order[drawn]
            state = replace(state, entities=state.entities.added(rows.entity))
        side = self.certificate.promise.side
        return state.judged(rows, y, self._watched, side, self._columns, self.significance), order

    # ------------------------------------------------------------------------------------ what it says

    @property
    def alarm(self) -> bool:
        """Whether the alarm was raised; it stays."""
        return self._state.alarm_row is not None

    @property
    def evidence(self) -> float:
        """The evidence against the promise now: 1 at the beginning, and the alarm is at 1 / significance or above."""
        return _exp(self._state.log_evidence)

    @property
    def coverage(self) -> Coverage:
        """The present coverage with an interval: of all rows, or after an alarm of those since the change."""
        state = self._state
        if not self.alarm:
            return coverage_of(state.misses, state.rows)
        stream = state.streams[self._worst]
        rows, misses, place = stream.likeliest_start
        # the start and the statement were both chosen by looking
        weight = float(log_weights(np.array([rows]))[0]) - math.log(len(state.streams))
        return coverage_of(stream.misses - misses, stream.rows - rows, place, weight)

    @property
    def rows(self) -> int:
        """How many rows were judged."""
        return self._state.rows

    @property
    def waiting(self) -> int:
        """How many rows wait for their true value."""
        return len(self._state.waiting_keys)

    @property
    def chain(self) -> tuple[dict[str, str], ...]:
        """The models that came before this one, the first of them first: what was recalibrated after which alarm."""
        return tuple(self._chain)

    def successor(self, model: Any, about: Mapping[str, str]) -> Self:
        """Return the monitor of a model that follows after an alarm, with no rows yet.

        Parameters
        ----------
        model : model, calibrated network, BandCalibrator or Certificate
            The new model, such as this one recalibrated on rows since the change.
        about : mapping of str to str
            What to remember of this monitor in ``chain``, such as the name of its file.
        """
        own = type(self)(model, self.significance)
        counts = {"rows": str(self.rows), "alarm_row": str(self._state.alarm_row or "")}
        own._chain = [*self._chain, {**about, **counts}]
        return own

    @property
    def _worst(self) -> int:
        """The statement with the most evidence against it."""
        return int(np.argmax([own.log_evidence for own in self._state.streams]))

    def finding(self) -> Finding:
        """Return everything that the rows so far say, in numbers and in words."""
        state, own = self._state, self._watched
        coverage = self.coverage
        changed, since, columns = "", None, state.inputs.moved
        cells: tuple[LowCell, ...] = ()
        if self.alarm:
            since = coverage.since
            seen, lost = state.history.since(since)
            if len(self._columns) and seen.sum():
                columns = moved_since(seen, self._columns, self.significance, since)
                cells = low_cells(seen, lost, self._columns, self.significance)
                changed = "inputs" if columns else "outcomes"
        begun = math.nan if since is None else float(state.history.begin[state.history.block_of(since)])
        statements = tuple(
            StatementFinding(each.name, each.side, each.level, stream.rows, stream.misses, _exp(stream.log_evidence))
            for each, stream in zip(own.statements, state.streams, strict=True)
        )
        return Finding(
            rows=state.rows,
            waiting=self.waiting,
            alarm=self.alarm,
            alarm_row=state.alarm_row,
            evidence=self.evidence,
            highest=_exp(state.peak),
            limit=math.exp(own.log_limit),
            false_alarm=own.false_alarm,
            significance=self.significance,
            side=self.certificate.promise.side,
            watched=statements[self._worst],
            coverage=coverage,
            coverage_of_all=coverage_of(state.misses, state.rows),
            since=since,
            since_time=when(begun, state.time_is),
            changed=changed,
            columns=columns,
            cells=cells,
            statements=statements,
            notes=self._notes(),
        )

    def history(self) -> dict[str, NDArray[Any]]:
        """Return what happened, in at most 64 blocks of equally many rows, as columns of a table.

        ``row`` is the last row of a block, ``rows`` how many rows it has, ``share`` how many of them fell inside,
        ``width`` the mean width of finite intervals, ``evidence`` that at the end of the block, and ``begin`` and
        ``end`` are the first and the last time in it, in days since 1970 for dates.

        Returns
        -------
        dict of arrays
            The columns by name. ``pandas.DataFrame(monitor.history())`` makes a table of them.
        """
        own = self._state.history
        used = slice(0, own.used)
        rows = own.rows[used]
        width = np.divide(own.width[used], own.finite[used], out=np.full(len(rows), np.inf), where=own.finite[used] > 0)
        return {
            "row": np.cumsum(rows),
            "rows": rows,
            "share": 1 - own.misses[used] / rows,
            "width": width,
            "evidence": np.exp(np.minimum(own.last[used], LARGEST_LOG)),
            "begin": own.begin[used],
            "end": own.end[used],
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return the rows so far in at most 32 blocks: coverage, evidence and width over time."""
        law = self.certificate.promise.expectations()[0].expected
        return blocks_of(shown(self._state.history), law, self.significance, self._state.time_is)

    def drift(self) -> tuple[ColumnHistory, ...]:
        """Return how far each column was from the training rows in each block, the columns that moved most first."""
        return columns_of(shown(self._state.history), self._columns, self.significance)

    def _notes(self) -> tuple[str, ...]:
        model = self._reader.model
        doubts = () if model is None else model.fitted_.doubts
        return tuple(f"rows may depend on each other, and an alarm may be false. {own}" for own in doubts[:1])

    def __str__(self) -> str:
        return "\n".join(self.finding().lines())

    def __repr__(self) -> str:
        return self.finding().sentence

    def _repr_html_(self) -> str:
        return monitor_card(self.finding(), self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return what the rows so far say, for JSON."""
        return self.finding().to_dict() | {"chain": list(self._chain)}

    # ------------------------------------------------------------------------------------ on disk

    def need_latest(self, path: str | PathLike[str]) -> None:
        """Raise if another process has written the state since this monitor was loaded or saved.

        Parameters
        ----------
        path : str or path
            The file.
        """
        need_base(Path(path), self._base)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to one file, whole or not at all; refuse if another process has written it meanwhile.

        Parameters
        ----------
        path : str or path
            The file, such as ``house.monitor``.
        """
        entries = {
            "certificate": json.loads(json.dumps(self.certificate.to_dict())),
            "model": self._digest,
            "significance": self.significance,
            "columns": [own.to_dict() for own in self._columns],
            "chain": self._chain,
        }
        self._base = write_state(Path(path), entries, self._state, self._base)

    @classmethod
    def load(cls, path: str | PathLike[str], model: Any = None) -> Self:
        """Return the monitor that ``save`` wrote; with its model it can predict rows again.

        Parameters
        ----------
        path : str or path
            The file.
        model : model, calibrated network or BandCalibrator, default None
            The model that the monitor watches. Another one is refused: its promise has a state of its own.
        """
        kept, state, checksum = read_state(Path(path))
        certificate = Certificate.from_dict(kept.certificate)
        own = cls.__new__(cls)
        guarded = model if model is not None and hasattr(model, "read_rows") and hasattr(model, "outputs") else None
        own._begin(certificate, guarded, tuple(kept.columns), kept.significance, kept.model)
        if model is not None and _digest_of(_certificate_of(model), guarded) != kept.model:
            raise ValueError(f"{path} is the state of another model. Begin a new state for this one.")
        if len(own._watched.statements) != len(state.streams):
            raise ValueError(f"{path} does not fit its certificate. Restore the file from a copy.")
        own._state, own._base, own._chain = state, checksum, kept.chain
        return own


def _certificate_of(model: Any) -> Certificate:
    if isinstance(model, Certificate):
        return model
    for name in ("certificate_", "certificate"):
        found = getattr(model, name, None)
        if isinstance(found, Certificate):
            return found
    raise TypeError(f"Monitor needs a calibrated model or a certificate, found {type(model).__name__}.")


def _digest_of(certificate: Certificate, model: Guarded | None) -> str:
    """Return what tells one calibrated model from another: the certificate, and the rows that calibrated it."""
    digest = hashlib.sha256(json.dumps(certificate.to_dict()["promise"], sort_keys=True).encode())
    if model is not None:
        digest.update(np.ascontiguousarray(model.fitted_.calibration_prints).tobytes())
    return digest.hexdigest()


def _prints(rows: PredictedRows, table: Table | None, y: Array) -> NDArray[np.uint64]:
    """Return the fingerprint of each row: of its columns if they are there, and otherwise of its interval."""
    own = read_table(np.column_stack([rows.lower, rows.point, rows.upper])) if table is None else table
    return fingerprints(own, y)


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


def _as_first_predicted(state: State, rows: PredictedRows, keys: NDArray[np.uint64]) -> PredictedRows:
    """Return rows, those that wait as they were predicted first: a later prediction may know more."""
    if state.waiting is None:
        return rows
    place = {key: i for i, key in enumerate(state.waiting_keys.tolist())}
    here = len(state.waiting) + np.arange(len(rows))
    return state.waiting.joined(rows).take([place.get(key, i) for key, i in zip(keys.tolist(), here, strict=True)])


def _without(state: State, gone: NDArray[np.bool_]) -> State:
    if state.waiting is None or not gone.any():
        return state
    return replace(state, waiting=state.waiting.take(~gone), waiting_keys=state.waiting_keys[~gone])


def _with_waiting(state: State, rows: PredictedRows, keys: Any) -> State:
    if not len(keys):
        return state
    waiting = rows if state.waiting is None else state.waiting.joined(rows)
    return replace(state, waiting=waiting, waiting_keys=np.concatenate([state.waiting_keys, keys]))


def _exp(value: float) -> float:
    return math.exp(min(value, LARGEST_LOG))
