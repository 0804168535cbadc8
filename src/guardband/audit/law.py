"""Which law the number of covered rows follows, if the promise of a certificate holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.ranks import binomial_counts, covered_counts

Array = NDArray[np.float64]

BAND = 0.99
"""The share of audits whose count lies in the band, if all is as promised."""


@dataclass(frozen=True)
class Law:
    """How many of m rows are covered: Bin(m, p) with p ~ Beta(k, n + 1 - k) for ``rank`` (k, n), or with p = ``share``.

    With ``candidates``, the chance of a small count is at most that many times the law's (one of K networks was
    picked); ``open`` says that the law bounds the count from below only.
    """

    rank: tuple[int, int] | None = None
    share: float = 1.0
    candidates: int = 1
    open: bool = False

    def p_value(self, covered: int, m: int) -> float:
        """Return the probability of at most this count, or what bounds it."""
        return min(1.0, self.candidates * float(self._counts(m)[covered])) if m else 1.0

    def p_value_above(self, covered: int, m: int) -> float:
        """Return the probability of at least this count."""
        return 1.0 if self.open or covered == 0 else 1 - float(self._counts(m)[covered - 1])

    def least(self, m: int, significance: float) -> int:
        """Return the least count whose p-value is not below the significance."""
        return int(np.searchsorted(self._counts(m), significance / self.candidates))

    def band(self, m: int) -> tuple[int, int]:
        """Return the least and the largest count of the 99% band, equal tails."""
        tail, counts = (1 - BAND) / 2, self._counts(m)
        high = m if self.open else min(m, int(np.searchsorted(counts, 1 - tail)))
        return int(np.searchsorted(counts, tail / self.candidates)), high

    def _counts(self, m: int) -> Array:
        return _counts(m, self.rank, self.share)


@lru_cache(maxsize=16)
def _counts(m: int, rank: tuple[int, int] | None, share: float) -> Array:
    return covered_counts(m, *rank) if rank is not None else binomial_counts(m, share)


@dataclass(frozen=True)
class Promise:
    """What is to be expected of a level's count, and the laws that the count is tested against.

    A count breaks the promise if each of them makes it unlikely. ``share`` is what is promised of all new rows, None
    where nothing is or where it is promised on average.
    """

    level: float
    expected: Law
    tests: tuple[Law, ...]
    share: float | None

    def p_value(self, covered: int, m: int) -> float:
        """Return the probability of at most this count, under the law that makes it likeliest."""
        return max(law.p_value(covered, m) for law in self.tests)

    def least(self, m: int, significance: float) -> int:
        """Return the least count that does not break the promise."""
        return min(law.least(m, significance) for law in self.tests)


def promises_of(certificate: Certificate) -> tuple[Promise, ...]:
    """Return the promise of each level.

    marginal: the count is BetaBinomial(m; k, n + 1 - k). pac promises that coverage given the data is at least the
    level, but for a share delta of calibration sets. Bin(m, level) alone would call these broken, and the law of its
    rank alone would call models broken that are at the level: the count is tested by both. pav's rules make coverage
    stochastically larger than Beta(k, n + 1 - k), up to a factor K for the paper's own, and promise the bound of the
    certificate, or the level if asked for it. Where nothing is promised the level itself is the yardstick.
    """
    levels = _tuple(certificate.confidence_level)
    ranks, whole = _tuple(certificate.rank), _tuple(certificate.whole_line)
    bounds = _tuple(certificate.coverage_bound()) if certificate.kind != "none" else ()
    out = []
    for i, level in enumerate(levels):
        if certificate.kind == "none":
            out.append(Promise(level, Law(share=level), (Law(share=level),), None))
            continue
        if whole[i] if len(whole) > 1 else whole[0]:
            out.append(Promise(level, Law(share=1.0), (Law(share=1.0),), 1.0))
            continue
        pav = certificate.kind == "pav"
        among = certificate.candidates if certificate.rule == "paper" else 1
        expected = Law((ranks[i], certificate.n_calibration), candidates=among, open=pav)
        on_average = certificate.kind == "marginal" or (pav and certificate.aim == "average")
        if on_average:
            out.append(Promise(level, expected, (expected,), None))
            continue
        share = bounds[i] if pav and certificate.aim == "selection" else level
        out.append(Promise(level, expected, (expected, Law(share=share)), share))
    return tuple(out)


def _tuple(entry: Any) -> tuple[Any, ...]:
    return entry if isinstance(entry, tuple) else (entry,)
