"""The calibration rows of several targets that a ``BandCalibrator`` is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.each_promise import MISSING_AT_RANDOM
from guardband.data.entities import Entities, entities_of_labels
from guardband.data.several_targets import read_targets
from guardband.doors.band_columns import BandColumns

Rows = NDArray[np.intp]


def known_rows(
    y: Any, n: int, targets: Any, columns: BandColumns | None
) -> tuple[Rows, NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    """Return which rows calibrate, their true values, the names of the targets, and what is to be said of the rows.

    All targets at once need rows in which all are known; others are left out and counted.
    """
    values, names = read_targets(y, n, () if columns is None else columns.targets)
    known = ~np.isnan(values)
    rows = np.flatnonzero(known.all(axis=1) if targets == "joint" else known.any(axis=1))
    if not len(rows):
        raise ValueError("No calibration row has all targets. Bring rows with true values.")
    missing = n - len(rows)
    words = f"{missing:,} of {n:,} calibration rows lack a target and are left out. {MISSING_AT_RANDOM}"
    notes = (words,) if missing else ()
    return rows, values[rows], names, notes


def labelled_rows(entities: Any, rows: Rows) -> Entities:
    """Return what some of the rows belong to."""
    own = entities if isinstance(entities, Entities) else entities_of_labels(entities, len(entities))
    return own.take(rows)
