"""Where the weights of values that never meet reach a sum: exactly, by the digits of their bits.

The same search as for order statistics, with sums of weights in place of counts. A weight is a sum of whole numbers of
a few units. So sums have no error, and do not depend on the order of rows or on how they are cut into parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.order_statistics import BITS, FEWEST_BITS, MOST_BYTES, ROWS_AT_A_TIME, Digits, keys_of, values_of

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]
Answer = NDArray[np.generic]
MANTISSA, PART = 53, 26
"""A weight is a whole number of 53 bits times a power of two. It is added in parts of so many bits."""
BYTES_OF_ONE = 24
"""Values that may still be the wanted ones are sent as they are if they are few: key, target and weight of each."""


class Units(ABC):
    """How weights are sums of whole numbers of a few units; counts ``(..., columns)`` say of which how many."""

    columns: int
    """How many whole numbers there are."""

    @abstractmethod
    def counted(self, weights: Array, at: Counts, cells: int) -> Counts:
        """Return how much of each unit every cell has, ``(n,), (n,) -> (cells, columns)``.

        Parameters
        ----------
        weights : array of shape (n,)
            Weights, all positive.
        at : array of shape (n,)
            The cell of each.
        cells : int
            How many cells there are.
        """

    @abstractmethod
    def rows(self, counts: Counts) -> Counts:
        """Return the number of rows, ``(..., columns) -> (...)``."""

    @abstractmethod
    def total(self, counts: Counts) -> Fraction:
        """Return the sum of weights, ``(columns,)``."""

    def sum(self, weights: Array) -> Fraction:
        """Return the sum of some weights, ``(n,)``."""
        return self.total(self.counted(weights, np.zeros(len(weights), dtype=np.int64), 1)[0])


@dataclass(frozen=True)
class BinaryParts(Units):
    """Weights that are any positive numbers of double precision below ``2**top``, in parts of 26 bits; rows come last.

    >>> units = BinaryParts.between(0.1, 3.0)
    >>> units.sum(np.array([0.1, 0.2, 3.0])) == Fraction(0.1) + Fraction(0.2) + 3
    True
    """

    top: int
    parts: int

    @classmethod
    def between(cls, least: float, most: float) -> BinaryParts:
        """Return the units of weights from the least positive one to the largest."""
        top, bottom = int(np.frexp(most)[1]), int(np.frexp(least)[1])
        return cls(top, (top - bottom) // PART + 3)

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The parts, and the rows."""
        return self.parts + 1

    def counted(self, weights: Array, at: Counts, cells: int) -> Counts:
        """Return how much of each unit every cell has."""
        out = np.zeros(cells * self.columns, dtype=np.int64)
        mask = np.uint64((1 << PART) - 1)
        for first in range(0, len(weights), ROWS_AT_A_TIME):  # so few that sums of 26 bits are exact
            rows = slice(first, first + ROWS_AT_A_TIME)
            mantissas, exponents = np.frexp(weights[rows])
            whole = np.ldexp(mantissas, MANTISSA).astype(np.uint64)
            part, shift = np.divmod(self.top - exponents.astype(np.int64), PART)
            place, right = at[rows] * self.columns + part, shift.astype(np.uint64)
            each = (  # 53 bits, so many places further down, lie in three parts of 26
                whole >> (right + np.uint64(MANTISSA - PART)),
                (whole >> (right + np.uint64(1))) & mask,
                (whole << (np.uint64(PART - 1) - right)) & mask,
            )
            for j, own in enumerate(each):
                out += np.bincount(place + j, own.astype(np.float64), len(out)).astype(np.int64)
            out += np.bincount(at[rows] * self.columns + self.parts, minlength=len(out))
        return out.reshape(cells, self.columns)

    def rows(self, counts: Counts) -> Counts:
        """Return the number of rows."""
        out: Counts = counts[..., -1]
        return out

    def total(self, counts: Counts) -> Fraction:
        """Return the sum of weights."""
        units = 0
        for own in counts[:-1].tolist():
            units = (units << PART) + own
        power = self.top - PART * self.parts
        return Fraction(units << power) if power >= 0 else Fraction(units, 1 << -power)


@dataclass(frozen=True, eq=False)
class Inverses(Units):
    """Weights 1 / N of whole numbers N, which are given in place of the weights; ``sizes`` are those that there are.

    >>> Inverses(np.array([1, 2, 3])).sum(np.array([3.0, 3.0, 2.0]))
    Fraction(7, 6)
    """

    sizes: Counts

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The different numbers."""
        return len(self.sizes)

    def counted(self, weights: Array, at: Counts, cells: int) -> Counts:
        """Return how many weights of each size every cell has."""
        own = at * self.columns + np.searchsorted(self.sizes, weights.astype(np.int64))
        return np.bincount(own, minlength=cells * self.columns).reshape(cells, self.columns)

    def rows(self, counts: Counts) -> Counts:
        """Return the number of rows."""
        out: Counts = counts.sum(axis=-1)
        return out

    def total(self, counts: Counts) -> Fraction:
        """Return the sum of weights."""
        some = np.flatnonzero(counts)
        return sum((Fraction(int(counts[i]), int(self.sizes[i])) for i in some), Fraction(0))


@dataclass(frozen=True, eq=False)
class WeightDigits:
    """What is asked of every worker about values that begin with known bits, and about their weights.

    Parameters
    ----------
    digits : Digits
        Which values, and how many bits more are told apart; of width 0 the values themselves.
    units : Units
        How weights are added.
    """

    digits: Digits
    units: Units

    def answer(self, values: Array, weights: Array) -> Answer:
        """Return counts ``(T, 2**width, columns)``; or, of width 0, keys, targets and weights ``(m, 3)``.

        Parameters
        ----------
        values : array of shape (n,)
            Some values.
        weights : array of shape (n,)
            Their weights. Those of weight 0 do not count.
        """
        width, targets = self.digits.width, self.digits.targets
        cells, found = targets << width, []
        counts = np.zeros((cells, self.units.columns), dtype=np.int64)
        for first in range(0, len(values), ROWS_AT_A_TIME):
            rows = slice(first, first + ROWS_AT_A_TIME)
            keys, own = keys_of(values[rows]), weights[rows]
            at, target = self.digits.asked(keys)
            counts_at_all = own[at] > 0
            at, target = at[counts_at_all], target[counts_at_all]
            if width:
                cell = (target << width) + self.digits.digit(keys[at])
                counts += self.units.counted(own[at], cell, cells)
            else:
                found.append(np.stack([keys[at], target.astype(np.uint64), own[at].view(np.uint64)], axis=1))
        if width:
            return counts.reshape(targets, 1 << width, -1)
        return np.concatenate(found) if found else np.empty((0, 3), dtype=np.uint64)

    def together(self, answers: Sequence[Answer]) -> Answer:
        """Return the answers of several workers as one."""
        return self.digits.together(answers)


@dataclass(frozen=True)
class Reached:
    """The least value up to which weights reach a sum.

    Parameters
    ----------
    value : float
        The value, infinite if they never do.
    upto : Fraction
        The sum of the weights of all values up to it.
    rows : int
        How many values that are, of those that have a weight.
    """

    value: float
    upto: Fraction
    rows: int


def reached(
    sums: Sequence[Fraction], units: Units, most_bytes: int = MOST_BYTES
) -> Generator[WeightDigits, Answer, list[Reached]]:
    """Yield questions, take their answers, and return where weights reach sums, for each of these.

    >>> from guardband.data.order_statistics import replied
    >>> values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.5, 2.0, 1.0])
    >>> search = reached([Fraction(2), Fraction(9, 4)], BinaryParts.between(0.5, 2.0))
    >>> [own.value for own in replied(search, lambda question: question.answer(values, weights))]
    [1.0, 2.0]

    Parameters
    ----------
    sums : sequence of Fraction
        The sums, all positive.
    units : Units
        How weights are added.
    most_bytes : int, default 2**20
        How large an answer may be.
    """
    most = max(1, most_bytes // 8 // units.columns >> FEWEST_BITS)
    out: list[Reached] = []
    for first in range(0, len(sums), most):
        lot = [_Sought(own) for own in sums[first : first + most]]
        while any(own.done < BITS for own in lot):
            yield from _next_digit([own for own in lot if own.done < BITS], units, most_bytes)
        out += [own.found() for own in lot]
    return out


@dataclass
class _Sought:
    """A sum that is reached among the values that begin with ``done`` known bits; ``below`` is the sum before them."""

    sum: Fraction
    prefix: int = 0
    done: int = 0
    below: Fraction = Fraction(0)
    rows: int = 0
    left: int | None = None
    upto: Fraction | None = None

    def found(self) -> Reached:
        if self.upto is None:
            return Reached(float("inf"), self.below, self.rows)
        return Reached(float(values_of(np.array([self.prefix], dtype=np.uint64))[0]), self.upto, self.rows)


def _next_digit(sought: Sequence[_Sought], units: Units, most_bytes: int) -> Generator[WeightDigits, Answer, None]:
    """Learn one more digit of values that are all known as far, or all of them if few are left."""
    done, left = sought[0].done, {own.prefix: own.left for own in sought}
    prefixes, counts = sorted(left), [own for own in left.values() if own is not None]
    is_last = len(counts) == len(left) and sum(counts) * BYTES_OF_ONE <= most_bytes
    cells = most_bytes // 8 // units.columns // len(prefixes)
    width = 0 if is_last else max(1, min(BITS - done, cells.bit_length() - 1))
    target = np.arange(len(prefixes))[None]
    digits = Digits(done, width, np.array(prefixes, dtype=np.uint64), target, len(prefixes))
    answer: Any = yield WeightDigits(digits, units)
    row = {prefix: i for i, prefix in enumerate(prefixes)}
    if is_last:
        for own in sought:
            _find(own, answer[answer[:, 1] == row[own.prefix]], units)
        return
    sums = np.cumsum(answer, axis=1)
    for own in sought:
        mine = sums[row[own.prefix]]
        digit = bisect_left(range(1 << width), True, key=lambda d: own.below + units.total(mine[d]) >= own.sum)
        if digit:
            own.below, own.rows = own.below + units.total(mine[digit - 1]), own.rows + int(units.rows(mine[digit - 1]))
        if digit == 1 << width:  # which only the first question can find: the sum is never reached
            own.done = BITS
            continue
        here = answer[row[own.prefix], digit]
        own.prefix, own.done, own.left = own.prefix << width | digit, done + width, int(units.rows(here))
        if own.done == BITS:
            own.upto, own.rows = own.below + units.total(here), own.rows + own.left


def _find(own: _Sought, rows: Keys, units: Units) -> None:
    """Find the value among the few that are left, ``(m, 3)``."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    keys, weights = rows[:, 0], np.ascontiguousarray(rows[:, 2]).view(np.float64)
    at = bisect_left(range(len(rows)), True, key=lambda j: own.below + units.sum(weights[: j + 1]) >= own.sum)
    end = int(np.searchsorted(keys, keys[at], side="right"))
    own.prefix, own.done = int(keys[at]), BITS
    own.upto, own.rows = own.below + units.sum(weights[:end]), own.rows + end
