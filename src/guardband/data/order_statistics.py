"""Exact order statistics of values that never meet: by the digits of their bits, a few counters at a time.

The bits of a float64, read as a whole number, are in the order of the floats, once those of negative ones are turned
around. So the k-th smallest is found digit by digit: every worker counts how many of its values have each value of the
next digit, counters are added, and the sum says which value the k-th smallest has. When few values are left they are
sent as they are. Nothing is rounded: the result is the same number, to the bit, as a partition of all values.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Q = TypeVar("Q")
Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]
Codes = NDArray[np.integer]
BITS = 64
SIGN = np.uint64(1 << 63)
MOST_BYTES = 1 << 20
"""A worker sends so many bytes at most in answer to a question."""
BYTES_OF_ONE = 16
"""Values that may still be the wanted ones are sent as they are if they are few, each with the number of its target."""
FEWEST_BITS = 4
ROWS_AT_A_TIME = 1 << 16


def keys_of(values: Array) -> Keys:
    """Return whole numbers in the order of the values, ``(n,) -> (n,)``; both zeros are one.

    >>> keys = keys_of(np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, 1.0, np.inf]))
    >>> bool((np.diff(keys.astype(object)) >= 0).all()), bool(keys[2] == keys[3])
    (True, True)
    """
    bits = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    negative = bits >= SIGN
    out: Keys = np.where(negative, ~bits, bits | SIGN)
    return out


def values_of(keys: Keys) -> Array:
    """Return the values that ``keys_of`` numbered.

    >>> values_of(keys_of(np.array([-2.5, 0.0, np.inf]))).tolist()
    [-2.5, 0.0, inf]
    """
    return np.where(keys >= SIGN, keys ^ SIGN, ~keys).view(np.float64)


@dataclass(frozen=True, eq=False)
class Digits:
    """What is asked of every worker about the values that begin with known bits.

    Parameters
    ----------
    done : int
        How many bits are known.
    width : int
        How many bits more are counted; 0 asks for the values themselves.
    prefixes : array of shape (P,)
        The known bits of all targets, each once, in order.
    target : array of shape (G, P)
        The number of the target that a group and a prefix make, -1 where nobody asks.
    targets : int
        How many targets there are.
    """

    done: int
    width: int
    prefixes: Keys
    target: NDArray[np.int64]
    targets: int

    def answer(self, values: Array, codes: Codes | None = None) -> NDArray[np.generic]:
        """Return counts ``(T, 2**width)`` of some values; or, of width 0, keys and targets ``(m, 2)``.

        Parameters
        ----------
        values : array of shape (n,)
            Some values.
        codes : array of shape (n, J), default None
            The groups of each row, negative for none. None: all rows are one group.
        """
        counts = np.zeros(self.targets << self.width, dtype=np.int64)
        found: list[Keys] = []
        columns = [None] if codes is None else list(codes.T)
        for first in range(0, len(values), ROWS_AT_A_TIME):  # a block stays in the cache
            rows = slice(first, first + ROWS_AT_A_TIME)
            keys = keys_of(values[rows])
            for column in columns:
                asked, target = self.asked(keys, None if column is None else column[rows])
                own = keys[asked]
                if self.width:
                    at = (target << self.width) + self.digit(own)
                    counts += np.bincount(at, minlength=len(counts))
                else:
                    found.append(np.stack([own, target.astype(np.uint64)], axis=1))
        if self.width:
            return counts.reshape(self.targets, 1 << self.width)
        return np.concatenate(found) if found else np.empty((0, 2), dtype=np.uint64)

    def together(self, answers: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
        """Return the answer of several workers as one."""
        out: NDArray[np.generic] = np.sum(answers, axis=0) if self.width else np.concatenate(answers)
        return out

    def digit(self, keys: Keys) -> NDArray[np.int64]:
        """Return the next digit of keys that somebody asks for."""
        out: NDArray[np.int64] = (keys << np.uint64(self.done) >> np.uint64(BITS - self.width)).astype(np.int64)
        return out

    def asked(self, keys: Keys, column: Codes | None = None) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return which keys somebody asks for, and for which target.

        Parameters
        ----------
        keys : array of shape (n,)
            Some keys.
        column : array of shape (n,), default None
            The group of each, negative for none. None: all are one group.
        """
        if self.done:
            top = keys >> np.uint64(BITS - self.done)
            at = np.searchsorted(self.prefixes, top)
            at[at == len(self.prefixes)] = 0
            is_asked = self.prefixes[at] == top
        else:
            at, is_asked = np.zeros(len(keys), dtype=np.intp), np.ones(len(keys), dtype=bool)
        if column is not None:
            is_asked &= column >= 0
        rows = np.flatnonzero(is_asked)
        group = 0 if column is None else column[rows]
        target = self.target[group, at[rows]]
        known = np.flatnonzero(target >= 0)
        return rows[known], target[known]


Answer = NDArray[np.generic]
Ask = Callable[[Digits], Answer]
"""Sends a question to all workers, and returns their answers as one."""


def order_statistics(ranks: Counts, number: Counts, ask: Ask) -> Array:
    """Return the k-th smallest values of each group, infinite where there are fewer, ``(G, L), (G,) -> (G, L)``.

    >>> values = np.array([3.0, 1.0, np.inf, 2.0])
    >>> order_statistics(np.array([[1, 3, 5]]), np.array([4]), lambda question: question.answer(values)).tolist()
    [[1.0, 3.0, inf]]
    """
    return replied(searched(ranks, number), ask)


def replied(asking: Generator[Q, Any, T], reply: Callable[[Q], Any]) -> T:
    """Return what is learnt if questions get these replies."""
    try:
        question = next(asking)
        while True:
            question = asking.send(reply(question))
    except StopIteration as end:
        learnt: T = end.value
        return learnt


def searched(
    ranks: Counts,
    number: Counts,
    most_bytes: int = MOST_BYTES,
    off_by: float = 0.0,
    ends: tuple[float, float] = (-np.inf, np.inf),
) -> Generator[Digits, Answer, Array]:
    """Yield questions, take their answers, and return the k-th smallest values, ``(G, L), (G,) -> (G, L)``.

    Parameters
    ----------
    ranks : array of shape (G, L)
        The ranks k of each group, from 1.
    number : array of shape (G,)
        How many values each group has.
    most_bytes : int, default 2**20
        How large an answer may be.
    off_by : float, default 0.0
        By how many ranks a result may be off.
    ends : tuple of float, default (-infinity, infinity)
        Numbers between which all values lie.
    """
    out = np.full(ranks.shape, np.inf)
    wanted = [(g, int(k)) for g, own in enumerate(ranks) for k in np.unique(own) if 1 <= k <= number[g]]
    most = most_bytes // 8 >> FEWEST_BITS
    low, high = keys_of(np.array(ends)).tolist()
    done = BITS - (low ^ high).bit_length()  # digits that all values share
    prefix = low >> BITS - done
    for first in range(0, len(wanted), most):
        lot = [_Wanted(g, k, int(number[g]), prefix, done) for g, k in wanted[first : first + most]]
        while any(not own.is_found(off_by) for own in lot):
            yield from _next_digit([own for own in lot if not own.is_found(off_by)], len(number), most_bytes)
        for (g, k), own in zip(wanted[first : first + most], lot, strict=True):
            out[g, ranks[g] == k] = values_of(np.array([own.prefix << (BITS - own.done)], dtype=np.uint64))[0]
    return out


@dataclass
class _Wanted:
    """The value of a group with a rank among those that begin with ``done`` known bits, of which ``left`` are left."""

    group: int
    rank: int
    left: int
    prefix: int
    done: int

    def is_found(self, off_by: float) -> bool:
        return self.done == BITS or (self.done > 0 and self.left <= off_by)


def _next_digit(wanted: Sequence[_Wanted], groups: int, most_bytes: int) -> Generator[Digits, Answer, None]:
    """Learn one more digit of values that are all known as far, or all of them if few are left."""
    done = wanted[0].done
    held = {(own.group, own.prefix): own.left for own in wanted}
    pairs = sorted(held)
    is_last = sum(held.values()) * BYTES_OF_ONE <= most_bytes
    width = 0 if is_last else min(BITS - done, (most_bytes // 8 // len(pairs)).bit_length() - 1)
    answer: Any = yield _digits(done, width, pairs, groups)
    row = {pair: i for i, pair in enumerate(pairs)}
    if is_last:
        each = [np.sort(answer[answer[:, 1] == i, 0]) for i in range(len(pairs))]
        for own in wanted:
            own.prefix, own.done = int(each[row[own.group, own.prefix]][own.rank - 1]), BITS
        return
    sums = np.cumsum(answer, axis=1)
    for own in wanted:
        i = row[own.group, own.prefix]
        digit = int(np.searchsorted(sums[i], own.rank))
        own.rank -= int(sums[i, digit - 1]) if digit else 0
        own.left, own.prefix, own.done = int(answer[i, digit]), own.prefix << width | digit, done + width


def _digits(done: int, width: int, pairs: Sequence[tuple[int, int]], groups: int) -> Digits:
    prefixes = np.array(sorted({p for _, p in pairs}), dtype=np.uint64)
    target = np.full((groups, len(prefixes)), -1)
    for i, (g, p) in enumerate(pairs):
        target[g, int(np.searchsorted(prefixes, np.uint64(p)))] = i
    return Digits(done, width, prefixes, target, len(pairs))


# --------------------------------------------------------------------------------------------- quantiles


def ranks_around(share: float, n: int) -> tuple[int, int]:
    """Return the ranks of the two of n values between which a quantile lies, as numpy does."""
    low = int(np.floor(share * (n - 1)))
    return low, min(low + 1, n - 1)


def between(low: float, high: float, share: float, n: int) -> float:
    """Return the quantile of n values from those at ``ranks_around``, to the last bit as numpy's linear one."""
    place = share * (n - 1)
    part, gap = place - np.floor(place), np.float64(high) - low
    return float(low + gap * part if part < 0.5 else high - gap * (1 - part))


def middle_ranks(n: int) -> tuple[int, int]:
    """Return the ranks of the two of n values whose mean is the median: one of them, twice, if n is odd."""
    return (n - 1) // 2, n // 2
