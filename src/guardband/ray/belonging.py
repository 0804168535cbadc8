"""What rows of many files belong to: columns say it, a function, or the rule that found repeated rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.calibration.calibrated import Unit
from guardband.calibration.summary import Array
from guardband.data.entities import (
    ENTITY,
    Entities,
    Labels,
    SplitBy,
    entities_from,
    entities_of_columns,
    entities_of_labels,
    name_of,
)
from guardband.data.labelled_rows import Belonging
from guardband.data.repeats import RepeatRule
from guardband.data.table import Column, Table, read_table
from guardband.words import listed


@dataclass(frozen=True, eq=False)
class Together:
    """What calibration rows belong to.

    Parameters
    ----------
    unit : Unit
        What an entity is called, and how many rows there are.
    labels : array of shape (K,)
        Each entity once; of rows that are only counted the smallest.
    """

    unit: Unit
    labels: Labels


@dataclass(frozen=True)
class Belongs:
    """How workers find what rows belong to.

    Parameters
    ----------
    split_by : str, sequence of str or function, or None
        The columns of the model that say it, or a function of rows.
    apart : tuple of str
        Columns that say it and that the model does not read.
    rule : RepeatRule or None
        Which rows are the same, if that was found in the table.
    name : str
        What an entity is called.
    """

    split_by: SplitBy | None
    apart: tuple[str, ...]
    rule: RepeatRule | None
    name: str

    @classmethod
    def of(
        cls,
        known: Belonging,
        has_labels: bool,
        split_by: str | Sequence[str] | None,
        names: Sequence[str],
        are_apart: bool = False,
    ) -> Belongs | None:
        """Return how workers find it, None if rows stand alone.

        Parameters
        ----------
        known : Belonging
            What a model or a rule knows.
        has_labels : bool
            Whether it was told by labels of rows.
        split_by : str, sequence of str or None
            The columns that say it, if the model does not know.
        names : sequence of str
            The columns that there are.
        are_apart : bool, default False
            Whether the model does not read the columns that it knows.
        """
        asked = Belonging(split_by).keys
        if asked and known.names_entities and asked != known.keys:
            raise ValueError("The model knows what rows belong to. Remove split_by.")
        if not asked and has_labels and not known.names_entities:
            raise ValueError(
                "The model was told by labels what its rows belong to. Name the columns that hold these: split_by=..."
            )
        keys = asked or known.keys
        absent = [name for name in keys if name not in names]
        if absent:
            raise ValueError(
                f"There is no column {absent[0]!r} for split_by. The columns are {listed(names, 10)}. Name one of them."
            )
        if (asked and not known.names_entities) or (known.keys and are_apart):
            return cls(None, keys, None, name_of(keys))
        if known.names_entities:
            return cls(known.split_by, (), None, name_of(keys) if keys else ENTITY)
        return None if known.rule is None else cls(None, (), known.rule, known.rule.name)

    def with_columns(self, kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that a model reads, and those that say what rows belong to.

        Parameters
        ----------
        kinds : dict
            The columns that the model reads, and what each is.
        """
        return {**dict.fromkeys(self.apart), **kinds}

    def labels(self, table: Table, X: Any, y: Array, place: str) -> Labels:
        """Return a number for each row, equal for rows that belong together.

        Parameters
        ----------
        table : Table
            The rows as the model reads them.
        X : table
            The rows.
        y : array of shape (n,)
            Their true values.
        place : str
            Where they are, in words.
        """
        if self.rule is not None:
            return self.rule.prints(table, y).view(np.int64)
        if callable(self.split_by):
            return entities_of_labels(self.split_by(X), len(y)).labels
        if self.apart:
            columns = read_table(X.select(list(self.apart))).columns
            _need_known(columns, place)
            return entities_of_columns(columns).labels
        assert self.split_by is not None
        _need_known([own for own in table.columns if own.name in Belonging(self.split_by).keys], place)
        return entities_from(table, X, self.split_by).labels

    def entities(self, labels: Labels) -> Entities:
        """Return what all rows belong to.

        Parameters
        ----------
        labels : array of shape (n,)
            What ``labels`` returned of them.
        """
        if self.rule is not None:
            return self.rule.entities_of(labels.view(np.uint64))
        return Entities(labels, self.name)


def _need_known(columns: Sequence[Column], place: str) -> None:
    """Raise if a column misses a value."""
    for own in columns:
        missing = any(cell is None for cell in own.values) if own.has_cells else np.isnan(own.values).any()
        if missing:
            raise ValueError(
                f"Column {own.name!r} misses a value in {place}, so guardband cannot tell what that row belongs to. "
                "Fill it in, or remove the row."
            )
