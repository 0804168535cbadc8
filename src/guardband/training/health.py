"""Is every side of a trained band alive?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DEAD_WIDTH = 1e-6
DEAD_SHARE = 0.01
FEWEST_IN_GROUP = 1000


def dead_shares(bands: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return each member's share of rows with a side of no width, ``(M, n, 3)`` or ``(M, n, q, 3) -> (M,)``.

    Of q targets, those of one are enough. No width means at most 1e-6 standard deviations of the response, the unit
    that networks learn in.
    """
    narrow = np.diff(bands, axis=-1) <= DEAD_WIDTH
    shares: NDArray[np.float64] = narrow.reshape(*bands.shape[:2], -1).any(axis=2).mean(axis=1)
    return shares


def varied_targets(y: NDArray[np.float64], targets: int) -> NDArray[np.bool_]:
    """Return which of q targets have different values, ``(..., n)`` or ``(..., n, q) -> (q,)``; NaN says nothing."""
    each = y.reshape(-1, targets)
    varied: NDArray[np.bool_] = np.fmax.reduce(each) > np.fmin.reduce(each)
    return varied


def mean_leaves(bands: NDArray[np.floating], y: NDArray[np.float64], taus: Sequence[float]) -> NDArray[np.bool_]:
    """Return for which members the mean lies beyond an outer quantile, ``(M, n, 3), (n,), (M,) -> (M,)``.

    The ordering keeps the point between the bounds, so that a mean beyond them cannot be seen in the bands.
    It is seen in the responses: more than 1 - tau/2 of them, or fewer than tau/2, then lie below the point.
    Looked at in up to ten groups of rows of similar length of the band, since it may happen in a part only.
    """
    groups = max(1, min(10, len(y) // FEWEST_IN_GROUP))
    leaves = np.zeros(len(bands), dtype=bool)
    for i, (band, tau) in enumerate(zip(bands, taus, strict=True)):
        below = y <= band[:, 1]
        by_length = np.array_split(np.argsort(band[:, 2] - band[:, 0]), groups)
        shares = np.array([below[group].mean() for group in by_length])
        margin = 4 * np.sqrt(tau / 2 * (1 - tau / 2) / min(map(len, by_length)))  # four standard errors
        leaves[i] = (np.abs(shares - 0.5) > 0.5 - tau / 2 + margin).any()
    return leaves
