"""What was predicted of several targets: one prediction for each, of any kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.bands.predicted import Predicted


@dataclass(frozen=True, eq=False)
class PredictedSeveral(Predicted):
    """A prediction for each of q targets, of the same rows and of one kind.

    Parameters
    ----------
    targets : tuple of Predicted
        The prediction of each target.
    """

    what = "a prediction for each of several targets"
    hint = "Bring arrays with one column for each target."
    targets: tuple[Predicted, ...]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The arrays of the first target, of the second, and so on."""
        return tuple(part for own in self.targets for part in own.parts)

    @property
    def point(self) -> Any:
        """The points of all targets, ``(C, K, n, q)``."""
        return np.stack([own.point for own in self.targets], axis=-1)

    def map(self, change: Callable[[Any], Any]) -> PredictedSeveral:
        """Return the same with every part changed."""
        return PredictedSeveral(tuple(own.map(change) for own in self.targets))

    def finite(self, xp: Any = np) -> Any:
        """Return which predictions are finite for all targets, ``(C, K, n)``."""
        out = self.targets[0].finite(xp)
        for own in self.targets[1:]:
            out = out & own.finite(xp)
        return out

    def faults(self) -> tuple[Any, str]:
        """Return which rows hold for some target what no prediction can be, and what must hold instead."""
        found = [own.faults() for own in self.targets]
        return np.any([rows for rows, _ in found], axis=0), found[0][1]
