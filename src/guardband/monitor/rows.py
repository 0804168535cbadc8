"""Rows as a monitor takes them: their intervals, groups, cells and times, until their true values are known."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import Side

Array = NDArray[np.float64]
Digests = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Intervals of rows and what is known of them: groups ``(n, J)``, cells ``(n, C)``, time, entity and fingerprint.

    ``lower`` and ``upper`` are ``(n, L)``, all others ``(n,)``; time is NaN and the entity 0 where there is none. The
    fingerprint is that of the inputs, or of the interval if there are none.
    """

    lower: Array
    point: Array
    upper: Array
    group: NDArray[np.int64]
    cells: NDArray[np.int16]
    time: Array
    entity: Digests
    prints: Digests

    def __len__(self) -> int:
        return len(self.point)

    def take(self, rows: Any) -> PredictedRows:
        """Return some of the rows."""
        return PredictedRows(*(getattr(self, own.name)[rows] for own in fields(self)))

    def joined(self, other: PredictedRows) -> PredictedRows:
        """Return these rows and others behind them."""
        pairs = [(getattr(self, own.name), getattr(other, own.name)) for own in fields(self)]
        if any(first.shape[1:] != second.shape[1:] for first, second in pairs):
            raise ValueError(
                "These rows have another number of levels, groups or columns than those that wait. Pass rows of the "
                "same kind, or begin a new state."
            )
        return PredictedRows(*(np.concatenate(pair) for pair in pairs))

    def inside(self, y: Array, side: Side, i: int) -> NDArray[np.bool_]:
        """Return which true values lie in their interval at a level, or on the right side of one of its bounds."""
        above, below = self.lower[:, i] <= y, y <= self.upper[:, i]
        out: NDArray[np.bool_] = above if side == "lower" else below if side == "upper" else above & below
        return out

    def members(self, group: int | None) -> NDArray[np.bool_]:
        """Return which rows belong to a group, all of them for None."""
        if group is None:
            return np.ones(len(self), dtype=bool)
        found: NDArray[np.bool_] = (self.group == group).any(axis=1)
        return found
