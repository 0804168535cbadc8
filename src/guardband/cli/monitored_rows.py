"""Rows as ``guardband monitor`` takes them from a file: their true values may be absent or come alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.cli.console import Speaker
from guardband.cli.labelled import need_time, target_numbers
from guardband.cli.model_columns import ModelColumns
from guardband.cli.options import columns_in, need_column, need_roles
from guardband.cli.stream import Inputs
from guardband.data.disk import DiskTable
from guardband.data.entities import Entities, entities_of_columns
from guardband.data.row_numbers import rows_known_as
from guardband.data.table import read_table
from guardband.data.whole_table import read_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.cli.model_columns import Model
    from guardband.doors.monitor import Monitor
    from guardband.monitor.intake import Update

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for: the true values, the keys, the times, and what rows belong to."""

    target: str
    key: str | None = None
    time: str | None = None
    split_by: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class MonitoredRows:
    """Rows of a file: the model's columns, None if there are only true values, and what else is known of each row.

    ``y`` is NaN where the true value is not known, ``(n,)``.
    """

    X: pa.Table | None
    y: Array
    keys: Any = None
    time: Any = None
    entities: Entities | None = None
    split_by: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)

    def update(self, monitor: Monitor) -> Update:
        """Let a monitor judge these rows."""
        if self.X is None:
            return monitor.update(self.y, keys=self.keys)
        more = {"keys": self.keys, "time": self.time, "entities": self.entities}
        with rows_known_as(np.arange(1, self.n + 1)):
            return monitor.update(self.y, X=self.X, **more, whole_table=True)

    def take(self, rows: Rows) -> MonitoredRows:
        """Return some of the rows; with one of an entity come all that belong to it."""
        entities = self.entities
        if entities is not None:
            rows = np.flatnonzero(np.isin(entities.labels, entities.labels[rows]) & ~np.isnan(self.y))
            entities = entities.take(rows)
        X = None if self.X is None else self.X.take(rows)
        return MonitoredRows(X, self.y[rows], entities=entities, split_by=self.split_by)


def read_monitored(model: Model, disk: DiskTable, roles: Roles, speaker: Speaker) -> MonitoredRows:
    """Return the rows of a table: those that a model predicts, or true values of rows that were predicted before."""
    if brings_values_alone(model, disk, roles):
        return _read(disk, Roles(roles.target, roles.key), {}, speaker)
    inputs, keys = need_columns(model, disk, roles)
    return _read(disk, Roles(roles.target, roles.key, roles.time, keys), inputs.kinds, speaker)


def need_columns(model: Model, disk: DiskTable, roles: Roles) -> tuple[Inputs, tuple[str, ...]]:
    """Return the columns that a model takes and those that say what rows belong to; what is missing is an error."""
    inputs = Inputs.of(model, disk)
    others = [(roles.key, "--key"), (roles.time, "--time")]
    if roles.target in disk.names:
        need_roles(roles.target, others, disk.names, disk.label)
    elif roles.key is None:
        need_column(roles.target, disk.names, "--target, and rows without true values need --key to wait", disk.label)
    _need_column_if(roles.time, "--time", disk)
    fixed = model.belonging.keys
    keys = fixed or tuple(columns_in(roles.split_by, disk.names))
    for name in keys:
        need_column(name, disk.names, "--split-by, as when the model was made" if fixed else "--split-by", disk.label)
    return inputs, keys


def _need_column_if(name: str | None, option: str, disk: DiskTable) -> None:
    """Raise if an option names a column that a table has not."""
    if name is not None:
        need_column(name, disk.names, option, disk.label)


def brings_values_alone(model: Model, disk: DiskTable, roles: Roles) -> bool:
    """Return whether a table has keys and true values, and none of the other columns that a model takes."""
    _need_column_if(roles.key, "--key", disk)
    if roles.key is None:
        return False
    names = set(ModelColumns.of(model).names or ()) - {roles.key, roles.time, roles.target}
    return roles.target in disk.names and bool(names) and not names & set(disk.names)


def _read(disk: DiskTable, roles: Roles, kinds: dict[str, Any], speaker: Speaker) -> MonitoredRows:
    sides = [name for name in (roles.target, roles.key, roles.time) if name is not None and name in disk.names]
    wanted = list(dict.fromkeys([*kinds, *sides, *roles.split_by]))
    known = ({} if roles.key is None else {roles.key: "category"}) | kinds
    with speaker.progress(f"Reading {disk.label}", disk.total, in_bytes=disk.is_text) as advance:
        whole = read_whole(disk, wanted, advance, known)
    for remark in whole.remarks:
        speaker.note(remark)
    table = whole.table
    y = np.full(table.num_rows, np.nan)
    if roles.target in disk.names:
        y = target_numbers(table[roles.target], roles.target, disk).to_numpy()
    if roles.time is not None:
        need_time(table[roles.time], roles.time)
    if roles.key is None and np.isnan(y).all():
        raise ValueError(
            f"The target {roles.target!r} is missing in every row of {disk.label}. Fill it in, or name a column of "
            "keys with --key to let the rows wait."
        )
    columns = nw.from_native(table, eager_only=True)
    with rows_known_as(np.arange(1, table.num_rows + 1)):
        together = read_table(table.select(list(roles.split_by))).columns if roles.split_by else None
        return MonitoredRows(
            X=table.select(list(kinds)) if kinds else None,
            y=y,
            keys=None if roles.key is None else columns[roles.key],
            time=None if roles.time is None else columns[roles.time],
            entities=None if together is None else entities_of_columns(together),
            split_by=roles.split_by,
        )
