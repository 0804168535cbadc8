"""Exact order statistics of scores that never meet: by the digits of their bits, a few counters at a time.

The bits of a float64, read as a whole number, are in the order of the floats, once those of negative ones are turned
around. So the k-th smallest is found digit by digit: every worker counts how many of its scores have each value of the
next digit, counters are added, and the sum says which value the k-th smallest has. When few scores are left they are
sent as they are. Nothing is rounded: the result is the same number, to the bit, as a partition of all scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.calibration.counted import Counts
from guardband.calibration.summary import Array

Keys = NDArray[np.uint64]
Codes = NDArray[np.integer]
BITS = 64
SIGN = np.uint64(1 << 63)
MOST_BYTES = 1 << 20
"""A worker sends so many bytes at most in answer to a question."""
MOST_COUNTERS = MOST_BYTES // 8
FEW = MOST_BYTES // 16
"""So few scores that may still be the wanted ones are sent as they are, each with the number of its target."""
FEWEST_BITS = 4
ROWS_AT_A_TIME = 1 << 16


def keys_of(scores: Array) -> Keys:
    """Return whole numbers in the order of the scores, ``(n,) -> (n,)``; both zeros are one.

    >>> keys = keys_of(np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, 1.0, np.inf]))
    >>> bool((np.diff(keys.astype(object)) >= 0).all()), bool(keys[2] == keys[3])
    (True, True)
    """
    bits = (np.asarray(scores, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    negative = bits >= SIGN
    out: Keys = np.where(negative, ~bits, bits | SIGN)
    return out


def scores_of(keys: Keys) -> Array:
    """Return the scores that ``keys_of`` numbered.

    >>> scores_of(keys_of(np.array([-2.5, 0.0, np.inf]))).tolist()
    [-2.5, 0.0, inf]
    """
    return np.where(keys >= SIGN, keys ^ SIGN, ~keys).view(np.float64)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every worker about the scores that begin with known bits.

    Parameters
    ----------
    done : int
        How many bits are known.
    width : int
        How many bits more are counted; 0 asks for the scores themselves.
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

    def answer(self, scores: Array, codes: Codes | None = None) -> NDArray[np.generic]:
        """Return counts ``(T, 2**width)`` of some scores; or, of width 0, keys and targets ``(m, 2)``.

        Parameters
        ----------
        scores : array of shape (n,)
            Some scores.
        codes : array of shape (n, J), default None
            The groups of each row, negative for none. None: all rows are one group.
        """
        counts = np.zeros(self.targets << self.width, dtype=np.int64)
        found: list[Keys] = []
        columns = [None] if codes is None else list(codes.T)
        for first in range(0, len(scores), ROWS_AT_A_TIME):  # a block stays in the cache
            rows = slice(first, first + ROWS_AT_A_TIME)
            keys = keys_of(scores[rows])
            for column in columns:
                own, target = self._asked(keys, None if column is None else column[rows])
                if self.width:
                    digit = own << np.uint64(self.done) >> np.uint64(BITS - self.width)
                    at = (target << self.width) + digit.astype(np.int64)
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

    def _asked(self, keys: Keys, column: Codes | None) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys that somebody asks for, and for which target."""
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
        return keys[rows[known]], target[known]


Ask = Callable[[Question], NDArray[np.generic]]
"""Sends a question to all workers, and returns their answers as one."""


def order_statistics(ranks: Counts, number: Counts, ask: Ask) -> Array:
    """Return the k-th smallest scores of each group, infinite where there are fewer, ``(G, L), (G,) -> (G, L)``.

    >>> scores = np.array([3.0, 1.0, np.inf, 2.0])
    >>> order_statistics(np.array([[1, 3, 5]]), np.array([4]), lambda question: question.answer(scores)).tolist()
    [[1.0, 3.0, inf]]
    """
    out = np.full(ranks.shape, np.inf)
    wanted = [(g, int(k)) for g, own in enumerate(ranks) for k in np.unique(own) if 1 <= k <= number[g]]
    most = MOST_COUNTERS >> FEWEST_BITS
    for first in range(0, len(wanted), most):
        lot = wanted[first : first + most]
        for (g, k), key in zip(lot, _keys(lot, len(number), number, ask), strict=True):
            out[g, ranks[g] == k] = scores_of(np.array([key], dtype=np.uint64))[0]
    return out


def _keys(wanted: Sequence[tuple[int, int]], groups: int, number: Counts, ask: Ask) -> list[int]:
    """Return the key of each wanted group and rank."""
    prefix = [0] * len(wanted)
    rank = [k for _, k in wanted]
    left = [int(number[g]) for g, _ in wanted]
    done = 0
    while done < BITS:
        pairs = sorted({(g, p) for (g, _), p in zip(wanted, prefix, strict=True)})
        held = {(g, p): n for (g, _), p, n in zip(wanted, prefix, left, strict=True)}
        is_last = sum(held.values()) <= FEW and done > 0
        width = 0 if is_last else min(BITS - done, (MOST_COUNTERS // len(pairs)).bit_length() - 1)
        question = _question(done, width, pairs, groups)
        answer = ask(question)
        number_of = {pair: i for i, pair in enumerate(pairs)}
        at = [number_of[g, p] for (g, _), p in zip(wanted, prefix, strict=True)]
        if is_last:
            each = [np.sort(answer[answer[:, 1] == i, 0]) for i in range(len(pairs))]
            return [int(each[i][k - 1]) for i, k in zip(at, rank, strict=True)]
        sums = np.cumsum(answer, axis=1)
        for j, i in enumerate(at):
            digit = int(np.searchsorted(sums[i], rank[j]))
            rank[j] -= int(sums[i, digit - 1]) if digit else 0
            left[j] = int(answer[i, digit])
            prefix[j] = prefix[j] << width | digit
        done += width
    return prefix


def _question(done: int, width: int, pairs: Sequence[tuple[int, int]], groups: int) -> Question:
    prefixes = np.array(sorted({p for _, p in pairs}), dtype=np.uint64)
    target = np.full((groups, len(prefixes)), -1)
    for i, (g, p) in enumerate(pairs):
        target[g, int(np.searchsorted(prefixes, np.uint64(p)))] = i
    return Question(done, width, prefixes, target, len(pairs))
