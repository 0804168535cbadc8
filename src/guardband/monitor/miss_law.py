"""What misses may do while a promise holds: the law that evidence is measured against.

A miss is a row outside its interval. Given the calibration rows, misses of independent rows have one chance q.

On average over calibration sets q follows Beta(n + 1 - k, k), if no two scores are equal; with ties, whole numbers or
infinite intervals it is stochastically smaller. Of all such laws, the one that makes s misses among t rows likeliest
moves every q above s / t down to s / t: their likelihood is at most

    N(s, t) = E[L(min(U, s / t))],  L(q) = q^s (1 - q)^(t - s),  U ~ Beta(n + 1 - k, k).

A likelihood of anything else, divided by N, is therefore evidence that is right at every look, whatever the ties.

If a share is promised of all new rows, q is at most 1 - share, and evidence is a product of bets against that chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betaln, xlog1py, xlogy

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

SPREAD = 0.1
"""How much of what is expected before a change allows for any chance of a miss, in place of the law's."""
JEFFREYS = 0.5


@dataclass(frozen=True)
class MissLaw:
    """The chance of a miss: by the law of a rank k of n calibration rows, or at most ``1 - share``.

    Parameters
    ----------
    rank : pair of int, default None
        Rank k and number of calibration rows n.
    share : float, default 1.0
        What is promised of all new rows, if there is no rank.
    """

    rank: tuple[int, int] | None = None
    share: float = 1.0

    @property
    def chance(self) -> float:
        """The chance of a miss, on average, or at most."""
        if self.rank is None:
            return 1 - self.share
        k, n = self.rank
        return (n + 1 - k) / (n + 1)

    def before(self, misses: Counts, rows: Counts) -> Array:
        """Return the logarithm of what is expected of a sequence before a change, ``(n,), (n,) -> (n,)``.

        It is a probability of sequences with so many misses: mostly the law's, and to a small part one that allows for
        any chance, for intervals that contain more than they promise.
        """
        if self.rank is None:
            fixed: Array = xlogy(misses, 1 - self.share) + xlogy(rows - misses, self.share)
            return fixed
        k, n = self.rank
        own = _mixed(misses, rows, n + 1 - k, k)
        any_chance = _mixed(misses, rows, JEFFREYS, JEFFREYS)
        mixed: Array = np.logaddexp(own + np.log1p(-SPREAD), any_chance + np.log(SPREAD))
        return mixed

    def most(self, misses: Counts, rows: Counts) -> Array:
        """Return the logarithm of what a sequence has for probability at most while the promise holds."""
        if self.rank is None:
            return self.before(misses, rows)
        k, n = self.rank
        a, b = n + 1 - k, k
        share = misses / np.maximum(rows, 1)
        with np.errstate(divide="ignore"):
            below = _mixed(misses, rows, a, b) + np.log(betainc(a + misses, b + rows - misses, share))
            above = xlogy(misses, share) + xlog1py(rows - misses, -share) + np.log(betaincc(a, b, share))
        largest: Array = np.logaddexp(below, above)
        return largest


def _mixed(misses: Counts, rows: Counts, a: float, b: float) -> Array:
    """Return log E[q^s (1 - q)^(t - s)] for q ~ Beta(a, b)."""
    out: Array = betaln(a + misses, b + rows - misses) - betaln(a, b)
    return out
