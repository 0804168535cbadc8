"""Row fingerprints: does a calibration row stand among the rows that trained?"""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Table
from guardband.exceptions import OverlapError

Prints = NDArray[np.uint64]

MOST_OVERLAP = 0.05
"""The share of calibration rows that may stand among the training rows, beyond what twins explain.

Genuine twins are common: 3 to 5% of the concrete data's calibration rows have one among the training rows.
"""


def fingerprints(table: Table, y: NDArray[np.float64]) -> Prints:
    """Return one 64-bit number per row of x and y: equal rows have equal numbers, ``(n,)``."""
    prints = np.zeros(table.n_rows, dtype=np.uint64)
    for column in table.columns:
        prints = _mix(prints, _bits(column.values) if column.kind == "number" else _text_bits(column.values))
    return _mix(prints, _bits(y))


def count_overlap(prints: Prints, training: Prints) -> int:
    """Return how many rows have an equal row among the training rows."""
    return int(np.isin(prints, training).sum())


def refuse_overlap(prints: Prints, training: Prints) -> None:
    """Raise if more rows stand among the training rows than twins explain.

    If the rows are independent, a calibration row has a twin among the training rows about as often as a
    training row has: only what exceeds that share by more than ``MOST_OVERLAP`` tells of a leak.
    """
    _, inverse, counts = np.unique(training, return_inverse=True, return_counts=True)
    twins = float((counts[inverse] > 1).mean())
    allowed = math.ceil((twins + MOST_OVERLAP) * len(prints))
    found = count_overlap(prints, training)
    if found > allowed:
        raise OverlapError(
            f"Calibration rows must be new to the network, found {found} of {len(prints)} among the rows that "
            f"trained it (twins in the table explain at most {allowed}): calibrate on rows held out from fit."
        )


def _bits(numbers: NDArray[np.float64]) -> Prints:
    # One bit pattern for 0.0 and -0.0, and one for every NaN.
    plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    return np.ascontiguousarray(plain).view(np.uint64)


def _text_bits(values: NDArray[np.object_]) -> Prints:
    known = {v: np.frombuffer(blake2b(repr(v).encode(), digest_size=8).digest(), np.uint64)[0] for v in set(values)}
    return np.array([known[v] for v in values], dtype=np.uint64)


def _mix(prints: Prints, bits: Prints) -> Prints:
    """Return a fresh hash of both (the finaliser of splitmix64, Steele et al. 2014)."""
    mixed = (prints * np.uint64(0x9E3779B97F4A7C15)) ^ bits
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
