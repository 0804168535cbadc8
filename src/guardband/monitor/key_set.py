"""A set of digests that grows row by row: to ask it, and to add to it, takes about as long however large it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from guardband.monitor.rows import Digests

MOST_LATEST = 1024
"""So many of the latest are kept as they came; then they are put among the others."""


def _none() -> Digests:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class KeySet:
    """Digests of keys: most of them in order, the latest few as they came.

    >>> some = KeySet().added(np.array([5, 3], dtype=np.uint64))
    >>> some.has(np.array([3, 4], dtype=np.uint64)), len(some)
    (array([ True, False]), 2)
    """

    settled: Digests = field(default_factory=_none)
    latest: Digests = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.settled) + len(self.latest)

    def has(self, keys: Digests) -> NDArray[np.bool_]:
        """Return which keys are in the set, ``(n,) -> (n,)``."""
        found: NDArray[np.bool_] = np.isin(keys, self.latest)
        if len(self.settled):
            at = np.minimum(np.searchsorted(self.settled, keys), len(self.settled) - 1)
            found |= self.settled[at] == keys
        return found

    def added(self, keys: Digests) -> KeySet:
        """Return the set with further keys, of which it has none yet."""
        latest = np.concatenate([self.latest, keys])
        if len(latest) <= MOST_LATEST:
            return KeySet(self.settled, latest)
        return KeySet(KeySet(self.settled, latest).in_order())

    def in_order(self) -> Digests:
        """Return all keys, rising."""
        return np.sort(np.concatenate([self.settled, np.sort(self.latest)]), kind="stable")  # which merges two runs
