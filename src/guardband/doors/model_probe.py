"""Whether a model that is brought again is the one that was calibrated: what it predicts for a few made-up rows.

A file holds no rows. Made-up ones come from what it knows of the columns: their middle and their scale. That is only
done for columns of numbers, and for models that may be asked for rows unasked.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.codes import NumberCode
from guardband.doors.file_format import reason
from guardband.exceptions import ModelFileError
from guardband.words import number

if TYPE_CHECKING:
    from guardband.doors.guarded_model import GuardedModel

Array = NDArray[np.float64]

STEPS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
"""How far the rows lie from the middle of each column, in its scale."""
CLOSE, OF_THE_LARGEST = 1e-4, 1e-5
"""Libraries compute in single precision, and may add in another order."""
WHAT_TO_DO = "Pass the model that you calibrated, or calibrate this one."


def probe_of(guarded: GuardedModel) -> list[list[float]] | None:
    """Return what a calibrated model predicts for the made-up rows; None if they can say nothing of it."""
    if guarded.has_residuals or not guarded.is_quick:
        return None
    try:
        first, again = _predicted(guarded), _predicted(guarded)
    except Exception:  # a model of the user's may refuse made-up rows in any way
        return None
    if first is None or again is None or not np.isfinite(first).all() or not _alike(first, again):
        return None
    kept: list[list[float]] = first.tolist()
    return kept


def refuse_another(guarded: GuardedModel, probe: list[list[float]] | None) -> None:
    """Raise if a model predicts other numbers for the made-up rows than the one that was calibrated."""
    if probe is None:
        return
    kept = np.array(probe)
    try:
        found = _predicted(guarded)
    except Exception as error:
        why = f"it cannot predict the rows of the other one ({reason(error)})"
        raise ModelFileError(f"this is not the model that was calibrated: {why}. {WHAT_TO_DO}") from None
    if found is None or found.shape != kept.shape:
        raise ModelFileError(f"this is not the model that was calibrated. {WHAT_TO_DO}")
    if not _alike(found, kept):
        apart = np.nan_to_num(np.abs(found - kept), nan=np.inf)
        worst = np.unravel_index(apart.argmax(), kept.shape)
        values = f"{number(float(found[worst]))} instead of {number(float(kept[worst]))}"
        raise ModelFileError(
            f"this is not the model that was calibrated. For the same row it predicts {values}. {WHAT_TO_DO}"
        )


def _predicted(guarded: GuardedModel) -> Array | None:
    codes = guarded.encoder.codes
    if not all(isinstance(code, NumberCode) and code.kind == "number" for code in codes):
        return None
    middle = np.array([code.center for code in codes if isinstance(code, NumberCode)])
    scale = np.array([code.scale for code in codes if isinstance(code, NumberCode)])
    signs = np.where(np.arange(len(codes)) % 2, -1.0, 1.0)  # columns that move together tell less
    rows: Any = middle + STEPS[:, None] * signs * scale
    if guarded.names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=list(guarded.names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return guarded.bands.predictor.columns(rows, len(STEPS), guarded.bands.levels)


def _alike(found: Array, kept: Array) -> bool:
    return bool(np.allclose(found, kept, rtol=CLOSE, atol=OF_THE_LARGEST * np.abs(kept).max()))
