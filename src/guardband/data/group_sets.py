"""The groups of a row as one number: a bit for each where a row belongs to a group or does not, or its labels.

Of a few bits all numbers can be listed, so that what depends on a row's groups is looked up by this number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sets = NDArray[np.unsignedinteger[Any]]

MOST_GROUPS = 16
"""Of so many groups all sets are listed, and of labels with so many bits all combinations."""
MOST_BITS = 32
"""So many groups can be said by one number."""
WORD = 8
"""So many bytes are read at a time."""
ROWS_AT_A_TIME = 2**16
"""A multiple of eight, as eight rows always end with a byte."""


def sets_of(flags: NDArray[np.bool_]) -> Sets:
    """Return which groups each row belongs to as one number, ``(n, G) -> (n,)``, for at most ``MOST_BITS`` groups.

    All bits are packed in one run, and each row's are read out of it: to pack row by row takes twenty times longer.
    """
    rows, width = flags.shape
    period = 8 // math.gcd(width, 8)  # after so many rows a row begins with a byte again
    kind = np.dtype(np.uint16 if width <= 16 else np.uint32)
    out = np.empty(rows, dtype=kind)
    bits = np.empty(min(rows, ROWS_AT_A_TIME) * width // 8 + 1 + WORD, dtype=np.uint8)
    for first in range(0, rows, ROWS_AT_A_TIME):
        own = out[first : first + ROWS_AT_A_TIME]
        packed = np.packbits(flags[first : first + ROWS_AT_A_TIME].reshape(-1), bitorder="little")
        bits[: len(packed)] = packed
        start, words = -8 * WORD, np.empty(0, dtype=np.uint64)
        for row in range(min(period, len(own))):
            every = own[row::period]
            if (row + 1) * width > start + 8 * WORD:  # beyond the words that were read
                start = row * width // 8 * 8
                words = np.ndarray(every.shape, "<u8", bits, start // 8, (period * width // 8,)).copy()
            every[:] = words[: len(every)] >> np.uint64(row * width - start)
        own &= kind.type(2**width - 1)
    return out


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
    out: NDArray[np.int8] = flags.view(np.int8).reshape(-1, times * width) * numbers
    out -= 1
    return out.reshape(rows, width)


def numbers_of(labels: NDArray[np.integer[Any]]) -> tuple[Sets, int] | None:
    """Return the labels of each row as one number, ``(n, J) -> (n,)``, and how many of its bits each label has.

    None unless the labels are whole numbers from zero on, and few bits hold those of a row. The first rows mostly show
    how many: to look at all rows before takes a third of the time.
    """
    shown = _bits(labels[: ROWS_AT_A_TIME // 64])
    out = np.empty(len(labels), dtype=np.uint16)
    while shown is not None and shown * labels.shape[1] <= MOST_GROUPS:
        found: int | None = shown
        for first in range(0, len(labels), ROWS_AT_A_TIME // 4):  # which stay in the cache
            block, own = labels[first : first + ROWS_AT_A_TIME // 4], out[first : first + ROWS_AT_A_TIME // 4]
            found = _bits(block)
            if found is None or found > shown:
                break
            own[:] = block[:, 0]
            for j in range(1, labels.shape[1]):
                own |= block[:, j].astype(np.uint16) << np.uint16(shown * j)
        else:
            return out, shown
        shown = found
    return None


def labels_of(numbers: Sets, bits: int, columns: int) -> NDArray[np.int64]:
    """Return the labels that numbers stand for, ``(n,) -> (n, J)``."""
    out: NDArray[np.int64] = numbers[:, None].astype(np.int64) >> bits * np.arange(columns) & 2**bits - 1
    return out


def _bits(labels: NDArray[np.integer[Any]]) -> int | None:
    """Return how many bits hold any of the labels; None if one is negative."""
    every = int(np.bitwise_or.reduce(labels.ravel("K")))
    return every.bit_length() if every >= 0 else None
