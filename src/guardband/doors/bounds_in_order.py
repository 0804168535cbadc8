"""Bounds that cross: refused, with the rows named, or put in order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from guardband.bands.predicted import Predicted, PredictedInterval
from guardband.data.row_numbers import known_as
from guardband.words import rows_named

Crossing = Literal["raise", "sort"]
SWAP = 'Swap the arguments, or pass crossing="sort".'
SORT = 'Correct these rows, or calibrate with crossing="sort" (on the command line --crossing sort).'


def check_crossing_word(crossing: Crossing) -> None:
    """Raise unless it is a word that says what to do with bounds that cross."""
    if crossing not in ("raise", "sort"):
        raise ValueError(f"crossing must be 'raise' or 'sort', found {crossing!r}.")


def in_order(predicted: Predicted, crossing: Crossing, first_row: int = 0, hint: str | None = None) -> Predicted:
    """Return a prediction whose bounds do not cross: they are put in order if the user asked for it, or refused."""
    if crossing == "sort" and isinstance(predicted, PredictedInterval):
        predicted = with_sorted_bounds(predicted)
    refuse_faults(predicted, first_row, hint)
    return predicted


def with_sorted_bounds(predicted: PredictedInterval) -> PredictedInterval:
    """Return lower bound, point and upper bound of each row in order; rows in which one is NaN stay as they are."""
    bands = np.stack(predicted.parts)
    return PredictedInterval(*np.where(np.isnan(bands).any(0), bands, np.sort(bands, axis=0)))


def refuse_faults(predicted: Predicted, first_row: int = 0, hint: str | None = None) -> None:
    """Raise if rows hold what no prediction can be: bounds that cross, or a deviation that is not positive."""
    faults, rule = predicted.faults()
    rows = np.flatnonzero(faults) + first_row
    if len(rows):
        mend = hint if hint and isinstance(predicted, PredictedInterval) else predicted.hint
        raise ValueError(
            f"{rule} must hold in every row, found {len(rows)} where it does not ({rows_named(known_as(rows))}). {mend}"
        )
