"""Strata: rows put into few groups, and how many of each group are covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.bands.law import Law
from guardband.data.table import Column, categories_from, numbers_from
from guardband.words import as_written, number, plain

Array = NDArray[np.float64]
Indices = NDArray[np.int8]
Flag = Literal["low", "high"]

FEW = 8
MISSING = "missing"
LONGEST = 48
ROUNDING = 1e-9


@dataclass(frozen=True)
class Stratum:
    """One group: its rows, how many are covered, and the range of that count if coverage is as expected.

    The range, ``low`` to ``high``, allows for the number of groups that are compared.
    """

    label: str
    n: int
    covered: int
    low: int
    high: int

    @property
    def flag(self) -> Flag | None:
        """Whether the count lies outside its range, and on which side."""
        return "low" if self.covered < self.low else "high" if self.covered > self.high else None

    @property
    def share(self) -> float:
        """The share of rows that are covered."""
        return self.covered / self.n if self.n else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the stratum for JSON."""
        own: dict[str, Any] = plain(asdict(self) | {"flag": self.flag, "share": self.share})
        return own


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows put into groups: the labels, and which of them each row has, ``(n,)``."""

    labels: tuple[str, ...]
    stratum_of: Indices


@dataclass(frozen=True, eq=False)
class Family:
    """The strata of one way to group rows; their ranges allow for so many groups ``compared``."""

    key: str
    title: str
    strata: tuple[Stratum, ...]
    compared: int
    stratum_of: Indices

    @property
    def flagged(self) -> tuple[Stratum, ...]:
        """The groups that chance does not explain."""
        return tuple(stratum for stratum in self.strata if stratum.flag is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the family for JSON, without the stratum_of of the rows."""
        strata = [stratum.to_dict() for stratum in self.strata]
        return {"key": self.key, "title": self.title, "compared": self.compared, "strata": strata}


def judge(bins: Bins, covered: NDArray[np.bool_], law: Law, significance: float, among: int) -> tuple[Stratum, ...]:
    """Return the strata, each tested at ``significance / among``, both ways together."""
    k = len(bins.labels)
    sizes = np.bincount(bins.stratum_of, minlength=k)
    counts = np.bincount(bins.stratum_of[covered], minlength=k)
    return tuple(
        stratum(label, int(n), int(c), law, significance / among)
        for label, n, c in zip(bins.labels, sizes, counts, strict=True)
    )


def stratum(label: str, n: int, covered: int, law: Law, significance: float) -> Stratum:
    """Return one stratum, tested both ways at half the significance each."""
    return Stratum(label, n, covered, *law.band(n, significance / 2))


def bins_of_column(column: Column, as_moment: Callable[[float], str] | None = None) -> Bins:
    """Return the ranges of a column of numbers, or the most frequent of its categories."""
    if column.kind == "category":
        return bins_of_labels(categories_from(column))
    return bins_of_numbers(numbers_from(column), 5, as_moment or as_written)


def bins_of_labels(cells: Sequence[str | None], most: int = FEW) -> Bins:
    """Return the most frequent labels, the others together, and the missing ones."""
    counts = Counter(cell for cell in cells if cell is not None)
    frequent = sorted(counts, key=lambda cell: (-counts[cell], cell))
    kept, others = _in_order(frequent[:most]), len(frequent) - most
    labels = [_short(cell) for cell in kept] + ([f"{others:,} others"] if others > 0 else [])
    index: dict[str | None, int] = {cell: i for i, cell in enumerate(kept)}
    if None in cells:
        index[None] = len(labels)
        labels.append(MISSING)
    stratum_of = np.array([index.get(cell, len(kept)) for cell in cells], dtype=np.int8)
    return Bins(tuple(labels), stratum_of)


def without_noise(values: Array, ends: Array | None = None) -> Array:
    """Return numbers of which those that differ only by rounding are made equal; ``ends`` are what they come from.

    The difference of two large numbers has the rounding of these, not that of its own size.
    """
    finite = np.abs(values if ends is None else ends)
    finite = finite[np.isfinite(finite)]
    least = 8 * np.finfo(float).eps * float(np.median(finite)) if len(finite) else 0.0
    distinct, place = np.unique(values, return_inverse=True)
    with np.errstate(invalid="ignore"):  # infinity is itself, and far from all others
        new = np.diff(distinct) > np.maximum(ROUNDING * np.abs(distinct[1:]), least)
    first = np.flatnonzero(np.append(True, new | np.isinf(distinct[1:])))
    return np.asarray(distinct[first[np.searchsorted(first, place, side="right") - 1]], dtype=float)


def bins_of_numbers(values: Array, most: int, words: Callable[[float], str] = number) -> Bins:
    """Return ranges of about equal count, or the values themselves where they are few; missing values apart."""
    missing = np.isnan(values)
    present = values[~missing]
    distinct = np.unique(present)
    if len(distinct) <= FEW:
        starts = distinct
    else:
        cuts = np.sort(present)[(np.arange(1, most) * len(present)) // most]
        starts = np.unique(np.append(distinct[0], cuts))
    stratum_of = np.zeros(len(values), dtype=np.int8)
    stratum_of[~missing] = np.searchsorted(starts, present, side="right") - 1
    labels = [_range(present[stratum_of[~missing] == i], words) for i in range(len(starts))]
    if missing.any():
        stratum_of[missing] = len(labels)
        labels.append(MISSING)
    return Bins(tuple(labels), stratum_of)


def _in_order(labels: list[str]) -> list[str]:
    """Return labels by size if all are numbers, otherwise as they are, the most frequent first."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return labels


def _range(values: Array, words: Callable[[float], str]) -> str:
    low, high = words(float(values.min())), words(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _short(text: str) -> str:
    shown = text if text.strip() else "(blank)"
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
