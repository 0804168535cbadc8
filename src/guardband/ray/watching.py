"""A monitor on Ray: workers predict the rows of many files, and the monitor judges them here, in their order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import DISTINCT_ROW
from guardband.data.kinds import Kind
from guardband.data.labelled_rows import column_target
from guardband.doors.monitor import Monitor
from guardband.monitor.intake import Update
from guardband.monitor.keys import Digests, digests
from guardband.monitor.reading import Reader as Predicting
from guardband.monitor.reading import time_kind
from guardband.monitor.rows import PredictedRows
from guardband.ray.cluster import Shared, all_in_order, connect, task, workers
from guardband.ray.learning_rows import kinds_in
from guardband.ray.pieces import Reader, names_of, pieces_of, source_of
from guardband.ray.scoring import kinds_of_any
from guardband.ray.sources import Files, Named
from guardband.words import listed

if TYPE_CHECKING:
    from ray.data import Dataset

Array = NDArray[np.float64]
AHEAD = 4


@dataclass(frozen=True, eq=False)
class Brought:
    """What a monitor takes of some rows: true values are NaN if they are not known.

    Parameters
    ----------
    rows : PredictedRows
        The rows as the model predicts them.
    y : array of shape (n,)
        Their true values.
    keys : array of shape (n,) or None
        Their keys.
    time_is : str
        What their times are.
    """

    rows: PredictedRows
    y: Array
    keys: Digests | None
    time_is: str


@dataclass(frozen=True)
class Bringer:
    """Reads and predicts the rows of a piece on a worker.

    Parameters
    ----------
    reader : Reader
        Reads the columns.
    predicting : guardband.monitor.reading.Reader
        Predicts them.
    features : tuple of str
        The columns of the model.
    target : str or None
        The column of true values.
    key : str or None
        The column of keys.
    time : str or None
        The column of times.
    """

    reader: Reader
    predicting: Predicting
    features: tuple[str, ...]
    target: str | None
    key: str | None
    time: str | None

    def bring(self, piece: Any) -> Brought | None:
        """Return what a monitor takes of a piece, None if it has no rows.

        Parameters
        ----------
        piece : Part or block
            What to read.
        """
        return together([self._some(table) for table, _, _ in self.reader.rows(piece) if len(table)])

    def _some(self, table: Any) -> Brought:
        import pyarrow as pa

        n, X, columns = len(table), table.select(list(self.features)), nw.from_native(table, eager_only=True)
        time = None if self.time is None else columns[self.time]
        y = np.full(n, np.nan)
        if self.target is not None:
            y = column_target(table[self.target].cast(pa.float64(), safe=False), n, may_miss=True)
        keys = None if self.key is None else digests(columns[self.key], n)
        return Brought(self.predicting.predicted(X, time, None, None), y, keys, time_kind(time, X))


def update(
    monitor: Monitor,
    data: Named | Files | Dataset,
    *,
    target: str,
    key: str | None = None,
    time: str | None = None,
) -> Update:
    """Let a monitor judge the rows of many files, in their order, and return what became of them.

    Workers predict the rows. What the monitor finds is what it finds on one machine, to the bit. This process holds the
    intervals of all rows, but not the rows: about 420 bytes of each if there are 20 columns.

    Parameters
    ----------
    monitor : Monitor
        The monitor of a model of tables. It changes.
    data : str, path, sequence of these or ray.data.Dataset
        Paths or patterns of rows that are new to the model, or a dataset.
    target : str
        The column of true values.
    key : str, default None
        A column with a key of its own for each row. A row without a true value then waits for it.
    time : str, default None
        A column of dates or numbers. Rows are judged in this order. None means in the order of the files.
    """
    connect()
    predicting = monitor._intake.reader
    if predicting.model is None:
        raise ValueError("The monitor has no model that predicts rows. Pass the model when you make or load it.")
    if predicting.entity not in (None, DISTINCT_ROW):
        raise ValueError("The promise is for entities, whose rows must meet. Use `guardband monitor` without --ray.")
    source = source_of(data)
    names = names_of(source)
    for name in (key, time, target if key is None else None):
        if name is not None and name not in names:
            raise ValueError(f"There is no column {name!r}. The columns are {listed(names, 10)}. Name one of them.")
    features = kinds_of_any(predicting.model, names)
    kinds: dict[str, Kind] = {} if target not in names else {target: "number"}
    kinds |= {} if key is None else {key: "category"}
    kinds |= {} if time is None else kinds_in(source, [time])
    if time is not None and kinds[time] not in ("number", "date"):
        raise ValueError(f"The column {time!r} of times must hold numbers or dates. Correct it, or name another one.")
    reader = Reader({**kinds, **features}, like=source.like if isinstance(source, Files) else None)
    known = target if target in names else None
    shared, run = Shared(Bringer(reader, predicting, tuple(features), known, key, time)), task(_brought)
    calls = (partial(run.remote, shared, piece) for piece in pieces_of(source))
    found = together([own for own in all_in_order(calls, AHEAD * workers()) if own is not None])
    if found is None:
        raise ValueError("The files have no rows. Bring new rows.")
    if key is None and np.isnan(found.y).all():
        raise ValueError(
            f"The target {target!r} is missing in every row. Fill it in, or name a column of keys to let the rows wait."
        )
    if found.keys is not None and len(np.unique(found.keys)) < len(found.keys):
        raise ValueError(f"Each row needs a key of its own, but one in {key!r} stands in several files. Use others.")
    return monitor._take(found.rows, found.y, found.keys, found.time_is, whole_table=True)


def together(parts: Sequence[Brought]) -> Brought | None:
    """Return the rows of several parts, one behind the other; None if there are none.

    Parameters
    ----------
    parts : sequence of Brought
        The rows, all with keys or all without.
    """
    if not parts:
        return None
    rows = PredictedRows(
        *(np.concatenate([getattr(own.rows, field.name) for own in parts]) for field in fields(PredictedRows))
    )
    keys = [own.keys for own in parts if own.keys is not None]
    y = np.concatenate([own.y for own in parts])
    return Brought(rows, y, np.concatenate(keys) if keys else None, parts[0].time_is)


def _brought(shared: Shared, piece: Any) -> Brought | None:
    import torch

    torch.set_num_threads(1)
    bringer: Bringer = shared.get()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bringer.bring(piece)
