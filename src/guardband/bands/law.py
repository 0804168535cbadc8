"""Which law the number of covered rows follows, if a promise holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from guardband.bands.ranks import binomial_counts, coverage_bound, covered_counts

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """How many of m rows are covered: Bin(m, p) with p ~ Beta(k, n + 1 - k) for ``rank`` (k, n), or with p = ``share``.

    With ``candidates``, the chance of a small count is at most that many times the law's (one of K networks was
    picked; e for shares in place of counts); ``open`` says that the law bounds the count from below only.

    Parameters
    ----------
    rank : pair of int, default None
        Rank k and number of calibration rows n: the coverage is Beta(k, n + 1 - k).
    share : float, default 1.0
        A fixed coverage, if there is no rank.
    candidates : float, default 1
        How many networks were chosen from; small counts are at most that many times as likely.
    open : bool, default False
        Whether the law bounds the count from below only.
    """

    rank: tuple[int, int] | None = None
    share: float = 1.0
    candidates: float = 1
    open: bool = False

    def p_value(self, covered: int, m: int) -> float:
        """Return the probability of at most this count, or what bounds it.

        Parameters
        ----------
        covered : int
            How many of them fall inside their intervals.
        m : int
            The number of rows that are counted.
        """
        return min(1.0, self.candidates * float(self._counts(m)[covered])) if m else 1.0

    def p_value_above(self, covered: int, m: int) -> float:
        """Return the probability of at least this count.

        Parameters
        ----------
        covered : int
            How many of them fall inside their intervals.
        m : int
            The number of rows that are counted.
        """
        return 1.0 if self.open or covered == 0 else 1 - float(self._counts(m)[covered - 1])

    def least(self, m: int, significance: float) -> int:
        """Return the least count whose p-value is not below the significance.

        Parameters
        ----------
        m : int
            The number of rows that are counted.
        significance : float
            The p-value below which a count contradicts the promise.
        """
        return int(np.searchsorted(self._counts(m), significance / self.candidates))

    def band(self, m: int, tail: float) -> tuple[int, int]:
        """Return the least and the largest count to expect: with this probability, a count is lower, or is higher.

        Parameters
        ----------
        m : int
            The number of rows that are counted.
        tail : float
            The probability of a lower count, and of a higher one.
        """
        high = m if self.open else min(m, int(np.searchsorted(self._counts(m), 1 - tail)))
        return self.least(m, tail), high

    def least_share(self, significance: float) -> float:
        """Return the share below which a count contradicts the law once there are enough rows.

        Parameters
        ----------
        significance : float
            The p-value below which a count contradicts the promise.
        """
        return self.share if self.rank is None else coverage_bound(significance / self.candidates, *self.rank)

    def _counts(self, m: int) -> Array:
        return _counts(m, self.rank, self.share)


@lru_cache(maxsize=16)
def _counts(m: int, rank: tuple[int, int] | None, share: float) -> Array:
    return covered_counts(m, *rank) if rank is not None else binomial_counts(m, share)


@dataclass(frozen=True)
class Expectation:
    """What is to be expected of one level's count, and the laws that the count is tested against.

    A count contradicts the promise if each of them makes it unlikely. ``share`` is what is promised of all new rows,
    None where nothing is or where it is promised on average.

    Parameters
    ----------
    level : float
        The confidence level.
    expected : Law
        The law of the count if the promise holds.
    tests : tuple of Law
        The laws that the count is tested against. It contradicts the promise if each makes it unlikely.
    share : float or None
        What is promised of all new rows. None if nothing is, or if it is promised on average.
    """

    level: float
    expected: Law
    tests: tuple[Law, ...]
    share: float | None

    def p_value(self, covered: int, m: int) -> float:
        """Return the probability of at most this count, under the law that makes it likeliest.

        Parameters
        ----------
        covered : int
            How many of them fall inside their intervals.
        m : int
            The number of rows that are counted.
        """
        return max(law.p_value(covered, m) for law in self.tests)

    def least(self, m: int, significance: float) -> int:
        """Return the least count that does not contradict the promise.

        Parameters
        ----------
        m : int
            The number of rows that are counted.
        significance : float
            The p-value below which a count contradicts the promise.
        """
        return min(law.least(m, significance) for law in self.tests)

    def least_share(self, significance: float) -> float:
        """Return the share below which a count contradicts the promise once there are enough rows.

        Parameters
        ----------
        significance : float
            The p-value below which a count contradicts the promise.
        """
        return min(law.least_share(significance) for law in self.tests)
