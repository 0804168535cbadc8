"""How workers read the rows that a model learns from: which columns, what they are, and which rows calibrate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.data.fingerprint import Prints
from guardband.data.hash_split import HashSplit
from guardband.data.kinds import Kind, kind_of_type
from guardband.data.kinds_in_parts import KindOfPart
from guardband.data.table import Table, read_table
from guardband.data.text_cells import cells_of
from guardband.ray.cluster import Shared, all_in_order, task, workers
from guardband.ray.pieces import Reader, Source, names_of, pieces_of
from guardband.ray.sources import Files
from guardband.words import listed

NO_TARGET = "No row has a target. Pass rows whose target is known."
AHEAD = 2
"""For each worker so many tasks are under way at most."""


@dataclass(frozen=True)
class Block:
    """Some rows whose target is known, as Arrow has them and as guardband reads them."""

    X: Any
    table: Table
    y: NDArray[np.float64]
    prints: Prints

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)


@dataclass(frozen=True)
class LearningRows:
    """How the rows of a source are read and split.

    Parameters
    ----------
    reader : Reader
        Reads the features and the target.
    split : HashSplit
        Says which rows calibrate.
    """

    reader: Reader
    split: HashSplit

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What each feature is."""
        return tuple(self.reader.kinds.values())

    def blocks(self, piece: Any) -> Iterator[Block]:
        """Yield the rows of a piece.

        Parameters
        ----------
        piece : Part or block
            What to read.
        """
        for own, _ in self.blocks_and_missing(piece):
            if own is not None:
                yield own

    def blocks_and_missing(self, piece: Any) -> Iterator[tuple[Block | None, int]]:
        """Yield the rows of a piece, None if no target is known, and how many rows beside them have no target.

        Parameters
        ----------
        piece : Part or block
            What to read.
        """
        for X, y, missing in self.reader.rows(piece):
            assert y is not None
            own = None
            if len(y):
                table = read_table(X).read_as(self.kinds)
                own = Block(X, table, y, self.split.prints(table, y))
            yield own, missing


def features_in(
    source: Source, targets: Sequence[str], columns: Sequence[str] | None, dropped: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns to learn from: all but the target and those that are dropped, or those that are named.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    targets : sequence of str
        The columns of true values.
    columns : sequence of str or None
        The columns to learn from, None for all others.
    dropped : sequence of str
        Columns to leave out.
    """
    names = names_of(source)
    for name in (*targets, *dropped, *(columns or ())):
        if name not in names:
            raise ValueError(f"There is no column {name!r}. The columns are {listed(names, 10)}. Name one of them.")
    features = tuple(name for name in (columns or names) if name not in (*targets, *dropped))
    if not features:
        raise ValueError("There are no columns besides the target. Add columns to learn from, or drop fewer.")
    return features


def kinds_in(source: Source, names: Sequence[str]) -> dict[str, Kind]:
    """Return what columns are: their types say it, or of text without types the cells of all files.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    names : sequence of str
        The columns.
    """
    like = source.like if isinstance(source, Files) else None
    schema = source.schema().base_schema if like is None else like.schema
    if schema is not None and not (like is not None and like.is_sheet):
        import pyarrow as pa

        empty = pa.table({name: pa.array([], schema.field(name).type) for name in names})
        types = nw.from_native(empty, eager_only=True).schema
        return {name: kind_of_type(types[name]) or "category" for name in names}
    found = over_pieces(source, _kinds_of_part, (like, tuple(names)))
    each = [reduce(lambda a, b: a + b, parts) for parts in zip(*found, strict=True)]
    return {name: part.kind for name, part in zip(names, each, strict=True)}


def over_pieces(source: Source, work: Any, given: Any, own: Sequence[Any] | None = None) -> Iterator[Any]:
    """Yield what workers make of each piece, in order; what is wrong with one is raised here.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    work : function
        Takes what is given and a piece.
    given : object
        What all workers need.
    own : sequence, default None
        What is needed for each piece besides.
    """
    yield from _results(source, work, given, own, returns=1)


def kept_of_pieces(source: Source, work: Any, given: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what workers tell of each piece, in order, with a reference to what they keep of it.

    Ray makes what a task returned again if the machine that held it dies.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    work : function
        Takes what is given and a piece, and returns what it tells and what it keeps.
    given : object
        What all workers need.
    """
    yield from _results(source, work, given, None, returns=2)


def _results(source: Source, work: Any, given: Any, own: Sequence[Any] | None, returns: int) -> Iterator[Any]:
    shared, run = Shared(given), task(_of_piece, returns)
    calls = (
        partial(run.remote, work, shared, piece, *(() if own is None else (own[i],)))
        for i, piece in enumerate(pieces_of(source))
    )
    yield from all_in_order(calls, AHEAD * workers())


def _of_piece(work: Any, shared: Shared, piece: Any, *own: Any) -> Any:
    return work(shared.get(), piece, *own)


def _kinds_of_part(given: Any, piece: Any) -> list[KindOfPart]:
    import pyarrow as pa

    like, names = given
    parts = [KindOfPart() for _ in names]
    for batch, _ in piece.open(like).sound_batches(list(names)):
        for i, name in enumerate(names):
            cells = batch.column(name)
            if not pa.types.is_string(cells.type) and not like.is_text:
                raise ValueError(f"Save the workbook {like.label} as CSV or Parquet, which Ray can read in parts.")
            parts[i] += KindOfPart.of(cells_of(cells), like.decimal_comma)
    return parts
