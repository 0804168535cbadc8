"""Drift: do new rows look like those of D1, and do their scores look like those of D2?"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc
from scipy.stats import kstwo

from guardband.data.reference import CategorySummary, NumberSummary, Reference
from guardband.data.table import Table, categories_from, numbers_from
from guardband.words import plain

Array = NDArray[np.float64]

LEAST_EXPECTED = 5


@dataclass(frozen=True)
class Shift:
    """How far one column has moved: the largest gap between two distributions, 0 to 1, and its p-value.

    For numbers the gap is that of Kolmogorov and Smirnov, for categories the total variation distance; a change in
    how many values are missing counts too. ``detail`` says what it is in words.
    """

    name: str
    kind: str
    gap: float
    p_value: float
    detail: str
    drifted: bool = False


@dataclass(frozen=True)
class Drift:
    """Shifts of the inputs, largest first, of the response and of the scores; None where there is nothing to compare.

    ``drifted`` of a column allows for the number of columns looked at.
    """

    columns: tuple[Shift, ...] | None
    response: Shift | None
    scores: Shift | None

    @property
    def drifted(self) -> tuple[str, ...]:
        """The columns that chance does not explain."""
        return tuple(shift.name for shift in self.columns or () if shift.drifted)

    def to_dict(self) -> dict[str, Any]:
        """Return the drift for JSON."""
        own: dict[str, Any] = plain(asdict(self) | {"drifted": list(self.drifted)})
        return own


def drift_of(
    reference: Reference | None,
    table: Table,
    y: Array,
    scores: Array | None,
    calibration_scores: Array | None,
    significance: float,
) -> Drift:
    """Return how far rows have moved from those that the model was fitted and calibrated on."""
    columns = response = moved = None
    if reference is not None:
        shifts = []
        for summary, column in zip(reference.columns, table.columns, strict=True):
            if isinstance(summary, CategorySummary):
                shifts.append(category_shift(summary, categories_from(column)))
            else:
                shifts.append(number_shift(summary, numbers_from(column, summary.kind)))
        limit = significance / len(shifts)
        columns = tuple(sorted((_flagged(shift, limit) for shift in shifts), key=lambda s: (-s.drifted, -s.gap)))
        response = _flagged(number_shift(reference.response, y), significance)
    if scores is not None and calibration_scores is not None:
        moved = _flagged(score_shift(calibration_scores, scores), significance)
    return Drift(columns, response, moved)


def number_shift(before: NumberSummary, values: Array) -> Shift:
    """Return the shift of numbers, by the gap at the knots of the summary and by the share that is missing.

    The gap at some knots is at most that at all values, so that its p-value errs on the side of no drift.
    """
    present = np.sort(values[~np.isnan(values)])
    known = before.count - before.missing
    gap, p, detail = 0.0, 1.0, "nothing to compare"
    if known and len(present):
        now = np.searchsorted(present, before.knots, side="right") / len(present)
        difference = now - np.array(before.at_most) / known
        largest = float(difference[np.abs(difference).argmax()])
        gap, p = abs(largest), ks_p_value(abs(largest), known, len(present))
        detail = "values are lower" if largest > 0 else "values are higher" if largest < 0 else "no change"
    missing_gap, missing_p = _missing_shift(before, int(np.isnan(values).sum()), len(values))
    if missing_p < p:
        gap, detail = missing_gap, _missing_words(before, values)
    return Shift(before.name, "number", gap, min(1.0, 2 * min(p, missing_p)), detail)


def category_shift(before: CategorySummary, values: list[str | None]) -> Shift:
    """Return the shift of categories, by the chi-square test of two samples; missing is one more category.

    Categories that D1 did not hold, or hardly, count as rare; cells with an expected count below five are joined.
    """
    counts = Counter(values)
    own = [counts.pop(category, 0) for category in before.categories]
    missing = counts.pop(None, 0)
    first = np.array([*before.counts, before.rare, before.missing], dtype=float)
    second = np.array([*own, sum(counts.values()), missing], dtype=float)
    shares = second / second.sum() - first / first.sum()
    gap = float(np.abs(shares).sum() / 2)
    names = [*before.categories, "other categories", "missing"]
    at = int(np.abs(shares).argmax())
    detail = f"{names[at]}: {'more' if shares[at] > 0 else 'fewer'}" if gap else "no change"
    return Shift(before.name, "category", gap, chi_square_p_value(first, second), detail)


def score_shift(before: Array, now: Array) -> Shift:
    """Return the shift of scores; both sides are exchangeable if the promise's assumption holds."""
    at = np.unique(np.concatenate([before, now]))
    first = np.searchsorted(np.sort(before), at, side="right") / len(before)
    second = np.searchsorted(np.sort(now), at, side="right") / len(now)
    difference = second - first
    largest = float(difference[np.abs(difference).argmax()])
    detail = "errors are smaller" if largest > 0 else "errors are larger" if largest < 0 else "no change"
    return Shift("scores", "number", abs(largest), ks_p_value(abs(largest), len(before), len(now)), detail)


def ks_p_value(gap: float, n: int, m: int) -> float:
    """Return the p-value of the two-sample test of Kolmogorov and Smirnov; ties make it larger, never smaller."""
    return float(np.clip(kstwo.sf(gap, max(1, round(n * m / (n + m)))), 0, 1))


def chi_square_p_value(first: Array, second: Array) -> float:
    """Return the p-value of the chi-square test that two rows of counts have one distribution."""
    both = first + second
    smaller = min(first.sum(), second.sum()) / both.sum()
    small = both * smaller < LEAST_EXPECTED
    table = np.stack([first, second])
    joined = np.concatenate([table[:, ~small], table[:, small].sum(axis=1, keepdims=True)], axis=1)
    joined = joined[:, joined.sum(axis=0) > 0]
    if joined.shape[1] < 2:
        return 1.0
    expected = joined.sum(axis=1, keepdims=True) * joined.sum(axis=0) / joined.sum()
    statistic = float(((joined - expected) ** 2 / expected).sum())
    return float(chdtrc(joined.shape[1] - 1, statistic))


def _missing_shift(before: NumberSummary, missing: int, n: int) -> tuple[float, float]:
    first = np.array([before.missing, before.count - before.missing], dtype=float)
    second = np.array([missing, n - missing], dtype=float)
    return abs(missing / n - before.missing / before.count), chi_square_p_value(first, second)


def _missing_words(before: NumberSummary, values: Array) -> str:
    return "more are missing" if np.isnan(values).mean() > before.missing / before.count else "fewer are missing"


def _flagged(shift: Shift, significance: float) -> Shift:
    return Shift(**asdict(shift) | {"drifted": not math.isnan(shift.p_value) and shift.p_value < significance})
