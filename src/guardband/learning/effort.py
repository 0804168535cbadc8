"""How much to train: known from the arguments, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MOST_RESTARTS = 2
LONGEST_EPOCH = 1000
"""An epoch has at most so many steps: those of long tables are parts of a pass."""
FOLDS_TO_STOP = 8
"""A copy for a fold of a table is stopped by one of so many parts of its training rows, or of more."""


@dataclass(frozen=True)
class Effort:
    """How much to train: so many copies of each network, for at most so many seconds, and restarts of dead ones.

    Several copies that stop early are trained on folds: each is stopped by rows that it did not see, and every row
    trains most copies. ``folds`` is the least number of these, if each copy is to train on more rows than so few copies
    would leave it.
    """

    copies: int = 1
    seconds: float = math.inf
    restarts: int = MOST_RESTARTS
    folds: int = 1

    def crossed(self, folds: int) -> Effort:
        """Return the effort for each of so many folds of a table.

        All folds together have up to twice as many copies as one table has, because every copy takes its time to
        predict. Each trains on as large a share of its rows as otherwise. Two at least, which may take turns with two
        scales of the target.
        """
        if self.copies == 1:
            return self
        copies = max(2, 2 * self.copies // folds)
        return replace(self, copies=copies, folds=max(self.copies, FOLDS_TO_STOP))
