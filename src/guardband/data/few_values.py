"""Targets with few different values, with many equal ones, or with a code for "missing"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.order_statistics import middle_ranks
from guardband.data.questions import AskAtMost, AskDistinct, AskRanks, AskSpread
from guardband.data.table import Column
from guardband.exceptions import TargetWarning, warn

FEW_VALUES, ROWS_A_VALUE = 10, 5
"""Few values are at most so many, each with at least so many rows on average."""
MANY_EQUAL = 0.5
SHORTEST_CODE, FEWEST_ROWS, FAR = 999, 2, 0.2
"""A code for "missing" has at least this size and so many rows; its gap exceeds this share of the others' range.

The gap does not count for a negative code if no other target is negative.
"""


def remarks_on_values(y: NDArray[np.float64]) -> tuple[str, ...]:
    """Return what is to be said of a target with few values or many equal ones.

    Two values are also warned of, and so is a code for "missing".
    """
    return answered(asks_remarks(), Column("", y))


def asks_remarks() -> Asking[tuple[str, ...]]:
    """Learn the same of targets."""
    spread = yield AskSpread()
    (values, counts), is_all = yield AskDistinct(FEW_VALUES)
    _warn_of_codes(values, counts)
    few, n = len(values), spread.values
    if is_all and few > 1 and n >= ROWS_A_VALUE * few:
        words = f"The target has only {few} different values. Intervals will often contain "
        if few > 2:
            return (f"{words}several of them.",)
        words += "both."
        warn(f"{words} A classifier may answer your question better.", TargetWarning)
        return (words,)
    if is_all:
        return ()
    # A value that half of all targets have is one of the two in the middle.
    middle = sorted(set((yield AskRanks(middle_ranks(n), spread)).tolist()))
    below = [float(np.nextafter(value, -np.inf)) for value in middle]
    up_to = dict(zip(sorted({*middle, *below}), (yield AskAtMost(tuple(sorted({*middle, *below})))), strict=True))
    equal = [up_to[value] - up_to[before] for value, before in zip(middle, below, strict=True)]
    most = int(np.argmax(equal))
    if equal[most] >= MANY_EQUAL * n:
        return (
            f"{equal[most] / n:.0%} of the training targets are equal to {middle[most]:g}. Coverage can exceed the "
            "confidence level, because equal targets are often covered together.",
        )
    return ()


def _warn_of_codes(values: NDArray[np.float64], counts: NDArray[np.intp]) -> None:
    """Warn if the least or the largest value is written with nines alone, repeated, and far from all others."""
    if len(values) < 3:
        return
    for end, nearest, furthest in ((0, 1, -1), (-1, -2, 0)):
        value, written = values[end], f"{values[end]:.17g}"
        is_code = abs(value) >= SHORTEST_CODE and set(written.lstrip("-")) == {"9"} and counts[end] >= FEWEST_ROWS
        alone = value < 0 <= values[nearest]
        # The product is taken first: a difference of numbers near the largest float would overflow.
        far = abs(value - values[nearest]) > abs(FAR * values[nearest] - FAR * values[furthest])
        if is_code and (alone or far):
            how = "and no other is negative" if alone else "far from all others"
            warn(
                f"{counts[end]:,} training targets are exactly {written}, {how}. "
                "If that means 'missing', empty these cells or remove these rows.",
                TargetWarning,
            )
