"""The latest scores of rows whose true values are known, in order of time and in order of size."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable

import numpy as np

from guardband.calibration.summary import Array


class PastScores:
    """The last ``window`` scores; a new one drops the oldest. Its k-th smallest takes no search.

    Parameters
    ----------
    window : int or None
        How many scores to keep. None keeps all.
    scores : sequence of float, default ()
        The scores so far, oldest first.
    """

    def __init__(self, window: int | None, scores: Iterable[float] = ()) -> None:
        self.window = window
        self._in_time = deque(scores, window)
        self._in_size = sorted(self._in_time)

    def __len__(self) -> int:
        return len(self._in_size)

    def add(self, score: float) -> None:
        """Take one more score, the latest.

        Parameters
        ----------
        score : float
            The score; it may be infinite.
        """
        if len(self) == self.window:
            del self._in_size[bisect_left(self._in_size, self._in_time[0])]
        self._in_time.append(score)
        insort(self._in_size, score)

    def smallest(self, k: int) -> float:
        """Return the k-th smallest score; infinity if there are fewer, minus infinity if k is less than 1.

        Parameters
        ----------
        k : int
            The rank, counted from 1.
        """
        return -math.inf if k < 1 else math.inf if k > len(self) else self._in_size[k - 1]

    def in_time(self) -> Array:
        """Return the scores, oldest first, ``(n,)``."""
        return np.array(self._in_time, dtype=np.float64)

    def copy(self) -> PastScores:
        """Return the same scores, to which others can be added."""
        out = PastScores(self.window)
        out._in_time, out._in_size = self._in_time.copy(), self._in_size.copy()
        return out
