"""Is every side of a trained band alive?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DEAD_WIDTH = 1e-6
DEAD_SHARE = 0.01
NARROW = 0.01


def dead_shares(bands: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each member's share of rows with a side of no width, ``(M, n, 3) -> (M,)``.

    No width means at most 1e-6 standard deviations of the response, the unit that networks learn in.
    """
    shares: NDArray[np.float64] = (np.diff(bands, axis=2) <= DEAD_WIDTH).any(axis=2).mean(axis=1)
    return shares


def pinched_shares(bands: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each member's share of rows where the point sits on a bound, ``(M, n, 3) -> (M,)``.

    One side then takes less than a hundredth of the band: the point wants to leave it, as a mean does that
    lies beyond the outer quantile.
    """
    sides = np.diff(bands, axis=2)
    shares: NDArray[np.float64] = (sides.min(axis=2) <= NARROW * sides.sum(axis=2)).mean(axis=1)
    return shares
