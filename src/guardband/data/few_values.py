"""Targets with few different values, or with many equal ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guardband.exceptions import TargetWarning, warn

FEW_VALUES, ROWS_A_VALUE = 10, 5
"""Few values are at most so many, each with at least so many rows on average."""
MANY_EQUAL = 0.5


def remarks_on_values(y: NDArray[np.float64]) -> tuple[str, ...]:
    """Return what is to be said of a target with few values or many equal ones; two values are also warned of."""
    values, counts = np.unique(y, return_counts=True)
    few, most = len(values), int(counts.argmax())
    if 1 < few <= FEW_VALUES and len(y) >= ROWS_A_VALUE * few:
        words = f"The target has only {few} different values. Intervals will often contain "
        if few > 2:
            return (f"{words}several of them.",)
        words += "both."
        warn(f"{words} A classifier may answer your question better.", TargetWarning)
        return (words,)
    if few > FEW_VALUES and counts[most] >= MANY_EQUAL * len(y):
        share = f"{counts[most] / len(y):.0%}"
        return (
            f"{share} of the training targets are equal to {values[most]:g}. Coverage can exceed the confidence level, "
            "because equal targets are often covered together.",
        )
    return ()
