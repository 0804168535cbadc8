"""What training rows belong to that no process holds: gathered in one pass over the files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.entities import Labels, entities_of_columns, name_of
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.reference import Reference
from guardband.data.table import read_table
from guardband.ray.learning_rows import Block, LearningRows, over_pieces
from guardband.ray.pieces import Source
from guardband.ray.pieces import name_of as name_of_piece
from guardband.words import listed

Array = NDArray[np.float64]
MOST_LABELS = 1 << 22
"""Of more entities than this, only some are kept."""
MOST_ROWS = 20_000
"""One row of each of so many entities says what the training rows are like."""


@dataclass(frozen=True, eq=False)
class TrainingEntities:
    """What the training rows belong to.

    Parameters
    ----------
    name : str
        What an entity is called.
    labels : array of shape (K,)
        The label of each, in order.
    are_all : bool
        Whether these are all.
    reference : Reference
        A summary of columns, of one row of each of many entities.
    """

    name: str
    labels: Labels
    are_all: bool
    reference: Reference


def training_entities(source: Source, rows: LearningRows) -> TrainingEntities | None:
    """Return what the training rows belong to, None if they stand alone.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    rows : LearningRows
        How they are read and split.
    """
    if not rows.split.keys:
        return None
    found = reduce(_together, (own for own in over_pieces(source, _of_piece, rows) if own is not None), None)
    if found is None:
        raise ValueError("No row trains, as their hashes say. Add rows, or lower calibration_size.")
    table = read_table(found.X).read_as(rows.kinds)
    labels = np.sort(found.labels.view(np.int64))
    return TrainingEntities(name_of(rows.split.keys), labels, found.are_all, Reference.learn(table, found.y))


@dataclass(frozen=True, eq=False)
class _Some:
    """The smallest labels, and one row of each of the smallest of these: the one with the smallest fingerprint.

    Labels and fingerprints are hashes. So these are random ones, whatever the order of rows and files.
    """

    labels: Prints
    are_all: bool
    X: Any
    y: Array
    own: Prints
    prints: Prints

    @classmethod
    def of(cls, labels: Prints, are_all: bool, X: Any, y: Array, own: Prints, prints: Prints) -> _Some:
        every = np.unique(labels)
        order = np.lexsort((y, prints, own))
        _, first = np.unique(own[order], return_index=True)
        kept = order[first[:MOST_ROWS]]
        are_all = are_all and len(every) <= MOST_LABELS
        return cls(every[:MOST_LABELS], are_all, X.take(kept), y[kept], own[kept], prints[kept])


def _together(one: _Some | None, other: _Some) -> _Some:
    import pyarrow as pa

    if one is None:
        return other
    X = pa.concat_tables([one.X, other.X], promote_options="permissive")
    names = ("labels", "y", "own", "prints")
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    return _Some.of(**both, are_all=one.are_all and other.are_all, X=X.unify_dictionaries())


def _of_piece(rows: LearningRows, piece: Any) -> _Some | None:
    out: _Some | None = None
    for block in rows.blocks(piece):
        labels = labels_of(rows, block, piece)
        kept = np.flatnonzero(~rows.split.calibrates(block.prints))
        if len(kept):
            own, prints = labels[kept], fingerprints(block.table.take(kept), block.y[kept])
            out = _together(out, _Some.of(own, True, block.X.take(kept), block.y[kept], own, prints))
    return out


def labels_of(rows: LearningRows, block: Block, piece: Any) -> Prints:
    """Return the label of each row of a block; a missing value is refused.

    Parameters
    ----------
    rows : LearningRows
        How they are split.
    block : Block
        The rows.
    piece : Part or block
        Where they are.
    """
    known = {column.name: column for column in block.table.columns}
    try:
        return entities_of_columns([known[name] for name in rows.split.keys]).labels.view(np.uint64)
    except ValueError:  # which says in which row of the block
        keys = listed(rows.split.keys, 10)
        raise ValueError(
            f"Some rows of {name_of_piece(piece)} have no value of {keys}, so guardband cannot tell which rows belong "
            "together. Fill it in, or remove these rows."
        ) from None
