"""Folds that a user brings: a label for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.calibration.cross import FEWEST_FOLDS
from guardband.data.table import as_array

Folds = NDArray[np.int64]


def fold_numbers(folds: Any, n_rows: int, kind: str) -> tuple[Folds, int]:
    """Return the number of each row's fold, in the order of the sorted labels, and how many folds there are."""
    if folds is None:
        raise ValueError(f'calibration="{kind}" needs the fold of every row. Pass folds=..., a label for each row.')
    labels = as_array(folds)
    if labels.shape != (n_rows,):
        raise ValueError(f"folds must have one label for each of {n_rows} rows, found shape {labels.shape}.")
    if labels.dtype.kind in "fO" and any(own is None or own != own for own in labels.tolist()):
        raise ValueError("folds has missing labels. Give every row a fold.")
    try:
        every, number = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError("folds must have labels of one kind, numbers or text, found several. Use one kind.") from None
    if len(every) < FEWEST_FOLDS:
        raise ValueError(f"folds must name at least {FEWEST_FOLDS} folds, found {len(every)}.")
    return number.astype(np.int64), len(every)


def refuse_folds(folds: Any) -> None:
    """Raise if there are folds that nothing uses."""
    if folds is not None:
        raise ValueError('folds has no effect with calibration="split". Remove it, or use calibration="cv+".')
