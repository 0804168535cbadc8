"""The units of a target, for distributions: its transform, its bounds and whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.bands.units import Units
from guardband.data.target import Target
from guardband.data.transforms import NAMED, Own, work_of
from guardband.data.whole_numbers import LARGEST_WHOLE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TargetUnits(Units):
    """Places are on the scale on which the target is learnt, outcomes in the target's own units."""

    target: Target

    def to_work(self, y: Array, strictly: bool = False) -> Array:
        """Return values after the transform, where they are infinite if no or all outcomes lie at or below them.

        Of whole outcomes those at or below c are those at or below m, the last whole number there, and it is placed at
        m + 1/2: up to there ``rounded`` comes to m. T(x, y) is at most T(x, m + 1/2) for every whole y <= c, and at
        least that for every other, so that p-values stay valid.
        """
        target, y = self.target, np.asarray(y, dtype=np.float64)
        work, y_max = self._forward(y), target.y_max
        if target.whole:
            given, y, y_max = work, _last_whole(y, strictly), None if y_max is None else math.floor(y_max)
            work, half, strictly = self._forward(y), self._forward(y + 0.5), False
            # a user's own function may not take m + 1/2, or m: the value next to it is as valid
            work = np.where(np.isinf(work), work, np.where(np.isnan(half), np.where(np.isnan(work), given, work), half))
        if target.y_min is not None:
            work = np.where(y <= target.y_min if strictly else y < target.y_min, -np.inf, work)
        if y_max is not None:
            work = np.where(y > y_max if strictly else y >= y_max, np.inf, work)
        if np.isnan(work).any():
            raise ValueError("Your target_transform returned NaN for one of these values. Ask for others.")
        return work

    def _forward(self, y: Array) -> Array:
        """Return values after the transform: infinite beyond what it can take, and NaN if a user's own says so."""
        transform = self.target.transform
        with np.errstate(all="ignore"):
            if transform is None:
                return y
            if isinstance(transform, tuple):
                return work_of(transform[0], y)
            named = NAMED[transform]
            return np.where(named.possible(y), named.forward(y), np.where(y > 0, np.inf, -np.inf))

    @property
    def has_density(self) -> bool:
        """Whether the target is neither transformed nor bounded nor a whole number."""
        own = self.target
        return own.transform is None and not own.whole and own.y_min is None and own.y_max is None

    def of_outcomes(self, y: Array) -> Array:
        """Return true values after the transform; those that cannot be are refused."""
        return self.target.to_work(y)

    def back(self, work: Array, up: bool = False) -> Array:
        """Return outcomes in the units of the target, within its bounds."""
        target, out, sign = self.target, work, int(up)
        if isinstance(target.transform, tuple):
            infinite = np.isinf(work)
            finite = Own(*target.transform, target.slack).back(np.where(infinite, 0.0, work), sign, np)
            out = np.where(infinite, work, finite)
        elif target.transform is not None:
            out = np.where(np.isposinf(work), work, NAMED[target.transform].back(work, sign, np))
        if target.y_min is None and target.y_max is None:
            return out
        return np.clip(out, target.y_min, target.y_max)

    def rounded(self, values: Array) -> Array:
        """Return the nearest whole numbers, the lower of two, if the target is whole."""
        if not self.target.whole:
            return values
        target, out = self.target, np.where(np.abs(values) < LARGEST_WHOLE, np.ceil(values - 0.5) + 0.0, values)
        least = -np.inf if target.y_min is None else math.ceil(target.y_min)
        most = np.inf if target.y_max is None else math.floor(target.y_max)
        return np.clip(out, least, most)


def _last_whole(y: Array, strictly: bool) -> Array:
    """Return the last whole number at or below y, or strictly below; beyond the largest ones the last float."""
    small = np.abs(y) < LARGEST_WHOLE
    if not strictly:
        return np.where(small, np.floor(y), y)
    return np.where(small, np.ceil(y) - 1, np.where(np.isinf(y), y, np.nextafter(y, -np.inf)))
