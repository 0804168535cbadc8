"""What a cell hands to the judge: few numbers, of which the judge makes a p-value by an exact law.

``beta``: coverages of independent calibration sets follow Beta(k, n + 1 - k), or are larger in distribution.
``share``: so many of the sets failed, each with at most a given chance.
``mean``: values between 0 and 1 with a mean of at least a given number.
``never``: what must not happen at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, ndtri
from scipy.stats import binom

Array = NDArray[np.float64]

ROUNDING = 1e-9
"""By so much a coverage may miss a level before it counts as a failure. Coverages of whole numbers meet levels."""
CLIP = 8.0
"""Normal scores above it count as it. Without ties one in 10**15 is larger."""
CHUNK = 0.5
"""The largest bet, as a share of what could be lost."""


@dataclass(frozen=True)
class Cell:
    """One question to a promise: the law that its figures follow if the promise holds.

    ``should_hold`` is False for a control, which the judge must refute.
    """

    name: str
    law: str
    figures: dict[str, Any] = field(default_factory=dict)
    should_hold: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return asdict(self)


def exact(level: float) -> Fraction:
    """Return a level as it is written."""
    return Fraction(str(level))


def rank_on_average(level: float, n: int) -> int:
    """Return the least k with k / (n + 1) at or above the level. Written apart from guardband's own."""
    asked = exact(level)
    return -(-asked.numerator * (n + 1) // asked.denominator)


def rank_given_data(level: float, n: int, delta: float) -> int:
    """Return the least k that at least k of n rows meet with chance ``delta`` or less; n + 1 if there is none."""
    counts = np.arange(1, n + 1)
    enough = np.flatnonzero(binom.sf(counts - 1, n, float(level)) <= delta)
    return int(counts[enough[0]]) if len(enough) else n + 1


def beta_cell(name: str, coverage: ArrayLike, k: ArrayLike, n: ArrayLike, is_exact: bool, holds: bool = True) -> Cell:
    """Return the cell of coverages ``(R,)`` against Beta(k, n + 1 - k); k and n may differ from set to set."""
    found, a = np.asarray(coverage, dtype=np.float64), np.asarray(k, dtype=np.float64)
    b = np.asarray(n) + 1 - a
    below, above = betainc(a, b, found), betaincc(a, b, found)
    scores = np.where(below < 0.5, ndtri(below), -ndtri(above))
    ordered, count = np.sort(below), len(found)
    steps = np.arange(1, count + 1) / count
    figures = {
        "sets": count,
        "score": float(np.clip(scores, -1e3, CLIP).sum()),
        "too_low": float(max(0.0, (steps - ordered).max())),
        "too_high": float(max(0.0, (ordered - steps + 1 / count).max())),
        "mean": float(found.mean()),
        "expected": float((a / (a + b)).mean()),
        "exact": is_exact,
    }
    if a.ndim == 0:
        figures |= {"k": int(a), "n": int(np.asarray(n))}
    return Cell(name, "beta", figures, holds)


def share_cell(name: str, failed: ArrayLike, allowed: float, chance: float | None = None, holds: bool = True) -> Cell:
    """Return the cell of sets that failed ``(R,)``; ``chance`` is how often exactly, if that is known."""
    bad = np.asarray(failed, dtype=bool)
    figures = {"sets": len(bad), "failed": int(bad.sum()), "allowed": allowed, "chance": chance}
    return Cell(name, "share", figures, holds)


def fails(coverage: ArrayLike, least: ArrayLike) -> NDArray[np.bool_]:
    """Return where coverage is below what is promised."""
    below: NDArray[np.bool_] = np.asarray(coverage) < np.asarray(least) - ROUNDING
    return below


def mean_cell(name: str, values: ArrayLike, least: float, rng: np.random.Generator, holds: bool = True) -> Cell:
    """Return the cell of independent values between 0 and 1, ``(R,)``, whose mean is at least ``least``."""
    found = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
    if least >= 1:
        return never_cell(name, fails(found, 1.0), holds)
    hits = int((rng.random(len(found)) < found).sum())
    figures = {
        "sets": len(found),
        "mean": float(found.mean()),
        "expected": least,
        "hits": hits,
        "wealth": log_wealth(found, least),
    }
    return Cell(name, "mean", figures, holds)


def log_wealth(values: Array, least: float) -> float:
    """Return the largest log wealth of a gambler who bets that values have a mean below ``least``.

    Each bet depends on earlier values only. If the mean is at least ``least``, the wealth is a supermartingale: it ever
    exceeds 1 / p with chance p at most (Ville 1939; Waudby-Smith & Ramdas 2024).
    """
    before = np.arange(1, len(values) + 1)
    mean = (least + np.concatenate([[0.0], values.cumsum()[:-1]])) / before
    spread = (0.05 + np.concatenate([[0.0], ((values - least) ** 2).cumsum()[:-1]])) / before
    bets = np.clip((least - mean) / np.maximum(spread, 1e-12), 0.0, CHUNK / (1 - least))
    return float(max(0.0, np.log1p(bets * (least - values)).cumsum().max()))


def never_cell(name: str, broken: ArrayLike, holds: bool = True) -> Cell:
    """Return the cell of what must not happen in any of the sets, ``(R,)``."""
    bad = np.asarray(broken, dtype=bool)
    return Cell(name, "never", {"sets": len(bad), "failed": int(bad.sum())}, holds)


def rank_cells(name: str, coverage: Array, k: int, n: int, is_exact: bool, holds: bool = True) -> list[Cell]:
    """Return the cell of coverages at rank k of n; where k > n, intervals must be infinite."""
    if k > n:
        return [never_cell(f"{name}, infinite", fails(coverage, 1.0), holds)]
    return [beta_cell(name, coverage, k, n, is_exact, holds)]


def given_data_cells(
    name: str, coverage: Array, level: float, n: int, delta: float, is_exact: bool, holds: bool = True
) -> list[Cell]:
    """Return the cells of a promise given the data: the law of coverage, and how often it is below the level."""
    k = rank_given_data(level, n, delta)
    cells = rank_cells(name, coverage, k, n, is_exact, holds)
    if k <= n:
        chance = float(binom.sf(k - 1, n, float(level))) if is_exact else None
        cells.append(share_cell(f"{name}, failures", fails(coverage, level), delta, chance, holds))
    return cells


def stated_cell(name: str, stated: Sequence[int], expected: Sequence[int]) -> Cell:
    """Return the cell of ranks on certificates."""
    return never_cell(name, [tuple(stated) != tuple(expected)])
