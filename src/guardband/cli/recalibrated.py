"""A model that is calibrated on other rows: after an audit, or after a monitor's alarm."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from guardband.cli.model_columns import calibrate_again
from guardband.cli.provenance import ORIGIN, origin_of
from guardband.doors.read_once import AnyPath
from guardband.exceptions import InsufficientCalibrationWarning

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.cli.monitored_rows import MonitoredRows
    from guardband.doors.monitor import Monitor
    from guardband.monitor.intake import Update


class CalibrationRows(Protocol):
    """Rows with known true values that a model is calibrated on."""

    @property
    def X(self) -> Any:
        """The model's columns."""

    @property
    def y(self) -> Any:
        """The true values."""

    @property
    def entities(self) -> Any:
        """What rows belong to."""

    @property
    def split_by(self) -> Sequence[str]:
        """The columns that say so."""


def recalibrated(model: Model, rows: CalibrationRows, source: AnyPath) -> tuple[Model, dict[str, Any]]:
    """Return the model calibrated on these rows, and the document to save it with: unchecked, of the same origin."""
    from guardband.report.document import document

    origin = origin_of(source)
    again = calibrate_again(model, rows.X, rows.y, rows.entities, rows.split_by)
    made: dict[str, Any] = document(again, None)
    return again, made | {ORIGIN: origin} if origin else made


def rows_since_change(monitor: Monitor, rows: MonitoredRows, update: Update) -> MonitoredRows:
    """Return those of the rows that came since the change; refuse if there is no alarm, or no such row."""
    if not monitor.alarm:
        raise ValueError(
            f"There is no alarm after {monitor.rows:,} rows, and no reason to calibrate again. Remove --recalibrate."
        )
    if rows.X is None:
        raise ValueError(
            "This table has true values without the model's columns, and cannot calibrate a model. Bring rows with all "
            "columns, or remove --recalibrate."
        )
    since = monitor.coverage.since
    if rows.keys is None:
        chosen = update.order[max(0, since - update.first) :]
    else:
        places = monitor.row_of(rows.keys)
        chosen = np.flatnonzero((places >= since) & ~np.isnan(rows.y))
        chosen = chosen[np.argsort(places[chosen], kind="stable")]
    if not len(chosen):
        raise ValueError(
            f"None of these rows is known to have come since the change, at about row {since:,}. "
            "Bring newer rows in a table of their own, or calibrate on rows that you choose: guardband audit MODEL "
            "TABLE --recalibrate NEW_MODEL."
        )
    return rows.take(chosen)


def recalibrated_after_alarm(model: Model, rows: MonitoredRows, source: AnyPath) -> tuple[Model, dict[str, Any]]:
    """Return the model calibrated on rows since a change, with its document; refuse if intervals would be infinite."""
    from guardband.audit.verdict import rows_needed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)  # the refusal says it
        again, made = recalibrated(model, rows, source)
    promise = again.calibration_.certificate.promise
    infinite = [level for level, whole in zip(promise.confidence_level, promise.whole_line, strict=True) if whole]
    if infinite:
        needed = None if promise.is_parted else rows_needed(promise, infinite[0])
        more = "Wait for more rows." if needed is None else f"Wait until there are {needed:,}."
        raise ValueError(
            f"{rows.n:,} rows came since the change, and intervals calibrated on them would be infinite. {more}"
        )
    return again, made
