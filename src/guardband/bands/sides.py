"""What intervals with one bound are measured by, and what each bound adds to the interval score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import Side

Array = NDArray[np.float64]
Tails = tuple[tuple[float, ...] | None, tuple[float, ...] | None]
"""At each level, the share that may lie below the interval, and above; None for a side that has no bound."""
REACH = {
    "both": "width",
    "lower": "distance from the prediction down to the lower bound",
    "upper": "distance from the prediction up to the upper bound",
}
"""What is meant by how far intervals reach, in words."""


def reach(lower: Any, point: Any, upper: Any, side: Side) -> Any:
    """Return how far intervals reach, ``(n, L), (n,), (n, L) -> (n, L)``, or ``(n,)`` for all.

    That is their width. If they have one bound, it is the distance of the bound from the prediction.

    Parameters
    ----------
    lower : array of shape (n,) or (n, L)
        The lower bounds.
    point : array of shape (n,)
        The predictions.
    upper : array of shape (n,) or (n, L)
        The upper bounds.
    side : {"both", "lower", "upper"}
        Which bound the promise is about.

    Examples
    --------
    >>> reach(np.array([-np.inf]), np.array([1.0]), np.array([3.0]), "upper")
    array([2.])
    """
    point = point if lower.ndim == point.ndim else point[:, None]
    return upper - point if side == "upper" else point - lower if side == "lower" else upper - lower


def bound_scores(y: Array, lower: Array, upper: Array, tails: Tails) -> tuple[Array, Array]:
    """Return what each bound adds to the interval score, ``(n, 1), (n, L), (n, L) -> (n, L)`` twice.

    A lower bound adds (y - lower) + (lower - y)_+ / a, where the share a may lie below it, and an upper bound likewise:
    the quantile loss, divided by the share. The sum for two tails of alpha / 2 is Winkler's interval score. A side that
    has no bound adds 0.

    Parameters
    ----------
    y : array of shape (n, 1)
        The true values.
    lower : array of shape (n, L)
        The lower bounds.
    upper : array of shape (n, L)
        The upper bounds.
    tails : pair of tuples or None
        At each level, the share that may lie below, and above; None for a side that has no bound.
    """
    below, above = tails
    nothing = np.zeros_like(lower)
    low = nothing if below is None else (y - lower) + np.maximum(lower - y, 0) / np.array(below)
    high = nothing if above is None else (upper - y) + np.maximum(y - upper, 0) / np.array(above)
    return low, high
