"""Reference: a summary of the columns of the training rows, with which later rows are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.kinds import Kind
from guardband.data.questions import AskAtMost, AskCategories, AskDistinct, AskRanks, AskSpread
from guardband.data.table import Column, Table

Array = NDArray[np.float64]

KNOTS = 100
OFF_BY = 0.001
"""The share of rows by which a knot may lie off its quantile if rows are not in memory."""
MOST_KEPT = 200
CELLS = 4096
"""Into how many cells categories fall by a hash of their name."""


@dataclass(frozen=True)
class NumberSummary:
    """Numbers by how many of them lie at or below some knots; ``count`` and ``missing`` are rows.

    Knots are about a hundred quantiles, rounded to six digits: any values do, as long as both sides are counted at
    the same ones. A column of few values keeps them all.
    """

    name: str
    count: int
    missing: int
    knots: tuple[float, ...]
    at_most: tuple[int, ...]
    kind: Kind = "number"

    @classmethod
    def asks(cls, name: str, kind: Kind = "number") -> Asking[NumberSummary]:
        """Learn the summary of a column."""
        spread = yield AskSpread()
        n = spread.values
        (few, _), is_all = yield AskDistinct(KNOTS)
        knots: Array = few
        if not is_all:
            evenly = np.linspace(0, n - 1, KNOTS + 1).round().astype(np.intp)
            found = yield AskRanks(tuple(evenly.tolist()), spread, off_by=OFF_BY)
            knots = np.unique([float(f"{value:.6g}") for value in found])
        at_most = yield AskAtMost(tuple(knots.tolist()))
        return cls(name, spread.rows, spread.rows - n, tuple(knots.tolist()), at_most, kind)

    @classmethod
    def learn(cls, name: str, values: Array, kind: Kind = "number") -> NumberSummary:
        """Return the summary of values in memory, NaN for missing."""
        return answered(cls.asks(name, kind), Column(name, values, kind))


def cell_of(category: str) -> int:
    """Return the cell of a category, which depends on its name alone and is the same on every machine."""
    digest = blake2b(category.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % CELLS


@dataclass(frozen=True)
class CategorySummary:
    """Categories by how often they occur; those beyond the most frequent are counted together as ``rare``.

    Which ones are rare was seen on the training rows, so that new rows are not to be tested against that choice. The
    rare ones are therefore kept by cell, too: ``rare_counts`` of ``rare_cells``.
    """

    name: str
    count: int
    missing: int
    categories: tuple[str, ...]
    counts: tuple[int, ...]
    rare: int
    rare_cells: tuple[int, ...]
    rare_counts: tuple[int, ...]
    kind: Kind = "category"

    @classmethod
    def asks(cls, name: str) -> Asking[CategorySummary]:
        """Learn the summary of a column."""
        counts = yield AskCategories()
        missing, present = counts[None], {value: count for value, count in counts.items() if value is not None}
        kept = sorted(present, key=lambda value: (-present[value], value))[:MOST_KEPT]
        rows = missing + sum(present.values())
        own = tuple(present.pop(value) for value in kept)
        cells: Counter[int] = Counter()
        for value, count in present.items():
            cells[cell_of(value)] += count
        rare = sorted(cells)
        return cls(name, rows, missing, tuple(kept), own, cells.total(), tuple(rare), tuple(cells[i] for i in rare))

    @classmethod
    def learn(cls, name: str, values: list[str | None]) -> CategorySummary:
        """Return the summary of cells in memory, None for missing."""
        cells = np.empty(len(values), dtype=object)
        cells[:] = values
        return answered(cls.asks(name), Column(name, cells, decided="category"))


@dataclass(frozen=True)
class Reference:
    """The columns and the target of the training rows, in summary; ``others`` are further targets."""

    columns: tuple[NumberSummary | CategorySummary, ...]
    response: NumberSummary
    others: tuple[NumberSummary, ...] = ()

    @classmethod
    def learn(cls, table: Table, y: Array) -> Reference:
        """Return the summary of the training rows; of several targets ``(n, q)``, each of the known values."""
        targets = [own[~np.isnan(own)] for own in y.reshape(len(y), -1).T]
        first, *others = (NumberSummary.learn("response", own) for own in targets)
        columns = (answered(asks_summary(column.name, column.kind), column) for column in table.columns)
        return cls(tuple(columns), first, tuple(others))

    def of_target(self, j: int) -> Reference:
        """Return the summary with one of several targets."""
        return Reference(self.columns, (self.response, *self.others)[j])

    def to_dict(self) -> dict[str, Any]:
        """Return the reference for JSON."""
        own = asdict(self)
        return own if self.others else {name: value for name, value in own.items() if name != "others"}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Reference:
        """Return the reference that ``to_dict`` described."""
        first, *others = (NumberSummary(**_tuples(own)) for own in (entries["response"], *entries.get("others", ())))
        return cls(tuple(_from_dict(own) for own in entries["columns"]), first, tuple(others))


def asks_summary(name: str, kind: Kind) -> Asking[NumberSummary | CategorySummary]:
    """Learn the summary of a column of a kind."""
    return (yield from CategorySummary.asks(name) if kind == "category" else NumberSummary.asks(name, kind))


def _from_dict(entries: Mapping[str, Any]) -> NumberSummary | CategorySummary:
    return (CategorySummary if entries["kind"] == "category" else NumberSummary)(**_tuples(entries))


def _tuples(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entries.items()}
