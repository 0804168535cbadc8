"""Training and calibration rows by a keyed hash: the same on any machine, in any order of rows and of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.data.fingerprint import Prints, column_prints, mix, with_target
from guardband.data.several_targets import key_of
from guardband.data.table import Table

PART, ORDER, FOLD = 1, 2, 3
"""What a hash is used for: each use has a key of its own, so that none says anything of another."""


@dataclass(frozen=True)
class HashSplit:
    """Which rows calibrate: a ``share`` of them, as their hash says; the others train.

    Rows that are equal in all columns and in the target have one hash, and so have rows with equal ``keys``, if columns
    are named that say what rows belong to. None of them are divided. The hash depends on cells as fingerprints see
    them, and on the ``seed``, but not on the order of columns.

    >>> split = HashSplit(seed=0, share=0.25)
    >>> prints = np.arange(4, dtype=np.uint64)
    >>> split.calibrates(prints).tolist()
    [False, True, False, False]
    """

    seed: int
    share: float
    keys: tuple[str, ...] = ()

    def prints(self, table: Table, y: NDArray[np.float64]) -> Prints:
        """Return what the place of each row depends on, ``(n,)``; y is ``(n,)``, or ``(n, q)`` of several targets."""
        columns = {column.name: column for column in table.columns}
        names: Sequence[str] = sorted(self.keys or columns)
        prints = np.zeros(table.n_rows, dtype=np.uint64)
        for name in names:
            prints = mix(prints, column_prints(columns[name]))
        if self.keys:
            return prints
        return with_target(prints, y if y.ndim == 1 else key_of(y))

    def calibrates(self, prints: Prints) -> NDArray[np.bool_]:
        """Return which rows calibrate, ``(n,)``."""
        return self._places(prints, PART) < self.share

    def order(self, prints: Prints, y: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return an order of rows that does not depend on the one in which they came."""
        return np.lexsort((*np.atleast_2d(y.T), prints, self._hashed(prints, ORDER)))

    def folds(self, prints: Prints, folds: int) -> NDArray[np.intp]:
        """Return the fold of each row, from 0 on."""
        return (self._places(prints, FOLD) * folds).astype(np.intp)

    def sampled(self, prints: Prints, share: float) -> NDArray[np.bool_]:
        """Return a share of the rows, the first in order, ``(n,)``."""
        return self._places(prints, ORDER) < share

    def _hashed(self, prints: Prints, use: int) -> Prints:
        key = np.full(len(prints), self.seed % 2**61, dtype=np.uint64) * np.uint64(8) + np.uint64(use)
        return mix(mix(key, prints), key)

    def _places(self, prints: Prints, use: int) -> NDArray[np.float64]:
        # 53 bits are exact, so that no place is rounded to 1.
        places: NDArray[np.float64] = (self._hashed(prints, use) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return places
