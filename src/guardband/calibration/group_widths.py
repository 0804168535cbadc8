"""How wide intervals are in each group, and how wide they would be with one promise for all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.parted_promise import PartedPromise
from guardband.bands.predicted import Context, Predicted
from guardband.bands.promise import Side
from guardband.bands.sides import reach
from guardband.calibration.group_patterns import FIRST, Codes, different_codes
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.summary import Array, Summary

MANY_ROWS, FEW_ROWS = 50_000, 5_000
Units = Callable[[Any, Any, Any], Ends]


def same_units(lower: Any, point: Any, upper: Any) -> Ends:
    """Return ends as they are."""
    return lower, point, upper


def with_widths(
    found: Calibration, rule: Rule, summary: Summary, rows: Iterable[tuple[Predicted, Context]], to_units: Units
) -> Calibration:
    """Return a calibration whose promise says the mean width of each group's calibration rows, in the user's units.

    Of twice ``MANY_ROWS`` or more, every second, third, ... row counts, and all rows of groups that have few.
    """
    promise, plain = found.promise, rule.without_groups()
    assert isinstance(promise, PartedPromise)
    arrays = plain.calibrate(summary).arrays
    sums = np.zeros((2, 1 + max(part.group or 0 for part in promise.parts), len(rule.levels)))
    counts = np.zeros(sums.shape[1])
    for predicted, context, judged in _some(rows, promise, summary.n, len(counts)):
        own = _widths(rule.ends(predicted, context, found.arrays), to_units, promise.side)
        other = _widths(plain.ends(predicted, Context(), arrays), to_units, promise.side)
        codes = context.group[:, None] if context.group.ndim == 1 else context.group
        patterns = different_codes(codes, len(counts))
        counts += np.where(judged, _sums(np.ones(len(codes)), *patterns, len(counts)), 0)
        for total, widths in zip(sums, (own, other), strict=True):
            for i, width in enumerate(widths.T):
                total[:, i] += np.where(judged, _sums(width, *patterns, len(counts)), 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / counts[:, None]
    parts = [
        part
        if part.group is None or not counts[part.group]
        else replace(part, width=_finite(means[0, part.group]), plain_width=_finite(means[1, part.group]))
        for part in promise.parts
    ]
    return replace(found, promise=replace(promise, parts=tuple(parts)))


def _sums(numbers: Array, of_row: Codes, patterns: Codes, groups: int) -> Array:
    """Return the sum of numbers in each group, by the sum of each pattern, ``(n,), (n,), (P, J) -> (G,)``."""
    each, out = np.bincount(of_row, numbers), np.zeros(FIRST + groups)
    for column in patterns.T:
        out += np.bincount(column + FIRST, each, len(out))
    return out[FIRST:]


def _some(
    rows: Iterable[tuple[Predicted, Context]], promise: PartedPromise, n: int, groups: int
) -> Iterator[tuple[Predicted, Context, NDArray[np.bool_]]]:
    """Give enough of the rows to know mean widths well, and which groups ``(G,)`` these rows are for."""
    step = n // MANY_ROWS
    if step < 2:
        for predicted, context in rows:
            yield predicted, context, np.ones(groups, dtype=bool)
        return
    few, every = np.zeros(groups, dtype=bool), list(rows)
    for part in promise.parts:
        few[part.group or 0] = part.promise.n_calibration < FEW_ROWS
    yield *_joined([(own, context, slice(None, None, step)) for own, context in every]), ~few
    if few.any():
        member = np.r_[few, False, False]  # the last two are those of -2 and -1
        chosen = [np.flatnonzero(member[context.group.reshape(len(own), -1)].any(axis=1)) for own, context in every]
        yield *_joined([(*pair, at) for pair, at in zip(every, chosen, strict=True)]), few


def _joined(blocks: list[tuple[Predicted, Context, NDArray[np.intp] | slice]]) -> tuple[Predicted, Context]:
    """Return chosen rows of all blocks."""
    kept = [predicted.rows(rows) for predicted, _, rows in blocks]
    parts = zip(*(own.parts for own in kept), strict=True)
    together = type(kept[0])(*(np.concatenate(own, axis=-1) for own in parts))
    return together, Context(group=np.concatenate([context.group[rows] for _, context, rows in blocks]))


def _widths(ends: Ends, to_units: Units, side: Side) -> Array:
    widths: Array = reach(*to_units(*ends), side)
    return widths


def _finite(widths: Array) -> tuple[float, ...] | None:
    """Return the widths, none if one is infinite: JSON has no such number."""
    return tuple(widths.tolist()) if np.isfinite(widths).all() else None
