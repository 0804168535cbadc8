"""How much wider or narrower intervals have become on the same rows, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from guardband.words import level_name

if TYPE_CHECKING:
    from guardband.bands.intervals import Intervals

MANY_TIMES = 2
"""From this factor on, "times" says more than percent."""


def width_change(before: Intervals, now: Intervals) -> str:
    """Return one sentence on the mean width at each level; nothing if there is no finite width to compare."""
    levels = before.levels
    changes = [_change(*means) for means in zip(_means(before), _means(now), strict=True)]
    if len(set(changes)) == 1:
        return f"Intervals are now {changes[0]}." if changes[0] else ""
    said = [f"{change} at {level_name(level)}" for level, change in zip(levels, changes, strict=True) if change]
    return f"Intervals are now {', '.join(said)}."


def _means(bands: Intervals) -> list[float]:
    means: list[float] = bands.reach.reshape(len(bands), -1).mean(axis=0).tolist()
    return means


def _change(before: float, now: float) -> str:
    """Return a change in words.

    >>> _change(1, 2.34), _change(1, 1.152), _change(1, 0.88), _change(1, 1.001), _change(1, math.inf)
    ('2.3 times as wide', '15% wider', '12% narrower', 'as wide as before', 'infinite in at least one row')
    """
    if not 0 < before < math.inf:
        return ""
    ratio = now / before
    if math.isinf(ratio):
        return "infinite in at least one row"
    if ratio >= MANY_TIMES:
        return f"{ratio:,.1f} times as wide"
    share = round(100 * abs(ratio - 1))
    return f"{share}% {'wider' if ratio > 1 else 'narrower'}" if share else "as wide as before"
