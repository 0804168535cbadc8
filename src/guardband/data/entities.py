"""Entities: which rows belong together, such as those of one storm, one patient, or one row that a join repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.fingerprint import MOST_OVERLAP, mix
from guardband.data.row_numbers import known_as
from guardband.data.table import Column, Table, as_array, numbers_from, read_table
from guardband.exceptions import OverlapError
from guardband.words import listed, rows_named

if TYPE_CHECKING:
    from guardband.data.repeats import RepeatRule

Labels = NDArray[np.int64]
Rows = NDArray[np.intp]
SplitBy = str | Sequence[str] | Callable[[Any], Any]

SEEDS = 1 << 64
ENTITY = "entity"
"""What an entity is called if no column names it."""


@dataclass(frozen=True, eq=False)
class Entities:
    """A label for each row, ``(n,)``, equal for rows that belong together, and what they belong to in words.

    The label of a value is the same in every table.
    """

    labels: Labels
    name: str
    rule: RepeatRule | None = None
    """By which rule rows were found to be the same, if nobody named what they belong to."""

    @cached_property
    def _numbered(self) -> tuple[Labels, Rows]:
        every, number = np.unique(self.labels, return_inverse=True)
        return every, number

    @property
    def every(self) -> Labels:
        """Each label once."""
        return self._numbered[0]

    @property
    def number(self) -> Rows:
        """Which of them each row has, ``(n,)``."""
        return self._numbered[1]

    def take(self, rows: Rows) -> Entities:
        """Return the entities of some of the rows."""
        return Entities(self.labels[rows], self.name, self.rule)

    def rows_of(self, chosen: Rows) -> Rows:
        """Return the rows of some entities, by their numbers."""
        return np.flatnonzero(np.isin(self.number, chosen))

    def one_row_each(self, y: NDArray[np.float64]) -> Rows:
        """Return one row of each entity, drawn at random, in the order of the rows.

        The draw depends on the targets ``(n,)`` or ``(n, q)`` through a hash alone: the same for the same rows, and
        another for other rows. With one seed for all, rows in order within their entity would be drawn by their place.
        """
        own = draws(seed_of(self.labels, y), 0, len(self.labels))
        order = np.argsort(own, kind="stable")
        _, first = np.unique(self.number[order], return_index=True)
        return np.sort(order[first])


def seed_of(labels: Labels, y: NDArray[np.float64]) -> int:
    """Return a hash of rows, which is the sum of those of their parts, up to a multiple of ``SEEDS``.

    There may be several targets, ``(n, q)``.
    """
    prints = np.zeros(len(y), dtype=np.uint64)
    for target in np.asarray(y, dtype=np.float64).reshape(len(y), -1).T:
        prints = mix(prints, np.ascontiguousarray(target).view(np.uint64))
    return int(mix(prints, labels.view(np.uint64)).sum(dtype=np.uint64))


def draws(seed: int, first: int, n: int) -> NDArray[np.uint64]:
    """Return a random number for each of n rows, the first of which has this number; the least of an entity is drawn.

    They do not depend on how a table is divided into parts. Numbers of 64 bits are different, as far as chance goes.
    """
    numbers = np.random.PCG64(seed % SEEDS)
    numbers.advance(first)
    return numbers.random_raw(n)


def entities_from(table: Table, X: Any, split_by: SplitBy) -> Entities:
    """Return the entities that columns of a table name, or a function of the table as it was given."""
    if callable(split_by):
        return entities_of_labels(split_by(X), table.n_rows)
    names = [split_by] if isinstance(split_by, str) else list(split_by)
    known = {column.name: column for column in table.columns}
    absent = [name for name in names if name not in known]
    if absent:
        raise ValueError(
            f"X has no column {absent[0]!r} for split_by: name one of {listed(table.names, 10)}, or bring entities=."
        )
    return entities_of_columns([known[name] for name in names])


def entities_of_columns(columns: Sequence[Column]) -> Entities:
    """Return the entities that columns name together; a missing value is refused."""
    labels = np.zeros(len(columns[0].values), dtype=np.uint64)
    for column in columns:
        labels = mix(labels, _bits(column))
    return Entities(labels.view(np.int64), name_of([column.name for column in columns]))


def name_of(columns: Sequence[str]) -> str:
    """Return what an entity is in words, if these columns name it."""
    return listed(columns, 10) if len(columns) == 1 else f"combination of {listed(columns, 10)}"


def refuse_seen(entities: Entities, training: Labels) -> None:
    """Raise if calibration rows belong to an entity that trained the network."""
    seen = np.isin(entities.every, training)
    chance = 0 if entities.rule is None else MOST_OVERLAP * len(entities.every)
    if seen.sum() > chance:
        rows = entities.rows_of(np.flatnonzero(seen))
        raise OverlapError(
            f"{int(seen.sum()):,} of {len(entities.every):,} values of {entities.name} in the calibration rows also "
            f"occur in the training rows (see {rows_named(rows)}). Calibrate on rows of new ones."
        )


def entities_of_labels(values: Any, n_rows: int) -> Entities:
    """Return the entities that an array of labels names."""
    array = as_array(values)
    if array.shape != (n_rows,):
        raise ValueError(f"entities must have one label for each of {n_rows} rows, found shape {array.shape}.")
    (column,) = read_table(array.reshape(-1, 1)).columns
    return Entities(entities_of_columns([Column(ENTITY, column.values, column.numbers_are)]).labels, ENTITY)


def _bits(column: Column) -> NDArray[np.uint64]:
    """Return a number for each value: the same for a number and for text that says it."""
    if column.has_cells:
        known = {cell: _of_cell(cell) for cell in set(column.values)}
        missing = np.array([cell is None for cell in column.values])
        bits = np.array([known[cell] for cell in column.values], dtype=np.uint64)
    else:
        missing = np.isnan(column.values)
        bits = (numbers_from(column, column.kind) + 0.0).view(np.uint64)
    if missing.any():
        raise ValueError(
            f"Column {column.name!r} has missing values, so guardband cannot tell which rows belong together "
            f"({rows_named(known_as(np.flatnonzero(missing)))}). Fill them in, or remove these rows."
        )
    return bits


def _of_cell(cell: str | float | None) -> int:
    try:
        number = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return int.from_bytes(blake2b(str(cell).encode(), digest_size=8).digest())
    return int(np.array([number + 0.0]).view(np.uint64)[0])
