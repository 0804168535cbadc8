"""The groups of a row as one number with a bit for each, where a row belongs to a group or does not.

Of a few groups all sets can be listed, so that what depends on a row's groups is looked up by this number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sets = NDArray[np.unsignedinteger[Any]]

MOST_GROUPS = 16
"""Of so many groups all sets are listed."""
ROWS_AT_A_TIME = 2**16
"""A multiple of eight, as eight rows always end with a byte."""


def sets_of(flags: NDArray[np.bool_]) -> Sets:
    """Return which groups each row belongs to as one number, ``(n, G) -> (n,)``, for at most 57 groups.

    All bits are packed in one run, and each row's are read out of it: to pack row by row takes ten times longer.
    """
    rows, width = flags.shape
    step = math.gcd(width, 8)
    period = 8 // step  # after so many rows a row begins with a byte again
    word = next(np.dtype(f"<u{size}") for size in (2, 4, 8) if width + 8 - step <= 8 * size)
    out = np.empty(rows, dtype=word)
    bits = np.empty(min(rows, ROWS_AT_A_TIME) * width // 8 + 1 + word.itemsize, dtype=np.uint8)
    for first in range(0, rows, ROWS_AT_A_TIME):
        own = out[first : first + ROWS_AT_A_TIME]
        packed = np.packbits(flags[first : first + ROWS_AT_A_TIME].reshape(-1), bitorder="little")
        bits[: len(packed)] = packed
        for row in range(min(period, len(own))):
            byte, shift = divmod(row * width, 8)
            every = own[row::period]
            words = np.ndarray(every.shape, word, bits, byte, (period * width // 8,))
            np.right_shift(words, word.type(shift), out=every)
        own &= word.type(2**width - 1)
    return out


def is_sets(group: Any) -> bool:
    """Return whether groups are said by sets: these are the only unsigned numbers among them."""
    return isinstance(group, np.ndarray) and group.dtype.kind == "u"


def flags_of(sets: Sets, groups: int) -> NDArray[np.bool_]:
    """Return which groups are in each set, ``(n,) -> (n, G)``."""
    return (sets[:, None] >> np.arange(groups, dtype=sets.dtype) & sets.dtype.type(1)).astype(bool)


def codes_of(flags: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return the number of its column where a row belongs to a group, otherwise -1, ``(n, G)``.

    In long runs: ten groups at a time take forty times longer.
    """
    rows, width = flags.shape
    times = next(size for size in (1000, 100, 10, 1) if rows % size == 0)
    numbers = np.tile(np.arange(1, width + 1, dtype=np.int8), times)
    out = flags.view(np.int8).reshape(-1, times * width) * numbers
    out -= 1
    return out.reshape(rows, width)
