"""Three rows that stand for the others, and the columns that tell most about a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.audit.strata import Family

Array = NDArray[np.float64]
ExampleKind = Literal["narrow", "typical", "wide", "low", "middle", "high"]

TELLING, FEWEST = 4, 2
LITTLE = 0.02
QUANTILES = (0.05, 0.5, 0.95)


def telling_columns(point: Array, columns: Sequence[Family], distinct: Sequence[bool]) -> tuple[list[int], int]:
    """Return the columns, those first whose groups explain most of the differences between predictions.

    Also return how many of them are worth telling: at most four, at least two. What is explained is the adjusted share
    of variance, since many groups of few rows would otherwise explain everything. Columns that explain nothing stay in
    their order, those with another value in every row, which only name the rows, last.
    """
    shares = [_explained(point, family.stratum_of) for family in columns]
    shares = [share if share > LITTLE else 0.0 for share in shares]
    order = sorted(range(len(columns)), key=lambda j: (-shares[j], distinct[j]))
    return order, min(len(order), TELLING, max(FEWEST, sum(share > 0 for share in shares)))


def _explained(values: Array, place: NDArray[Any]) -> float:
    total, n = float(values.var()) * len(values), len(values)
    counts = np.bincount(place)
    groups = int((counts > 0).sum())
    if not np.isfinite(total) or total <= 0 or groups in (1, n):
        return 0.0
    means = np.bincount(place, values) / np.maximum(counts, 1)
    within = float(((values - means[place]) ** 2).sum())
    return 1 - (within / (n - groups)) / (total / (n - 1))


def example_rows(width: Array, point: Array) -> list[tuple[ExampleKind, int]]:
    """Return a narrow, a typical and a wide row; if widths do not differ, rows of low, middle and high prediction."""
    (finite,) = np.nonzero(np.isfinite(width))
    if not len(finite):
        return []
    own = width[finite]
    alike = np.ptp(own) <= 1e-9 * float(own.max())
    kinds: tuple[ExampleKind, ...] = ("low", "middle", "high") if alike else ("narrow", "typical", "wide")
    order = finite[np.argsort((point if alike else width)[finite], kind="stable")]
    if len(order) < len(kinds):
        return [(kinds[1], int(order[len(order) // 2]))]
    chosen = [int(order[round(q * (len(order) - 1))]) for q in QUANTILES]
    return list(zip(kinds, chosen, strict=True))
