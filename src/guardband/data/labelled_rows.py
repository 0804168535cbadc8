"""Labelled rows as a user gives them: rows without a target are left out, and rows that belong together are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Context
from guardband.data.entities import Entities, SplitBy, entities_from, entities_of_labels
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.repeats import RepeatRule, repeats_in
from guardband.data.several_targets import key_of, read_targets
from guardband.data.table import Table, as_array, take_rows
from guardband.data.target import read_target
from guardband.data.times import Times
from guardband.exceptions import MissingTargetWarning, RepeatedRowsWarning, warn

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


def warn_of_missing(missing: int, n: int) -> None:
    """Warn if some of n rows are left out because they have no target."""
    if missing:
        words = f"{missing:,} of {n:,} rows are left out because their target y is missing. Fill it in if you know it."
        warn(words, MissingTargetWarning)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows whose target is known. ``X`` is what the user gave, and ``table`` what was read of it.

    With q targets y is ``(n, q)``, NaN where one of a row's targets is missing, and ``targets`` are their names.
    Rows that belong together have the same label in ``entities``, None if all rows stand alone. ``times`` says when
    they came, if that is known.
    """

    X: Any
    table: Table
    y: Array
    weight: Array | None = None
    entities: Entities | None = None
    times: Times | None = None
    targets: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        X: Any,
        table: Table,
        y: Any,
        weight: Array | None = None,
        entities: Entities | None = None,
        times: Times | None = None,
        several: Sequence[str] | None = None,
    ) -> LabelledRows:
        """Return the rows whose target is known; others are counted in a warning.

        ``several`` are the names of targets if there are several, none if y says them. Rows with some of them stay.
        """
        names: tuple[str, ...] = ()
        if several is None:
            target = column_target(y, table.n_rows, may_miss=True)
        else:
            target, names = read_targets(y, table.n_rows, several)
        rows = cls(X, table, target, weight, entities, times, names)
        known = np.flatnonzero(~np.isnan(target.reshape(len(target), -1)).all(axis=1))
        missing = table.n_rows - len(known)
        if not missing:
            return rows
        if not len(known):
            raise ValueError("The target y is missing in every row: pass rows whose target is known.")
        warn_of_missing(missing, table.n_rows)
        return replace(rows.take(known), X=take_rows(X, known))

    def complete(self) -> Rows:
        """Return the rows in which all targets are known."""
        return np.flatnonzero(~np.isnan(self.y.reshape(self.n, -1)).any(axis=1))

    @property
    def key(self) -> Array:
        """One number for each row that says what its targets are: the target itself, or a hash of several."""
        return self.y if self.y.ndim == 1 else key_of(self.y)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)

    @cached_property
    def prints(self) -> Prints:
        """The fingerprint of each row."""
        return fingerprints(self.table, self.key)

    def grouped(self, belonging: Belonging) -> LabelledRows:
        """Return the rows with what they belong to, unless it is known already."""
        return replace(self, entities=belonging.entities(self.table, self.X, self.key, self.entities))

    def take(self, rows: Rows) -> LabelledRows:
        """Return some of the rows; ``X`` stays as it was given."""
        weight, entities, times = self.weight, self.entities, self.times
        return LabelledRows(
            self.X,
            self.table.take(rows),
            self.y[rows],
            None if weight is None else weight[rows],
            None if entities is None else entities.take(rows),
            None if times is None else times.take(rows),
            self.targets,
        )

    def known(self, context: Context) -> LabelledRows:
        """Return the rows with what else a rule knows of them."""
        return replace(self, table=replace(self.table, context=context))

    def one_of_each_entity(self) -> Rows:
        """Return one row of each entity, or all rows if they stand alone."""
        return np.arange(self.n) if self.entities is None else self.entities.one_row_each(self.key)


@dataclass(frozen=True)
class Belonging:
    """How a model knows which rows belong together: by columns or a function, or by the rule that found repeated rows.

    None for both: repeated rows are looked for.
    """

    split_by: SplitBy | None = None
    rule: RepeatRule | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that ``split_by`` names."""
        own = self.split_by
        if own is None or callable(own):
            return ()
        names = [own] if isinstance(own, str) else list(own) if isinstance(own, list | tuple | np.ndarray) else [own]
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"split_by must be the name of a column, several names, or a function, found {own!r}.")
        return tuple(names)

    @property
    def names_entities(self) -> bool:
        """Whether the user said what rows belong to, by columns or a function."""
        return callable(self.split_by) or bool(self.keys)

    def labelled(self, labels: Any, n_rows: int) -> Entities | None:
        """Return the entities that labels name, which the user gave in place of ``split_by``."""
        if labels is None or isinstance(labels, Entities):
            return labels
        if self.split_by is not None:
            raise ValueError("split_by and entities both say which rows belong together: give one of them.")
        return entities_of_labels(labels, n_rows)

    def entities(self, table: Table, X: Any, y: Array, labels: Any = None) -> Entities | None:
        """Return what rows belong to, as labels say if there are any; repeated rows that are found are told."""
        if labels is not None:
            return self.labelled(labels, table.n_rows)
        if self.split_by is not None:
            return entities_from(table, X, self.split_by) if self.names_entities else None
        if self.rule is not None:
            return self.rule.entities(table, y)
        repeats = repeats_in(table, y)
        if repeats is None:
            return None
        warn(repeats.in_words(), RepeatedRowsWarning)
        return repeats.entities


def column_target(y: Any, n_rows: int, may_miss: bool = False) -> Array:
    """Return the target of so many rows, ``(n,)``, also from a table of one column; what is not finite is refused.

    With ``may_miss`` missing values are NaN.
    """
    if y is None:
        raise ValueError("guardband requires y to be passed, but the target y is None.")
    array = as_array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        array = array[:, 0]
        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)
    return read_target(array, n_rows, may_miss=may_miss)


def pair_of(data: Any, name: str) -> tuple[Any, Any]:
    """Return rows and their true values; what is no pair is refused."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"{name} must be a pair (X, y) of rows and their true values, found {type(data).__name__}.")
    X, y = data
    return X, y
