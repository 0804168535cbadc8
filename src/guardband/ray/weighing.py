"""Where workers find the weights of rows: in a column, or by a function of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guardband.calibration.summary import Array
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.doors.weights import Weighting
from guardband.words import listed, number


def with_weight_column(kinds: Mapping[str, Any], weighting: Weighting | None, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns that a model needs together with the column of weights, if there is one.

    Parameters
    ----------
    kinds : dict of str to Kind
        The columns that it needs otherwise, and what each is.
    weighting : Weighting or None
        Where the weights of rows come from, None if all count alike.
    names : sequence of str
        The columns that there are.
    """
    if weighting is None or weighting.function is not None or weighting.estimate is not None:
        return dict(kinds)
    column = weighting.column
    if column is None:
        raise ValueError("The weights of this model are numbers from Python. Name their column with weights=...")
    if column not in names:
        raise ValueError(f"There is no column {column!r} of weights. The columns are {listed(names, 10)}. Name one.")
    return {column: "number", **kinds}


def weighting_of_new(model: TableModel | BandCalibrator) -> Weighting | None:
    """Return where the weights of new rows come from, None if a calibrated model needs none."""
    weighting = model.fitted_.weighting if isinstance(model, TableModel) else model.weighting
    return weighting if "weight" in model.calibration_.rule.uses_of_new else None


def weights_of(weighting: Weighting, X: Any, n: int, place: str) -> Array:
    """Return the weights of some rows; what is no weight is refused with the place where it stands.

    Parameters
    ----------
    weighting : Weighting
        Where the weights of rows come from.
    X : table
        The rows.
    n : int
        How many they are.
    place : str
        Where they are, in words.
    """
    weights = weighting.of_rows(X, n)
    odd = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(odd):
        found = "a missing weight" if np.isnan(weights[odd[0]]) else f"the weight {number(float(weights[odd[0]]))}"
        raise ValueError(
            f"Weights must be 0 or positive numbers, and there is {found} in {place}. Correct it, or remove the row."
        )
    return weights
