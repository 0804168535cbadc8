"""Whether the calibration of a network with groups, as a file holds it, is such as its rule makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

from guardband.bands.kept_promise import given_rows
from guardband.bands.promise import Promise
from guardband.calibration.conformal import Conformal
from guardband.calibration.group_patterns import FIRST
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rule import Calibration

Arrays = Mapping[str, NDArray[Any]]


def check_grouped(rule: Conformal, arrays: Arrays, promise: Promise, like: Calibration) -> str | None:
    """Return what is wrong with the arrays or the promise of a network with groups, if anything is.

    ``like`` is what the rule makes of one row.
    """
    cut = rule.cut
    assert isinstance(cut, GroupedCut)
    if arrays.keys() != like.arrays.keys() or any(arrays[name].dtype != own.dtype for name, own in like.arrays.items()):
        return "it is calibrated in another way than its arguments say"
    if any(np.isnan(array).any() for array in arrays.values() if array.dtype.kind == "f"):
        return "its calibration is NaN"
    fits = _patterns_fit(cut, arrays, len(rule.levels)) if cut.solves_patterns else _table_fits(arrays, like.arrays)
    if not fits:
        return "the thresholds of its groups have the wrong shape or order"
    parts, wanted = promise.statements(), like.promise.statements()
    if len(parts) != len(wanted):
        return "its certificate is for other groups"
    for part, other in zip(parts, wanted, strict=True):
        own, n = part.promise, part.promise.n_calibration
        convert(vars(own), type(own))
        found: dict[str, Any] = {"n_calibration": n, "rank": own.rank, "whole_line": own.whole_line}
        found |= given_rows(own)
        if part != replace(other, promise=replace(other.promise, **found)):
            return "its certificate does not follow from its arguments"
        if own.rank != tuple(cut.of_each.rank(level, n) for level in rule.levels.values):
            return "the ranks of its certificate do not follow from its rows"
    found = {"n_calibration": promise.n_calibration, "whole_line": promise.whole_line, "parts": parts}
    if promise != replace(like.promise, **found):
        return "its certificate does not follow from its arguments"
    return None


def _table_fits(arrays: Arrays, like: Arrays) -> bool:
    (table,), (wanted,) = arrays.values(), like.values()
    return table.shape == wanted.shape and bool((table[:FIRST] == wanted[:FIRST]).all())


def _patterns_fit(cut: GroupedCut, arrays: Arrays, levels: int) -> bool:
    digit, place, pattern, table = (arrays[name] for name in ("digit", "place", "pattern", "threshold"))
    if digit.shape != (cut.columns, FIRST + len(cut.names)) or place.shape != (cut.columns,):
        return False
    if pattern.ndim != 1 or table.shape != (len(pattern), levels) or not len(pattern):
        return False
    within = ((digit >= -1) & (digit < digit.shape[1])).all() and (place > 0).all()
    return bool(within and (pattern >= 0).all() and (np.diff(pattern) > 0).all())
