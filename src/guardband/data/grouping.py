"""Groups: which ones each row belongs to, by columns of a table, by a function of it, or by labels.

Groups are fixed before calibration: their names, the ranges of numbers and which of them are pooled come from training
rows, or from the labels that the user brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.bands.numbered_groups import NumberedGroups
from guardband.data.asking import Asking, answered
from guardband.data.group_labels import columns_of_labels, numbered_labels, unnamed_columns
from guardband.data.group_sets import MOST_GROUPS, codes_of, flags_of, sets_of
from guardband.data.kinds import Kind
from guardband.data.questions import AskCategories, AskDistinct, AskRanks, AskSpread
from guardband.data.table import (
    Column,
    Table,
    categories_from,
    column_named,
    numbers_from,
    read_table,
    take_columns,
)
from guardband.words import as_moment, as_written, listed

GroupsBy = str | Sequence[str] | Callable[[Any], Any]
"""What makes groups: a column, several columns, or a function of the table that returns labels."""
SmallGroups = Literal["inf", "pool"]
Codes = NDArray[np.integer[Any]]

NONE, UNKNOWN = -1, -2
"""Of a column: the row belongs to none of its groups, or has a value that no group is known for."""
MOST_VALUES = 30
"""Numbers with more different values than this are put into ranges."""
BINS = 5
MANY_GROUPS = 120
"""Fewer groups have small numbers, eight of which are as large as one."""


@dataclass(frozen=True)
class GroupColumn:
    """How one column puts rows into groups: one for each of its values, or for each range of numbers.

    ``values`` are text or numbers, or where ranges begin. Behind them come the group of all other values, if some are
    pooled, and that of missing ones, if it was asked for. Of ``members`` only rows that are true belong to a group.
    """

    name: str
    kind: Kind
    values: tuple[str | float, ...]
    is_range: bool = False
    members: bool = False
    has_pool: bool = False
    has_missing: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups, in words."""
        return self.labels_with(str)

    def labels_with(self, write: Callable[[str], str]) -> tuple[str, ...]:
        """Return the groups in words, with names and text as ``write`` has them: ``repr`` tells all apart."""
        name = write(self.name)
        if self.members:
            return (name,)
        words = self._ranges() if self.is_range else [self._word(value) for value in self.values]
        if len(set(words)) < len(words):  # numbers that differ in later digits
            words = [str(value) for value in self.values]
        others = (["all other values"] if self.has_pool else []) + (["missing"] if self.has_missing else [])
        if self.kind == "category":
            words = list(map(repr if set(words) & set(others) else write, words))
        return tuple(f"{name} = {word}" for word in [*words, *others])

    def codes(self, column: Column) -> Codes:
        """Return which of these groups each row belongs to."""
        other = len(self.values) if self.has_pool else UNKNOWN
        missing = len(self.values) + self.has_pool if self.has_missing else NONE
        if self.kind == "category":
            known: dict[str | None, int] = {str(value): i for i, value in enumerate(self.values)} | {None: missing}
            return np.array([known.get(cell, other) for cell in categories_from(column)], dtype=np.int64)
        numbers, starts = numbers_from(column, self.kind), np.array(self.values, dtype=np.float64)
        if self.members:
            return np.where(numbers == 1, 0, NONE)
        if self.is_range:
            found = np.maximum(np.searchsorted(starts, numbers, side="right") - 1, 0)
        else:
            at = np.minimum(np.searchsorted(starts, numbers), max(len(starts) - 1, 0))
            found = np.where(starts[at] == numbers, at, other) if len(starts) else np.full(len(numbers), other)
        return np.where(np.isnan(numbers), missing, found)

    def _ranges(self) -> list[str]:
        starts = [self._word(value) for value in self.values]
        if len(starts) == 1:
            return ["any"]
        middle = [f"{low} to below {high}" for low, high in pairwise(starts[1:])]
        return [f"below {starts[1]}", *middle, f"{starts[-1]} or more"]

    def _word(self, value: str | float) -> str:
        if isinstance(value, str):
            return value
        if self.kind == "boolean":
            return "yes" if value else "no"
        return as_moment(value) if self.kind == "date" else as_written(value)


@dataclass(frozen=True, eq=False)
class Grouping:
    """All groups, and how rows are put into them.

    ``by`` is what the user named, None if labels are brought for each row.
    """

    columns: tuple[GroupColumn, ...]
    by: GroupsBy | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, in words, by their numbers; no two are the same."""
        labels = tuple(label for column in self.columns for label in column.labels)
        if len(set(labels)) == len(labels):
            return labels
        return tuple(label for column in self.columns for label in column.labels_with(repr))

    @property
    def width(self) -> int:
        """How many columns make groups: a row belongs to at most one group of each."""
        return len(self.columns)

    @property
    def column_names(self) -> list[str]:
        """The columns of a table that must be there to find the groups of its rows."""
        return [] if self.by is None else group_names(self.by)

    @property
    def in_words(self) -> str:
        """What makes the groups."""
        return ", ".join(column.name for column in self.columns)

    def of(self, columns: Sequence[Column]) -> Codes:
        """Return the groups of rows by their numbers, one for each column, ``(n, J)``."""
        if len(columns) != len(self.columns):
            raise ValueError(
                f"groups must have {len(self.columns)} column(s), as before, found {len(columns)}. Pass the same ones."
            )
        columns = self._in_order(columns)
        kind = np.int8 if len(self.names) < MANY_GROUPS else np.int64
        first, out = 0, np.empty((len(columns[0].values), len(columns)), dtype=kind)
        for j, (own, column) in enumerate(zip(self.columns, columns, strict=True)):
            codes = own.codes(column)
            out[:, j] = np.where(codes >= 0, codes + first, codes)
            first += len(own.labels)
        return out

    def of_labels(self, values: Any, n_rows: int) -> Codes:
        """Return the groups of rows by labels that were brought for them."""
        if self._are_flags(values, n_rows) and self.width < MANY_GROUPS:
            return codes_of(values)
        numbered = self._numbered(values, n_rows)
        return self.of(columns_of_labels(values, n_rows)) if numbered is None else numbered.of_rows()

    def of_new_labels(self, values: Any, n_rows: int) -> Codes | NumberedGroups:
        """Return the same by one number for each row, if there are more rows than numbers that they could have."""
        if self._are_flags(values, n_rows) and self.width <= MOST_GROUPS and n_rows > 2**self.width:
            every = flags_of(np.arange(2**self.width, dtype=np.uint32), self.width)
            return NumberedGroups(sets_of(values), codes_of(every))
        numbered = self._numbered(values, n_rows)
        return self.of_labels(values, n_rows) if numbered is None else numbered

    def _numbered(self, values: Any, n_rows: int) -> NumberedGroups | None:
        """Return the groups of labels that are small whole numbers; each combination of them is looked at once."""
        found = numbered_labels(values, n_rows)
        return None if found is None else NumberedGroups(found[0], self.of(found[1]))

    def _are_flags(self, values: Any, n_rows: int) -> bool:
        """Return whether labels are truth values, one for each row and group, as numpy keeps them in one run."""
        if not isinstance(values, np.ndarray) or values.dtype != bool or not values.flags.c_contiguous:
            return False
        return values.shape == (n_rows, self.width) and all(column.members for column in self.columns)

    def _in_order(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Return several columns in the order of the groups, found by their names if both have names of their own."""
        own, given = ([column.name for column in some] for some in (self.columns, columns))
        unnamed = unnamed_columns(len(columns))
        if len(own) == 1 or own == given or unnamed in (own, given):
            return columns
        if sorted(own) != sorted(given):
            raise ValueError(
                f"groups must have the columns {listed(own, 10)}, found {listed(given, 10)}. Name them so."
            )
        return [columns[given.index(name)] for name in own]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the columns for JSON."""
        return [asdict(column) | {"values": list(column.values)} for column in self.columns]

    @classmethod
    def from_dict(cls, entries: Sequence[Mapping[str, Any]], by: GroupsBy | None) -> Grouping:
        """Return the groups that ``to_dict`` described."""
        return cls(tuple(GroupColumn(**(dict(own) | {"values": tuple(own["values"])})) for own in entries), by)

    def of_rows(self, table: Table, X: Any) -> Codes:
        """Return the groups of a table's rows; ``X`` is what the user gave."""
        assert self.by is not None
        return self.of(group_columns(self.by, table, X))

    def of_rows_of(self, X: Any, n_rows: int) -> Codes:
        """Return the groups of rows as they were given, if a function says what they are."""
        assert callable(self.by)
        return self.of(_labelled_by(self.by, X, n_rows))


@dataclass(frozen=True)
class GroupValues:
    """What the rows of a column say of its groups: how often each value occurs, or where ranges of numbers begin.

    Of ``members`` only rows that are true belong to a group.
    """

    name: str
    kind: Kind
    counts: Mapping[str | float, int] = field(default_factory=dict)
    starts: tuple[float, ...] | None = None
    members: bool = False

    def column(self, missing: bool, least: int) -> GroupColumn:
        """Return the groups; values with fewer rows than ``least`` are pooled."""
        if self.members:
            return GroupColumn(self.name, "boolean", (1.0,), members=True)
        if self.starts is not None:
            return GroupColumn(self.name, self.kind, self.starts, True, has_missing=missing)
        kept = tuple(sorted(value for value, count in self.counts.items() if count >= least))
        return GroupColumn(self.name, self.kind, kept, has_pool=len(kept) < len(self.counts), has_missing=missing)


def group_values(
    columns: Sequence[Column], by: GroupsBy | None = None, *, bins: int = BINS, may_bin: bool = True
) -> list[GroupValues]:
    """Return what columns of training rows say of groups.

    Of several columns of truth that a user brings, each is one group, to which the rows belong that are true. Ranges of
    numbers need training rows: labels of calibration rows alone may not fix them (``may_bin``).
    """
    if (by is None or callable(by)) and len(columns) > 1 and all(c.kind == "boolean" for c in columns):
        return [GroupValues(column.name, "boolean", members=True) for column in columns]
    return [answered(asks_values(c.name, c.kind, bins=bins, may_bin=may_bin), c) for c in columns]


def grouping_of(
    values: Sequence[GroupValues], by: GroupsBy | None = None, *, missing: bool = False, least: int = 0
) -> Grouping:
    """Return the groups that training rows name; those with fewer rows than ``least`` are pooled."""
    every = tuple(own.column(missing, least) for own in values)
    if not sum(len(column.labels) for column in every):
        raise ValueError("groups names no group at all: every value is missing. Name another column.")
    return Grouping(every, by)


def group_columns(by: GroupsBy, table: Table, X: Any) -> list[Column]:
    """Return the columns that make groups, as the user names them: of the table, or what a function returns."""
    if callable(by):
        return _labelled_by(by, X, table.n_rows)
    names = group_names(by)
    known = {column.name: column for column in table.columns}
    absent = [name for name in names if name not in known]
    if absent:
        raise ValueError(
            f"X has no column {absent[0]!r}, as groups asks for. Its columns are {listed(table.names, 10)}. Name one "
            "of them, or pass a function of X."
        )
    return [known[name] for name in names]


def _labelled_by(function: Callable[[Any], Any], X: Any, n_rows: int) -> list[Column]:
    """Return the labels that a function gives rows; a single column has the function's name, if it has one."""
    columns, name = columns_of_labels(function(X), n_rows), getattr(function, "__name__", "group")
    own = "group" if name == "<lambda>" else name
    return [replace(columns[0], name=own)] if len(columns) == 1 else columns


def named_columns(X: Any, names: Sequence[str]) -> list[Column]:
    """Return columns of a table as it was given, which are to be groups."""
    for name in names:
        column_named(X, name, "groups")  # which raises if there is none
    return list(read_table(take_columns(X, names)).columns)


def group_names(by: Any) -> list[str]:
    """Return the columns that ``groups`` names, none for a function; raise if it is nothing of the kind."""
    if callable(by):
        return []
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else [by]
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"groups must be the name of a column, several names, or a function of X, found {by!r}.")
    return names


def asks_values(name: str, kind: Kind, *, bins: int = BINS, may_bin: bool = True) -> Asking[GroupValues]:
    """Learn what the values of a column say of its groups; ``may_bin`` says whether numbers may be put into ranges."""
    if kind == "category":
        categories = yield AskCategories()
        return GroupValues(name, kind, {value: count for value, count in categories.items() if value is not None})
    (distinct, times), are_all = yield AskDistinct(MOST_VALUES)
    if are_all:
        return GroupValues(name, kind, dict(zip(distinct.tolist(), times.tolist(), strict=True)))
    if not may_bin:
        raise ValueError(
            f"The groups of {name} are more than {MOST_VALUES} different numbers. Pass training rows too, which fix "
            "ranges before calibration (on the command line --training TABLE), or bring labels of ranges."
        )
    spread = yield AskSpread()
    cuts = yield AskRanks(tuple(((np.arange(bins) * spread.values) // bins).tolist()), spread)
    return GroupValues(name, kind, starts=tuple(np.unique(cuts).tolist()))
