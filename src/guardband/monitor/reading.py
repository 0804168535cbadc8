"""How rows reach a monitor: predicted by its model, or with intervals that somebody else brings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals, intervals_of
from guardband.bands.promise import DISTINCT_ROW
from guardband.calibration.calibrated import Calibrated
from guardband.data.entities import Entities, entities_of_labels
from guardband.data.fingerprint import Twins, input_prints, with_target
from guardband.data.table import Column, Table, as_array, column_named, numbers_from, read_table
from guardband.exceptions import OverlapError
from guardband.monitor.cells import ColumnCells, codes_of
from guardband.monitor.key_set import KeySet
from guardband.monitor.rows import PredictedRows
from guardband.words import rows_named

Array = NDArray[np.float64]

NEW_ROWS = "Monitor rows that are new to the model."


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads rows for a monitor.

    ``model`` predicts rows, None if intervals are brought; ``calibration`` is what it was calibrated by. ``names`` are
    the groups that have a promise of their own, and ``entity`` says what rows belong to, if the promise is for new
    entities.
    """

    certificate: Certificate
    model: Guarded | None
    calibration: Calibrated | None
    cells: tuple[ColumnCells, ...]
    names: dict[str, int]
    entity: str | None

    def predicted(self, X: Any, time: Any, entities: Any, groups: Any) -> PredictedRows:
        """Return rows as the model predicts them."""
        if self.model is None:
            raise ValueError("This monitor has no model that predicts rows. Pass bands= as well, or attach a model.")
        if groups is not None:
            raise ValueError("The model finds the groups of rows itself. Remove groups=.")
        model = self.model
        if model.calibration_ is not self.calibration:
            raise ValueError("The model was fitted or calibrated again. Begin a new monitor for its new certificate.")
        table = model.read_rows(X)
        outputs, _ = model.outputs(X, table)
        lower, point, upper = model.target_.to_units(*model.calibration_.ends(outputs, table.context))
        n = table.n_rows
        group = table.context.group
        codes = np.full((n, 1), -1) if group is None else np.asarray(group).reshape(n, -1)
        labels = self._labels(X, table, entities)
        cells = self._cells(table, n, time)
        return PredictedRows(lower, point, upper, codes, cells, moments(time, n, X), labels, input_prints(table))

    def brought(self, bands: Any, X: Any, time: Any, entities: Any, groups: Any) -> PredictedRows:
        """Return rows with the intervals that were brought; ``X`` may say what their columns are."""
        level = self.certificate.confidence_level
        if isinstance(bands, Intervals):
            self._need_own(bands)
        own = intervals_of(bands, level, self.certificate)
        lower, upper = own.per_level()
        if lower.shape[1] != len(self.certificate.promise.confidence_level):
            raise ValueError(
                f"The promise has {len(self.certificate.promise.confidence_level)} level(s), and the intervals have "
                f"{lower.shape[1]}. Pass the intervals of the promised levels."
            )
        n = len(own)
        if not (lower <= upper).all():
            raise ValueError(
                f"Each lower bound must be a number that is at most its upper bound, found otherwise in "
                f"{rows_named(np.flatnonzero(~(lower <= upper).all(axis=1)))}. Correct these intervals."
            )
        table = None if X is None else (read_table(X) if self.model is None else self.model.read_rows(X))
        if table is not None and table.n_rows != n:
            raise ValueError(f"X and bands must have the same rows, found {table.n_rows:,} and {n:,}.")
        codes = self._codes(groups, n) if table is None or table.context.group is None else table.context.group
        labels = self._labels(X, table, entities, n)
        cells = self._cells(table, n, time)
        prints = input_prints(
            read_table(np.column_stack([lower, own.point, upper]), may_be_infinite=True) if table is None else table
        )
        codes = np.asarray(codes).reshape(n, -1)
        return PredictedRows(lower, own.point, upper, codes, cells, moments(time, n, X), labels, prints)

    def _need_own(self, bands: Intervals) -> None:
        """Raise if intervals are of another level or come with another promise."""
        if bands.confidence_level != self.certificate.confidence_level:
            raise ValueError(
                f"The promise is for the level {self.certificate.confidence_level}, and these intervals are of "
                f"{bands.confidence_level}. Pass the intervals of the promised level."
            )
        if bands.certificate is not None and bands.certificate.promise != self.certificate.promise:
            raise ValueError("These intervals come with another promise. Pass those of the model that is monitored.")

    @cached_property
    def _used(self) -> tuple[KeySet, Twins]:
        """Fingerprints of the rows that made the model, and how often new rows may equal one of them."""
        if self.model is None:
            return KeySet(), Twins.among(np.empty(0, dtype=np.uint64))
        fitted = self.model.fitted_
        every = np.concatenate([fitted.training_prints, fitted.calibration_prints])
        distinct = np.unique(every)
        twins = Twins.among(every, by_chance=fitted.training_entities is None)
        return KeySet(distinct, np.zeros(len(distinct), dtype=np.int64)), twins

    def count_used(self, rows: PredictedRows, y: Array, before: int, judged: int) -> int:
        """Return how many rows equal one that made the model; raise if, with those before, that is beyond chance.

        ``before`` counts such rows among the ``judged`` ones.
        """
        used, twins = self._used
        found = int(used.has(with_target(rows.prints, y)).sum())
        if before + found > twins.most(judged + len(y)):
            raise OverlapError(
                f"{found:,} of {len(y):,} rows are among those that trained or calibrated the model. {NEW_ROWS}"
            )
        return found

    def refuse_known(self, rows: PredictedRows) -> None:
        """Raise if rows belong to entities that trained or calibrated the model."""
        if self.model is None or self.entity in (None, DISTINCT_ROW):
            return
        fitted = self.model.fitted_
        known = [own for own in (fitted.training_entities, fitted.calibration_entities) if own is not None]
        seen = np.isin(rows.entity, np.concatenate(known).view(np.uint64)) if known else np.zeros(len(rows), bool)
        if seen.any():
            raise OverlapError(
                f"{int(seen.sum()):,} of {len(rows):,} rows belong to entities ({self.entity}) that trained or "
                f"calibrated the model. Monitor rows of new ones."
            )

    def _cells(self, table: Table | None, n: int, time: Any) -> NDArray[np.int16]:
        """Return the cell of each row in each column, ``(n, C)``, but for the column of times, which always moves."""
        found = codes_of(self.cells, table, n)
        name = time if isinstance(time, str) else getattr(time, "name", None)
        for j, own in enumerate(self.cells):
            if own.name == name:
                found[:, j] = -1
        return found

    def _labels(self, X: Any, table: Table | None, entities: Any, n: int | None = None) -> NDArray[np.uint64]:
        """Return what each row belongs to as a number, 0 if rows stand alone."""
        n = table.n_rows if n is None and table is not None else cast(int, n)
        if self.entity in (None, DISTINCT_ROW):
            if entities is not None:
                raise ValueError("The promise is for rows, not for entities. Remove entities=, or --split-by.")
            return np.zeros(n, dtype=np.uint64)
        found: Entities | None = None
        if entities is not None:
            found = entities if isinstance(entities, Entities) else entities_of_labels(entities, n)
        elif self.model is not None and table is not None and self.model.belonging.split_by is not None:
            found = self.model.belonging.entities(table, X, np.zeros(n))
        if found is None:
            raise ValueError(
                f"The promise is for new entities ({self.entity}), and these rows do not say what they belong to. Pass "
                "entities=."
            )
        return found.labels.view(np.uint64)

    def _codes(self, groups: Any, n: int) -> NDArray[np.int64]:
        """Return the groups of rows by their numbers, ``(n, J)``; -1 for none."""
        if not self.names:
            if groups is not None:
                raise ValueError("The promise has no groups. Remove groups=.")
            return np.full((n, 1), -1)
        if groups is None:
            raise ValueError("Each group has a promise of its own, and these rows do not say theirs. Pass groups=.")
        grouping = getattr(self.model, "grouping", None)
        if grouping is not None and hasattr(grouping, "of_labels"):
            return np.asarray(grouping.of_labels(groups, n)).reshape(n, -1)
        labels = as_array(groups)
        if labels.shape[:1] != (n,) or labels.ndim > 2:
            raise ValueError(f"groups must have one entry for each of {n:,} rows, found shape {labels.shape}.")
        codes = np.array([self.names.get(str(own), -1) for own in labels.ravel()], dtype=np.int64)
        if n and (codes < 0).all():
            raise ValueError(
                f"No row belongs to a group of the promise. Pass groups by name, such as {next(iter(self.names))!r}."
            )
        return codes.reshape(n, -1)


def moments(time: Any, n: int, X: Any = None) -> Array:
    """Return the time of each row as a number, days for dates; NaN if none is given."""
    if time is None:
        return np.full(n, np.nan)
    column = time_column(time, n, X)
    values = numbers_from(column, column.kind)
    if np.isnan(values).any():
        raise ValueError("A time is missing. Give every row a time, or none of them.")
    return values


def time_column(time: Any, n: int, X: Any = None) -> Column:
    """Return the column of times, of numbers or dates."""
    values = as_array(column_named(X, time, "time") if isinstance(time, str) else time)
    if values.shape != (n,):
        raise ValueError(f"time must be one column of {n:,} rows, found shape {values.shape}.")
    (column,) = read_table(values.reshape(-1, 1)).columns
    if column.kind not in ("number", "date"):
        raise ValueError(f"time must hold dates or numbers, found {column.kind}. Name another column.")
    return column


def time_kind(time: Any, X: Any) -> str:
    """Return what times are, numbers or dates; empty if none are given."""
    if time is None:
        return ""
    values = as_array(column_named(X, time, "time") if isinstance(time, str) else time)
    return time_column(values, len(values)).kind
