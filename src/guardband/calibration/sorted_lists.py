"""The k-th smallest entry of several sorted lists, for many rows at once, without writing the lists down.

Each row has its own lists, whose entries are computed when they are looked at: O(K log n) of them for K lists with n
entries in all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]
LARGEST = float(np.finfo(np.float64).max)
SHORT = 8
"""Lists of so many entries are written down: with one entry each, as many looks as lists would be needed."""


def kth_smallest(entry: Callable[[Places], Array], lengths: Places, k: int, rows: int) -> Array:
    """Return the k-th smallest of all entries of each row's lists, ``(rows,)``, for k from 1 to their number.

    In each list one entry is looked at, in proportion so far behind that about k entries are no larger than the largest
    of these, and no fewer than about k - 1 are smaller than the least. All behind the first and all before the second
    can then be left out. Equal entries are told apart by their list.

    Parameters
    ----------
    entry : function of places (K, rows)
        Returns the entries at these places of the lists of each row, (K, rows). No list may decrease, and a place
        behind the end of a list may have any entry.
    lengths : array of shape (K,)
        The length of each list.
    k : int
        Which entry, from 1.
    rows : int
        The number of rows.
    """
    if lengths.max() <= SHORT:
        places = np.arange(lengths.max())
        every = np.stack([entry(np.full((len(lengths), rows), place, dtype=np.intp)) for place in places], 1)
        every[lengths[:, None] <= places] = np.inf
        return np.asarray(np.partition(every.reshape(-1, rows), k - 1, axis=0)[k - 1])
    each = np.arange(rows)
    first = np.zeros((len(lengths), rows), dtype=np.intp)
    end = np.repeat(lengths.astype(np.intp)[:, None], rows, axis=1)
    left = np.full(rows, k, dtype=np.intp)
    while True:
        count = end - first
        total, is_left = count.sum(0), count > 0
        if total.max(initial=1) == 1:
            found = entry(first)
            return np.asarray(np.where(is_left, found, -np.inf).max(0))
        ahead = (left - 1) * count // total
        place = first + ahead
        seen = np.clip(entry(place), -LARGEST, LARGEST)
        most = len(lengths) - 1 - np.where(is_left, seen, -np.inf)[::-1].argmax(0)
        least = np.where(is_left, seen, np.inf).argmin(0)
        before = ahead.sum(0)
        # All entries up to those looked at are no larger than the largest: these are enough for k, or one more.
        end[most, each] = place[most, each] + (before + is_left.sum(0) <= left)
        # Only those before them may be smaller than the least: these are fewer than k, by one or more.
        start = place[least, each] + (before < left - 1)
        left -= start - first[least, each]
        first[least, each] = start
