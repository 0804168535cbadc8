"""The steps of ``guardband monitor``: the state, the next model after an alarm, and what is written."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.cli.model_columns import ModelColumns
from guardband.cli.monitored_rows import MonitoredRows, Roles
from guardband.cli.paths import page_of_state
from guardband.cli.provenance import target_of
from guardband.cli.recalibrated import recalibrated_after_alarm, rows_since_change
from guardband.doors.model_file import save
from guardband.doors.monitor import Monitor
from guardband.doors.read_once import AnyPath

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.data.disk import DiskTable
    from guardband.monitor.intake import Update

SIGNIFICANCE = 0.01


@dataclass(frozen=True, eq=False)
class NextModel:
    """A model that was calibrated after an alarm on so many ``rows``, its document, and its monitor."""

    model: Model
    document: dict[str, Any]
    rows: int
    monitor: Monitor
    path: Path
    state: Path


def open_state(path: Path, model: Model, significance: float | None) -> Monitor:
    """Return the monitor that a file keeps, or a new one."""
    if not path.exists():
        return Monitor(model, SIGNIFICANCE if significance is None else significance)
    own = Monitor.load(path, model)
    if significance is not None and significance != own.significance:
        raise ValueError(
            f"{path} was begun with --significance {own.significance:g}, found {significance:g}. Remove the option, or "
            "begin a new state."
        )
    return own


def roles_of(
    model: Model,
    model_path: AnyPath,
    disk: DiskTable,
    target: str | None,
    key: str | None,
    time: str | None,
    split_by: Sequence[str],
) -> Roles:
    """Return what the columns of a table are for."""
    sides = [name for name in (key, time) if name is not None]
    own = target_of(model_path, target, [*(ModelColumns.of(model).names or ()), *sides], disk.names)
    return Roles(own, key, time, tuple(split_by))


def need_something(update: Update, monitor: Monitor, label: str) -> None:
    """Raise if no row was judged, and none waits that did not wait before."""
    if update.counted or update.waiting:
        return
    if update.skipped:
        raise ValueError(
            f"There is nothing to judge: all {update.skipped:,} rows with a true value in {label} were counted before, "
            "and each row counts once. Bring new rows."
        )
    if not update.left_out:
        raise ValueError(f"There is nothing to judge: all rows of {label} wait for their true values already.")
    raise ValueError(
        f"There is nothing to judge: {update.left_out:,} rows of {label} bring no true value that a row waits for. "
        f"{monitor.waiting:,} rows wait. Check the column of --key."
    )


def next_model(
    monitor: Monitor,
    model: Model,
    rows: MonitoredRows,
    update: Update,
    sources: tuple[AnyPath, Path],
    places: tuple[Path, Path],
) -> NextModel:
    """Return the model that follows after an alarm; ``sources`` and ``places`` are files of a model and its state."""
    path, state = places
    _need_unused(state)
    chosen = rows_since_change(monitor, rows, update)
    again, document = recalibrated_after_alarm(model, chosen, sources[0])
    about = dict(zip(("model", "state"), map(str, sources), strict=True))
    about["date"] = datetime.date.today().isoformat()
    return NextModel(again, document, chosen.n, monitor.successor(again, about), path, state)


def write_all(monitor: Monitor, state: Path, page: Path, after: NextModel | None) -> None:
    """Write every file whole, the state last: whoever is stopped before repeats the run as if it had not begun."""
    monitor.need_latest(state)
    if after is not None:
        save(after.model, after.path, report=after.document)
        after.state.unlink(missing_ok=True)  # of a run that was stopped
        after.monitor.report(page_of_state(after.state))
        after.monitor.save(after.state)
    monitor.report(page)
    monitor.save(state)


def _need_unused(state: Path) -> None:
    """Raise if another monitor has counted rows in a state that would begin."""
    if state.exists():
        own = Monitor.load(state)
        if own.rows or own.waiting:
            raise ValueError(f"{state} has counted {own.rows:,} rows already. Choose another name for the new model.")
