"""A set of digests that grows row by row: to ask it, and to add to it, takes about as long however large it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from guardband.monitor.rows import Digests

Rows = NDArray[np.int64]

MOST_LATEST = 1024
"""So many of the latest are kept as they came; then they are put among the others."""


def _no_keys() -> Digests:
    return np.empty(0, dtype=np.uint64)


def _no_rows() -> Rows:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class KeySet:
    """Digests of keys, each with the row that it belongs to: most of them in order, the latest few as they came.

    >>> some = KeySet().added(np.array([5, 3], dtype=np.uint64), np.array([10, 11]))
    >>> some.row_of(np.array([3, 4], dtype=np.uint64)), len(some)
    (array([11, -1]), 2)
    """

    settled: Digests = field(default_factory=_no_keys)
    rows: Rows = field(default_factory=_no_rows)
    latest: Digests = field(default_factory=_no_keys)
    latest_rows: Rows = field(default_factory=_no_rows)

    def __len__(self) -> int:
        return len(self.settled) + len(self.latest)

    def has(self, keys: Digests) -> NDArray[np.bool_]:
        """Return which keys are in the set, ``(n,) -> (n,)``."""
        found: NDArray[np.bool_] = self.row_of(keys) >= 0
        return found

    def row_of(self, keys: Digests) -> Rows:
        """Return the row of each key, -1 for one that is not in the set, ``(n,) -> (n,)``."""
        out = np.full(len(keys), -1, dtype=np.int64)
        order = np.argsort(self.latest)
        for known, rows in ((self.settled, self.rows), (self.latest[order], self.latest_rows[order])):
            if len(known):
                at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                out = np.where(known[at] == keys, rows[at], out)
        return out

    def added(self, keys: Digests, rows: Rows) -> KeySet:
        """Return the set with further keys, of which it has none yet, and their rows."""
        latest, latest_rows = np.concatenate([self.latest, keys]), np.concatenate([self.latest_rows, rows])
        own = KeySet(self.settled, self.rows, latest, latest_rows)
        return own if len(latest) <= MOST_LATEST else own.in_order()

    def in_order(self) -> KeySet:
        """Return the same with all keys in order."""
        order = np.argsort(self.latest)
        keys = np.concatenate([self.settled, self.latest[order]])
        rows = np.concatenate([self.rows, self.latest_rows[order]])
        order = np.argsort(keys, kind="stable")  # which merges two runs
        return KeySet(keys[order], rows[order])
