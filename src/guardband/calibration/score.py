"""The scaled score and its interval (paper, Algorithm 1; sound at every edge).

``xp`` is the library that the arrays belong to, numpy or torch: both spell these functions alike, so that
one formula serves arrays and the calibrated network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def scaled_score(bands: Array, y: Array) -> Array:
    """Return the least c >= 0 for which [m - c (m - l), m + c (u - m)] contains y, ``(n, 3), (n,) -> (n,)``.

    Only the side on which y lies counts, so 0/0 never arises: y = m scores 0, a y beyond a side of no width
    scores infinity. So does a row whose band is not finite, and one whose quotient is too small for a
    normal number: its interval could not be computed back. Wherever both widths are positive this is the
    paper's maximum of two quotients, and one more than the score CQR-m of Sesia & Candès (2020).
    """
    lower, point, upper = bands[:, 0], bands[:, 1], bands[:, 2]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        gap = np.abs(y - point)
        width = np.maximum(np.where(y < point, point - lower, upper - point), 0)
        score = np.where(gap == 0, 0.0, gap / width)
    tiny = np.finfo(np.float64).tiny
    unusable = ~np.isfinite(bands).all(axis=1) | np.isnan(score) | ((gap > 0) & (score < tiny))
    return np.where(unusable, np.inf, score)


def scaled_interval(bands: Any, scale: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return lower and upper ends at scale c, rounded outward, ``(n, 3), () -> (n,), (n,)``.

    The slack 4 eps (|m| + c (u - l)) makes up for rounding: without it a tenth of all rows at the threshold
    fall outside their own interval. An infinite scale, or a band that is not finite, gives the whole line.
    """
    lower, point, upper = bands[:, 0], bands[:, 1], bands[:, 2]
    limits, zero = xp.finfo(bands.dtype), xp.zeros_like(point)
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = xp.maximum(point - lower, zero), xp.maximum(upper - point, zero)
        # tiny: in all four times the smallest number there is, for products that lose digits by underflow
        slack = 4 * limits.eps * (xp.abs(point) + scale * (below + above) + limits.tiny * (scale > 0))
        low, high = point - scale * below - slack, point + scale * above + slack
    usable = xp.isfinite(bands).all(1) & xp.isfinite(scale + zero) & ~xp.isnan(low) & ~xp.isnan(high)
    return xp.where(usable, low, -xp.inf), xp.where(usable, high, xp.inf)
