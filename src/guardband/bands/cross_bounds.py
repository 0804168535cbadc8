"""What is proved of intervals by cross-validation, where every row calibrates networks that it did not train.

n rows in K folds have one score each, and k of n is the rank at a level: ``ranks.marginal_rank``. A row is missed if at
least k scores are smaller than its own scores, each compared within its fold's network (cv+), or if k scores are
smaller than the least of its own scores (cv-minmax). So intervals of cv-minmax contain those of cv+.

Each function returns a share of rows that may be missed. Proofs are in docs/mathematics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammaincc, gammaln, smirnovi


def plus_missed(k: int, sizes: Sequence[int]) -> float:
    """Return what cv+ misses at most, on average over possible tables.

    Twice an average of p-values is a p-value (Vovk & Wang 2020), one for each fold: at most 2 (n - k + K) / (n + K).
    With K equal folds of m rows, at most 2 (n - k) + m of n + m rows can beat k others (Barber et al. 2021, Theorem 4).
    Both are at most the bound of that theorem, 2 alpha + min{2 (1 - 1/K) / (m + 1), (1 - K/n) / (K + 1)}.

    >>> round(plus_missed(361, [50] * 8), 4)
    0.2304
    """
    n, folds = sum(sizes), len(sizes)
    if k > n:
        return 0.0
    missed = 2 * (n - k + folds) / (n + folds)
    if len(set(sizes)) == 1:
        missed = min(missed, (2 * (n - k) + sizes[0]) / (n + sizes[0]))
    return min(1.0, missed)


def minmax_missed(k: int, sizes: Sequence[int]) -> float:
    """Return what cv-minmax misses at most, on average over possible tables of independent rows.

    No more than cv+. With equal folds, at most n - k + m of n + m rows can beat k others, of which m share a fold: for
    folds of one row this is the level (Barber et al. 2021, Theorem 3), for larger ones it is not. And no more than
    (n - k) / n, by how much the rows of a fold misjudge its network: on average sup (F_m - F).

    >>> round(minmax_missed(361, [50] * 8), 4), round(minmax_missed(91, [1] * 100), 4)
    (0.1829, 0.099)
    """
    n = sum(sizes)
    if k > n:
        return 0.0
    missed = min(plus_missed(k, sizes), (n - k) / n + _weighted(sizes, _mean_excess))
    if len(set(sizes)) == 1:
        missed = min(missed, (n - k + sizes[0]) / (n + sizes[0]))
    return missed


def missed_given_data(k: int, sizes: Sequence[int], delta: float, most: int) -> float:
    """Return what is missed at most given the data, with probability 1 - delta; ``most`` is 2 for cv+, 1 for cv-minmax.

    Each fold is independent of its network, so that sup (F_m - F) has an exact law (Birnbaum & Tingey 1951). At 1 -
    delta / K for each of K folds, all hold at once (after Bian & Barber 2023, Theorem 2).
    """
    n, each = sum(sizes), delta / len(sizes)
    if k > n:
        return 0.0
    excess = _weighted(sizes, lambda m: float(smirnovi(m, each)))
    return min(1.0, most * ((n - k) / n + excess))


def _weighted(sizes: Sequence[int], of_fold: Callable[[int], float]) -> float:
    """Return the average over the rows of what depends on the size of their fold."""
    counts = Counter(sizes)
    return sum(count * size * of_fold(size) for size, count in counts.items()) / sum(sizes)


def _mean_excess(m: int) -> float:
    """Return the mean of sup (F_m - F): m! / (2 m^(m + 1)) times the sum of m^j / j! over j < m.

    >>> round(_mean_excess(2), 9)
    0.375
    """
    return float(np.exp(m + gammaln(m + 1) - (m + 1) * np.log(m)) * gammaincc(m, m) / 2)
