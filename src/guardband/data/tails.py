"""Long tails: numbers of which some are far beyond what is usual, on a scale that tells them all apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.order_statistics import between, middle_ranks, ranks_around
from guardband.data.questions import AskRanks, AskSpread, Spread, View
from guardband.data.table import Column

Array = NDArray[np.float64]

LONG, FAR = 10, 0.01
"""A tail is long if this share of the values is so many times farther from the median than is usual."""
FEWEST = 100
"""So many values other than the median are needed to speak of a tail."""


def asks_origin_and_unit(spread: Spread, middle: tuple[float, float]) -> Asking[tuple[float, float | None]]:
    """Learn the median of values and how far from it the others usually are, None if no tail is long.

    ``middle`` are the two values whose mean is the median.
    """
    origin = 2 * float(np.mean(np.array(middle) / 2))  # the sum of two numbers near the largest overflows
    view = View(origin=origin, away=True)
    away = yield AskSpread(view)
    if away.values < FEWEST or not np.isfinite(away.most):
        return origin, None
    shares = middle_ranks(away.values), ranks_around(1 - FAR, away.values)
    found = yield AskRanks((*shares[0], *shares[1]), away, view)
    unit, far = float(np.mean(found[:2])), between(float(found[2]), float(found[3]), 1 - FAR, away.values)
    with np.errstate(over="ignore"):
        is_long = far > LONG * unit and np.isfinite(np.float64(away.most) / unit)
    return origin, unit if is_long else None


def origin_and_unit(values: Array) -> tuple[float, float | None]:
    """Return the same of values in memory; their median is 0 if there are none."""

    def asks() -> Asking[tuple[float, float | None]]:
        spread = yield AskSpread()
        if not spread.values:
            return 0.0, None
        middle = yield AskRanks(middle_ranks(spread.values), spread)
        return (yield from asks_origin_and_unit(spread, tuple(middle.tolist())))

    return answered(asks(), Column("", values))


def signed_log(values: Any, xp: Any) -> Any:
    """Return the logarithms of one more than the size of values, with their signs."""
    return xp.sign(values) * xp.log1p(xp.abs(values))


def signed_exp(values: Any, xp: Any) -> Any:
    """Return the values that ``signed_log`` was given."""
    return xp.sign(values) * xp.expm1(xp.abs(values))
