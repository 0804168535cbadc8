"""How much to train: known from the arguments, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_RESTARTS = 2
LONGEST_EPOCH = 1000
"""An epoch has at most so many steps: those of long tables are parts of a pass."""


@dataclass(frozen=True)
class Effort:
    """How much to train: so many copies of each network, for at most so many seconds, and restarts of dead ones.

    Several copies that stop early are trained on folds: each is stopped by rows that it did not see, and every row
    trains most copies.
    """

    copies: int = 1
    seconds: float = math.inf
    restarts: int = MOST_RESTARTS
