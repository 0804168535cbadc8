"""The levels that distributions are compared on, and the one score for all methods."""

from __future__ import annotations

import numpy as np

LEVELS = np.arange(1, 100) / 100
ROWS_AT_ONCE = 2_000


def crps_of_quantiles(y: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the CRPS of each row from its quantiles: twice the mean pinball loss, (n,), (n, 99) -> (n,)."""
    out = np.empty(len(y))
    for start in range(0, len(y), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        away = y[rows, None] - quantiles[rows]
        out[rows] = 2 * np.maximum(LEVELS * away, (LEVELS - 1) * away).mean(axis=1)
    return out
