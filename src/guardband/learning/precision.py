"""Precision: how many different values a column of numbers could have, and whether it merely counts rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_DECIMALS = 15
FIRST = 1000
NOISE = 4
"""Numbers are equal if they differ by so many times the precision of a float."""
OFF_THE_GRID = 0.001
"""The share of a step by which numbers in even steps may be off."""
MOST_SKIPPED = 10
"""A counter skips nine of ten numbers at most, since not all rows of a file train."""


def possible_values(values: Array) -> float:
    """Return how many values fit between the least and the largest, by the decimals or the steps that all need."""
    noise, decimals = _noise(values), range(MOST_DECIMALS)
    parts = (slice(FIRST), slice(None))  # a few values mostly tell that all need more decimals
    needed = next((d for d in decimals if all(_are_rounded(values[p], d, noise[p]) for p in parts)), MOST_DECIMALS)
    return min(float(np.ptp(values)) * 10.0**needed, steps_of_grid(values))


def counts_rows(values: Array) -> bool:
    """Return whether numbers count rows: no two are equal, and all lie in even steps, of which some may be missing."""
    several = len(values) > 1 and not np.isnan(values).any() and len(np.unique(values)) == len(values)
    return several and steps_of_grid(values) <= MOST_SKIPPED * len(values)


def steps_of_grid(values: Array) -> float:
    """Return how many steps of equal length lie between the least and the largest, or infinity if none fits all."""
    gaps = np.diff(np.sort(values))
    gaps = gaps[gaps > 2 * _noise(values).max(initial=0)]
    if not len(gaps):
        return 0.0
    steps = gaps / gaps.min()
    in_even_steps = (np.abs(steps - np.round(steps)) <= OFF_THE_GRID).all()
    return float(np.round(steps).sum()) if in_even_steps else math.inf


def _are_rounded(values: Array, decimals: int, noise: Array) -> bool:
    return bool((np.abs(np.round(values, decimals) - values) <= noise).all())


def _noise(values: Array) -> Array:
    """Return by how much equal numbers may differ, after they were floats of 32 bits if all of them still are."""
    is_single = np.array_equal(values.astype(np.float32), values)
    return np.asarray(NOISE * np.abs(values) * np.finfo(np.float32 if is_single else np.float64).eps)
