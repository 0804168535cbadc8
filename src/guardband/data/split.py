"""The split of rows into training rows and calibration rows."""

from __future__ import annotations

import math
import numbers

import numpy as np

from guardband.data.entities import Entities, Rows
from guardband.data.times import Times

FEWEST_ROWS = 4


def split_rows(
    n: int,
    calibration_size: float | int | None,
    random: np.random.RandomState,
    entities: Entities | None = None,
    what: str = "rows",
    times: Times | None = None,
) -> tuple[Rows, Rows]:
    """Return training rows and calibration rows, drawn at random, or all rows to train on if it is None.

    Entities are drawn whole, and the size is then the share or the number of these. With ``times`` the latest rows
    calibrate.
    """
    if entities is not None and times is None:
        training, held_out = split_rows(
            len(entities.every), calibration_size, random, what=f"values of {entities.name}"
        )
        return entities.rows_of(training), entities.rows_of(held_out)
    if n < FEWEST_ROWS:
        found = f"n_samples={n}" if what == "rows" else f"{n}"  # scikit-learn asks for the name
        raise ValueError(
            f"At least {FEWEST_ROWS} {what} are needed to split into training and calibration rows, found {found}. "
            "Add rows."
        )
    if calibration_size is None:
        return np.arange(n), np.arange(0)
    whole = isinstance(calibration_size, numbers.Integral)
    if not isinstance(calibration_size, numbers.Real) or not 0 < calibration_size < (n - 1 if whole else 1):
        raise ValueError(
            f"calibration_size must be a share between 0 and 1, or a number of {what} up to {n - 2} (n - 2), or None "
            f"if you bring calibration rows yourself, found {calibration_size!r}."
        )
    n2 = int(calibration_size) if whole else min(math.ceil(calibration_size * n), n - 2)
    if times is not None:
        return times.split(n2, entities)
    order = random.permutation(n)
    return np.sort(order[n2:]), np.sort(order[:n2])
