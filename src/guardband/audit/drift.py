"""Drift: do new rows look like the training rows, and do their scores look like those of the calibration rows?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kolmogorov

from guardband.data.reference import CELLS, CategorySummary, NumberSummary, Reference, cell_of
from guardband.data.table import Table, categories_from, numbers_from
from guardband.words import plain

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

FULLEST = 256
"""How many cells of a category column are compared one by one; the others are joined into as many."""
DIVISIONS = 9999
ENOUGH = 20
AT_A_TIME = 1000
DATES = ("earlier dates", "later dates")
MOST_DIVIDED = 10**9
"""Beyond so many rows numpy draws no divisions."""


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
    keys: Collection[str] = (),
) -> Drift:
    """Return how far rows have moved from those that the model was fitted and calibrated on.

    ``keys`` name entities, of which new rows have new ones: they are not compared.
    """
    columns = response = moved = None
    if reference is not None:
        shifts = []
        for summary, column in zip(reference.columns, table.columns, strict=True):
            if column.name in keys:
                continue
            if isinstance(summary, CategorySummary):
                shifts.append(category_shift(summary, categories_from(column)))
            else:
                shifts.append(number_shift(summary, numbers_from(column, summary.kind)))
        limit = significance / max(1, len(shifts))
        columns = tuple(sorted((_flagged(shift, limit) for shift in shifts), key=lambda s: (-s.drifted, -s.gap)))
        response = _flagged(number_shift(reference.response, y), significance)
    if scores is not None and calibration_scores is not None:
        moved = _flagged(score_shift(calibration_scores, scores), significance)
    return Drift(columns, response, moved)


def number_shift(before: NumberSummary, values: Array) -> Shift:
    """Return the shift of numbers, by the gap at the knots of the summary and by the share that is missing.

    The gap at some knots is at most that at all values, so that its p-value errs on the side of no drift. Where values
    are missing there are two tests, and twice the smaller p-value counts.
    """
    present = np.sort(values[~np.isnan(values)])
    known = before.count - before.missing
    gap, p, detail = 0.0, 1.0, "nothing to compare"
    if known and len(present):
        now = np.searchsorted(present, before.knots, side="right") / len(present)
        difference = now - np.array(before.at_most) / known
        largest = float(difference[np.abs(difference).argmax()])
        gap, p = abs(largest), ks_p_value(abs(largest), known, len(present))
        lower, higher = DATES if before.kind == "date" else ("values are lower", "values are higher")
        detail = lower if largest > 0 else higher if largest < 0 else "no change"
    missing, n = len(values) - len(present), len(values)
    if before.missing + missing:
        missing_p = fisher_p_value(before.missing, before.count, missing, n)
        if missing_p < p:
            gap, detail = abs(missing / n - before.missing / before.count), _missing_words(before, values)
        p = min(1.0, 2 * min(p, missing_p))
    return Shift(before.name, "number", gap, p, detail)


def category_shift(before: CategorySummary, values: list[str | None]) -> Shift:
    """Return the shift of categories; missing is one more category.

    The gap is that of the categories that were kept of the training rows, with the others as one. Its p-value is that
    of cells, which neither side has chosen.
    """
    counts = Counter(values)
    own = [counts.pop(category, 0) for category in before.categories]
    missing = counts.pop(None, 0)
    first = np.array([*before.counts, before.rare, before.missing], dtype=float)
    second = np.array([*own, sum(counts.values()), missing], dtype=float)
    shares = second / second.sum() - first / first.sum()
    gap = float(np.abs(shares).sum() / 2)
    at = int(np.abs(shares).argmax())
    detail = _category_words(before, at, shares[at] > 0) if gap else "no change"
    return Shift(before.name, "category", gap, cells_p_value(*_cells(before, values)), detail)


def _category_words(before: CategorySummary, at: int, more: bool) -> str:
    if at == len(before.categories) and more:
        seen = "rarely or never had" if before.rare else "did not have"
        return f"many values that training {seen}"
    names = [*before.categories, "values that were rare in training", "missing"]
    return f"{names[at]}: {'more' if more else 'fewer'}"


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
    """Return the p-value of the two-sample test of Kolmogorov and Smirnov, which errs on the side of no drift.

    The limit law for large samples gives larger p-values, wherever they are below 0.1, than the exact one of samples of
    any size without ties; ties make the exact ones larger, and the gap smaller.
    """
    return float(kolmogorov(math.sqrt(n * m / (n + m)) * gap))


def fisher_p_value(first: int, n: int, second: int, m: int) -> float:
    """Return the p-value of Fisher's exact test that ``first`` of n and ``second`` of m rows have one chance.

    Given their sum, the second count is hypergeometric; twice the smaller tail counts.
    """
    both = first + second
    counts = np.arange(max(0, both - n), min(both, m) + 1, dtype=float)
    ways = _log_choose(m, counts) + _log_choose(n, both - counts) - _log_choose(n + m, np.array(float(both)))
    chances, at = np.exp(ways), second - int(counts[0])
    return float(min(1.0, 2 * min(chances[: at + 1].sum(), chances[at:].sum())))


def cells_p_value(first: Counts, second: Counts) -> float:
    """Return the p-value that two samples, counted in the same cells, have one distribution: exact for any size.

    Given what both rows hold together, all ways to divide the rows between the samples are equally likely. Two tests
    share the error: Fisher's of the cell that stands out most, times the number of cells, and the chi-square statistic
    among random divisions. The cells are chosen by what both samples hold together: the fullest ones, the others
    joined. That choice is the same for all divisions, and so is allowed.
    """
    table = np.stack([first, second])[:, first + second > 0]
    place = np.arange(table.shape[1])
    group = np.where(place < FULLEST, place, FULLEST + place % FULLEST)
    cells = np.zeros((2, int(group.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(cells.T, group, table[:, np.argsort(-table.sum(axis=0), kind="stable")].T)
    (n, m), both = (int(size) for size in cells.sum(axis=1)), cells.sum(axis=0)
    if len(both) < 2 or not n or not m:
        return 1.0
    expected = both * (m / (n + m))
    most = int((np.abs(cells[1] - expected) / np.sqrt(expected * (1 - both / (n + m)))).argmax())
    single = len(both) * fisher_p_value(int(cells[0, most]), n, int(cells[1, most]), m)
    enough = 2 * single * DIVISIONS < 1 or n + m >= MOST_DIVIDED
    return min(1.0, 2 * min(single, 1.0 if enough else _divided_p_value(cells[1], both)))


def _divided_p_value(second: Counts, both: Counts) -> float:
    """Return the p-value of the chi-square statistic among random divisions, with a fixed seed.

    Divisions are drawn until ``ENOUGH`` of them are as extreme as the one at hand, or all are drawn: an exact test
    either way (Besag & Clifford 1991).
    """
    random, m = np.random.default_rng(0), int(second.sum())
    limit = (second**2 / both).sum() * (1 - 1e-12)  # grows with chi-square, since what both hold is fixed
    drawn = extreme = 0
    while drawn < DIVISIONS:
        size = min(max(2 * ENOUGH, drawn), AT_A_TIME, DIVISIONS - drawn)
        draws = random.multivariate_hypergeometric(both, m, size, method="marginals")
        reached = np.flatnonzero((draws**2 / both).sum(axis=1) >= limit)
        if extreme + len(reached) >= ENOUGH:
            return float(ENOUGH / (drawn + int(reached[ENOUGH - extreme - 1]) + 1))
        drawn, extreme = drawn + size, extreme + len(reached)
    return (extreme + 1) / (drawn + 1)


def _cells(before: CategorySummary, values: list[str | None]) -> tuple[Counts, Counts]:
    """Return how many training rows and how many new ones fall into each cell, missing ones into the last."""
    first, second = np.zeros((2, CELLS + 1), dtype=np.int64)
    np.add.at(first, [cell_of(category) for category in before.categories], before.counts)
    np.add.at(first, list(before.rare_cells), before.rare_counts)
    first[-1] = before.missing
    for category, count in Counter(values).items():
        second[-1 if category is None else cell_of(category)] += count
    return first, second


def _log_choose(n: int, k: Array) -> Array:
    ways: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return ways


def _missing_words(before: NumberSummary, values: Array) -> str:
    return "more are missing" if np.isnan(values).mean() > before.missing / before.count else "fewer are missing"


def _flagged(shift: Shift, significance: float) -> Shift:
    return Shift(**asdict(shift) | {"drifted": not math.isnan(shift.p_value) and shift.p_value < significance})
