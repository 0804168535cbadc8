"""The audit of several targets on counts of rows that are gone: counts of parts of them add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.counts import Counts, Tally
from guardband.audit.evidence import Evidence, found_among
from guardband.audit.guarded import Guarded
from guardband.audit.several import boxes_of_rows
from guardband.audit.target_view import TargetView
from guardband.data.fingerprint import fingerprints
from guardband.data.several_targets import key_of
from guardband.data.table import take_rows


@dataclass(frozen=True, eq=False)
class SeveralTally:
    """What was counted of rows with several targets.

    Parameters
    ----------
    n : int
        The number of rows in which all targets are known.
    inside : array of shape (L,)
        In how many of them all targets lie inside.
    used : int
        How many of them trained or calibrated the model.
    targets : tuple of Tally or None
        What was counted of each target, of the rows in which it is known. None if there are none.
    """

    n: int
    inside: Counts
    used: int
    targets: tuple[Tally | None, ...]

    @classmethod
    def of(cls, model: Guarded, X: Any, y: NDArray[np.float64]) -> SeveralTally:
        """Return what is counted of some rows and their targets, ``(n, q)``, which stand alone."""
        known = ~np.isnan(y)
        each: list[Tally | None] = []
        for j, is_known in enumerate(known.T):
            own, view = np.flatnonzero(is_known), TargetView(model, j)
            each.append(Tally.of(Evidence.of(view, take_rows(X, own), y[own, j])) if len(own) else None)
        complete = np.flatnonzero(known.all(axis=1))
        if not len(complete):
            levels = len(model.calibration_.rule.levels)
            return cls(0, np.zeros(levels, dtype=np.int64), 0, tuple(each))
        X, y = take_rows(X, complete), y[complete]
        table, calibrated = model.read_rows(X), model.calibration_
        inside = boxes_of_rows(model, X, table).contains(y).reshape(len(y), -1)
        _, used = found_among(fingerprints(table, key_of(y)), model.fitted_, calibrated.summary)
        return cls(len(y), inside.sum(axis=0), used, tuple(each))

    def __add__(self, other: SeveralTally) -> SeveralTally:
        pairs = zip(self.targets, other.targets, strict=True)
        each = tuple(a + b if a is not None and b is not None else a or b for a, b in pairs)
        return SeveralTally(self.n + other.n, self.inside + other.inside, self.used + other.used, each)
