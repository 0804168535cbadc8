"""Times: when each row came, and a split of rows into earlier and later ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.entities import Entities, Rows
from guardband.data.row_numbers import known_as
from guardband.data.table import Column, as_array, column_named, numbers_from, read_table
from guardband.words import as_moment, as_written, rows_named

Array = NDArray[np.float64]
FEWEST_EARLIER = 2


@dataclass(frozen=True, eq=False)
class Times:
    """When each row came, ``(n,)``: numbers that grow with time, or days since 1970 if they are dates."""

    values: Array
    name: str
    are_dates: bool

    @classmethod
    def of(cls, split_by_time: str | bool, time: Any, X: Any, n_rows: int) -> Times | None:
        """Return when rows came, by the column that ``split_by_time`` names or by ``time``; None if neither says it.

        ``time`` is an array or the name of a column of ``X``.
        """
        if not isinstance(split_by_time, str | bool | np.bool_):
            raise ValueError(
                f"split_by_time must be the name of a column, True or False, found {split_by_time!r}. Pass an array as "
                "time= to fit."
            )
        if isinstance(split_by_time, str):
            if time is not None:
                raise ValueError("split_by_time and time both say when rows came. Give one of them.")
            return cls.from_column(side_column("split_by_time", split_by_time, n_rows, X))
        if time is None:
            if split_by_time:
                raise ValueError(
                    "split_by_time=True needs to know when each row came. Name a column as split_by_time, or pass "
                    "time= to fit."
                )
            return None
        return cls.from_column(side_column("time", time, n_rows, X))

    @classmethod
    def from_column(cls, column: Column) -> Times:
        """Return the times that a column says; text that is no date is refused."""
        kind = column.kind
        if kind not in ("number", "date"):
            found = "text" if kind == "category" else "True and False"
            raise ValueError(
                f"Column {column.name!r} must hold numbers or dates such as 2024-12-31 to say when rows came, found "
                f"{found}. Correct it, or name another column."
            )
        return cls(numbers_from(column, kind), column.name, kind == "date")

    def take(self, rows: Rows) -> Times:
        """Return the times of some of the rows."""
        return replace(self, values=self.values[rows])

    def in_words(self, value: float) -> str:
        """Return a time as people write it."""
        return as_moment(value) if self.are_dates else as_written(value, 6)

    def need_known(self) -> None:
        """Raise if it is not known when some row came."""
        missing = np.flatnonzero(~np.isfinite(self.values))
        if len(missing):
            raise ValueError(
                f"Column {self.name!r} has missing values, so guardband cannot tell which rows came first "
                f"({rows_named(known_as(missing))}). Fill them in, or remove these rows."
            )

    def split(self, count: int, entities: Entities | None = None) -> tuple[Rows, Rows]:
        """Return earlier rows, and about ``count`` later ones: rows of one time are all on one side.

        Later rows that belong to an entity of earlier ones, such as a row that a join repeated, are on neither.
        """
        self.need_known()
        last = last_of_earlier(self.values, count)
        if last is None:
            raise ValueError(
                f"A split by time needs at least {FEWEST_EARLIER} rows that came before others. In {self.name!r}, "
                f"nearly all of {len(self.values):,} rows have the time {self.in_words(float(self.values.max()))}. Use "
                "a finer time, or split at random."
            )
        early, late = np.flatnonzero(self.values <= last), np.flatnonzero(self.values > last)
        if entities is not None:
            late = late[~np.isin(entities.number[late], entities.number[early])]
            if not len(late):
                raise ValueError(
                    f"All rows after {self.in_words(last)} repeat earlier rows, so none can calibrate. Remove "
                    "the copies, or add new rows."
                )
        return early, late


def last_of_earlier(values: Array, count: int) -> float | None:
    """Return the time up to which rows are earlier if about ``count`` are later; None if there is no such time."""
    every, counts = np.unique(values, return_counts=True)
    later = len(values) - np.cumsum(counts)[:-1]
    possible = np.flatnonzero(len(values) - later >= FEWEST_EARLIER)
    return float(every[possible[np.argmin(np.abs(later[possible] - count))]]) if len(possible) else None


def side_column(argument: str, values: Any, n_rows: int, X: Any = None) -> Column:
    """Return a column that is given apart or as the name of one of X, under its own name if it has one."""
    name = values if isinstance(values, str) else getattr(values, "name", None) or argument
    values = column_named(X, values, argument) if isinstance(values, str) else values
    array = as_array(values)
    if array.shape != (n_rows,):
        raise ValueError(f"{argument} must be one column of {n_rows} rows, found shape {array.shape}.")
    (column,) = read_table(array.reshape(-1, 1)).columns
    return replace(column, name=str(name))
