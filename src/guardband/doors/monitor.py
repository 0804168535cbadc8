"""The monitor: a promise in use, watched row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate
from guardband.data.labelled_rows import column_target
from guardband.doors.judged import refuse_several
from guardband.doors.monitor_checks import certificate_in, need_waiting_at, refused_in_words
from guardband.monitor.blocks import Block, ColumnHistory, blocks_of, columns_of, shown
from guardband.monitor.cells import MOST_COLUMNS, ColumnCells, cells_of
from guardband.monitor.conclusion import as_evidence, finding_of, present_coverage
from guardband.monitor.coverage_interval import Coverage
from guardband.monitor.finding import Finding
from guardband.monitor.identity import certificate_of, digest_of, guarded_of
from guardband.monitor.intake import Intake, Update
from guardband.monitor.keys import digests
from guardband.monitor.monitor_card import monitor_card
from guardband.monitor.reading import Reader, time_kind
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import State
from guardband.monitor.state_file import need_base, read_state, write_state
from guardband.monitor.watched import watched


class Monitor:
    """Watches a promise in use, and raises an alarm if more rows fall outside than it allows.

    Look as often as you like: while the promise holds, the chance that the alarm is ever raised is at most
    ``significance``, for a pac promise plus its delta. Repeated audits have no such limit.

    Parameters
    ----------
    model : model, calibrated network, BandCalibrator or Certificate
        What made the promise. A model of tables also predicts rows (``update(y, X=X)``), and its columns are compared
        with those of the training rows.
    significance : float, default 0.01
        How often a promise that holds may ever raise the alarm. Lower it if a false alarm is expensive.

    Examples
    --------
    >>> import numpy as np, guardband as gb
    >>> rng = np.random.default_rng(0)
    >>> zero, y = np.zeros(1000), rng.standard_normal(1000)
    >>> rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, y)
    >>> monitor = gb.Monitor(rule)
    >>> late = 2 * rng.standard_normal(400)  # errors have doubled
    >>> monitor.update(late, rule.transform(zero[:400] - 1, zero[:400], zero[:400] + 1)).counted
    400
    >>> monitor.alarm
    True
    """

    def __init__(self, model: Any, significance: float = 0.01) -> None:
        if not 0 < significance < 1:
            raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}. Use 0.01.")
        refuse_several(certificate_of(model).promise.n_targets, "A monitor")
        guarded = guarded_of(model)
        columns = () if guarded is None else cells_of(guarded.fitted_.reference, frozenset(guarded.belonging.keys))
        self._begin(certificate_of(model), guarded, columns, significance, digest_of(model))
        self._state = State.empty(len(self._intake.watched.statements), len(columns))

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
        self._digest = digest
        self._base = ""
        self._chain: list[dict[str, str]] = []
        own = watched(certificate.promise, significance)
        names = {each.name: each.group for each in own.statements if each.group is not None}
        calibration = None if model is None else model.calibration_
        reader = Reader(certificate, model, calibration, columns, names, certificate.promise.entity)
        self._intake = Intake(reader, own, columns, significance)

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
            return self._update_waiting(y, keys)
        rows = self._read(bands, X, time, entities, groups)
        values = column_target(y, len(rows), may_miss=True)
        own = None if keys is None else digests(keys, len(rows))
        return self._take(rows, values, own, time_kind(time, X), whole_table)

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
        rows = self._read(bands, X, time, entities, groups)
        return self._take(rows, np.full(len(rows), np.nan), digests(keys, len(rows)), time_kind(time, X))

    def _read(self, bands: Any, X: Any, time: Any, entities: Any, groups: Any) -> PredictedRows:
        reader = self._intake.reader
        if bands is None:
            return reader.predicted(X, time, entities, groups)
        return reader.brought(bands, X, time, entities, groups)

    def _take(self, rows: PredictedRows, y: Any, keys: Any, time_is: str, whole_table: bool = False) -> Update:
        self._state, update = self._intake.take(self._state.timed(time_is), rows, y, keys, whole_table)
        return update

    def _update_waiting(self, y: Any, keys: Any) -> Update:
        if keys is None:
            raise ValueError("Pass bands= or X= with the true values, or keys= of rows that wait.")
        n = len(np.atleast_1d(np.asarray(y, dtype=np.float64)))
        own, values = digests(keys, n), column_target(y, n, may_miss=True)
        self._state, update = self._intake.take_waiting(self._state, values, own)
        return update

    # ------------------------------------------------------------------------------------ what it says

    @property
    def alarm(self) -> bool:
        """Whether the alarm was raised; it stays."""
        return self._state.alarm_row is not None

    @property
    def evidence(self) -> float:
        """The evidence against the promise now, 1 at the beginning; ``finding().limit`` raises the alarm."""
        return as_evidence(self._state.log_evidence)

    @property
    def coverage(self) -> Coverage:
        """The present coverage with an interval: of all rows, or after an alarm of those since the change."""
        return present_coverage(self._state)

    @property
    def rows(self) -> int:
        """How many rows were judged."""
        return self._state.rows

    @property
    def waiting(self) -> int:
        """How many rows wait for their true value."""
        return len(self._state.waiting_keys)

    def row_of(self, keys: Any) -> NDArray[np.int64]:
        """Return which row each key was, by how many rows were judged before it; -1 for a key that was not judged.

        Parameters
        ----------
        keys : array of shape (n,)
            The keys, as they were given to ``update`` or ``expect``.
        """
        return self._state.counted.row_of(digests(keys, len(keys)))

    def finding(self) -> Finding:
        """Return everything that the rows so far say, in numbers and in words."""
        own, side = self._intake, self.certificate.promise.side
        return finding_of(self._state, own.watched, own.columns, self.significance, side, self._notes())

    def _notes(self) -> tuple[str, ...]:
        """Return what a reader must know of the rows so far."""
        model, state, entity = self._intake.reader.model, self._state, self.certificate.promise.entity
        out = []
        if model is not None and model.fitted_.doubts:
            out.append(f"rows may depend on each other, and an alarm may be false. {model.fitted_.doubts[0]}")
        if model is not None and len(model.fitted_.reference.columns) > MOST_COLUMNS:
            out.append(f"only the first {MOST_COLUMNS} columns are compared with the training rows.")
        if state.came_late:
            out.append(
                f"{state.came_late:,} true values came late. If the delay depends on the value, an alarm may be false."
            )
        if state.split:
            out.append(
                f"{state.split:,} rows came after another row of their {entity} was judged, which stands for all. Pass "
                "all rows of one together, or an alarm may be false."
            )
        return tuple(out)

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
        return self._state.history.columns()

    def blocks(self) -> tuple[Block, ...]:
        """Return the rows so far in at most 32 blocks: coverage, evidence and width over time."""
        law = self.certificate.promise.expectations()[0].expected
        return blocks_of(shown(self._state.history), law, self.significance, self._state.time_is)

    def drift(self) -> tuple[ColumnHistory, ...]:
        """Return how far each column was from the training rows in each block, the columns that moved most first."""
        return columns_of(shown(self._state.history), self._intake.columns, self.significance)

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

    def __str__(self) -> str:
        return "\n".join(self.finding().lines())

    def __repr__(self) -> str:
        return self.finding().sentence

    def _repr_html_(self) -> str:
        return monitor_card(self.finding(), self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return what the rows so far say, for JSON."""
        return self.finding().to_dict() | {"chain": list(self._chain)}

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a page with the history and return its path: coverage, evidence, width, and what changed.

        Parameters
        ----------
        path : str or path
            The HTML file to write, such as ``house.monitor.html``.
        """
        from guardband.report.monitor_page import write_monitor_page

        return write_monitor_page(self, Path(path))

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
            "columns": [own.to_dict() for own in self._intake.columns],
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
        own = cls.__new__(cls)
        with refused_in_words(path):
            certificate = certificate_in(kept.certificate)
            own._begin(certificate, guarded_of(model), tuple(kept.columns), kept.significance, kept.model)
        if model is not None and digest_of(model) != kept.model:
            raise ValueError(f"{path} is the state of another model. Begin a new state for this one.")
        if len(own._intake.watched.statements) != len(state.streams):
            raise ValueError(f"{path} does not fit its certificate. Restore the file from a copy.")
        own._state, own._base, own._chain = state, checksum, kept.chain
        with refused_in_words(path):
            need_waiting_at(state.waiting, len(certificate.promise.confidence_level))
        return own
