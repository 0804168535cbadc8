"""What workers are given: parts of files or blocks of a Ray dataset, and the rows in them whose target is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.disk import DiskTable
from guardband.data.kinds import Kind
from guardband.data.typed_columns import typed
from guardband.ray.sources import Files, Named, Part

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

Source = Any
"""``Files`` or a Ray dataset."""


def source_of(data: Named | Files | Dataset, skip_corrupt: bool = False) -> Source:
    """Return files as ``Files``, and a dataset as it is.

    Parameters
    ----------
    data : str, path, sequence of these, Files or ray.data.Dataset
        Paths or patterns, or a dataset.
    skip_corrupt : bool, default False
        Whether to go on without files that cannot be read.
    """
    from ray.data import Dataset

    return data if isinstance(data, Files | Dataset) else Files.of(data, skip_corrupt)


def names_of(source: Source) -> tuple[str, ...]:
    """Return the names of the columns.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    """
    return source.like.names if isinstance(source, Files) else tuple(source.schema().names)


def pieces_of(source: Source) -> Iterator[Any]:
    """Yield parts of files, or references to the blocks of a dataset, in order.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    """
    if isinstance(source, Files):
        yield from source.parts
        return
    for bundle in source.iter_internal_ref_bundles():
        for entry in bundle.blocks:
            yield entry.ref


def name_of(piece: Any) -> str:
    """Return what a piece is called in a sentence."""
    if not isinstance(piece, Part):
        return "a block"
    if piece.rows is None:
        return piece.path
    return f"rows {piece.first + 1:,} to {piece.first + piece.rows:,} of {piece.path}"


@dataclass(frozen=True)
class Reader:
    """Reads pieces as a model wants its rows.

    Parameters
    ----------
    kinds : dict of str to Kind
        The columns to read, and what each is.
    target : str, tuple of str or None
        The column of true values, or several. Rows without any are left out.
    like : DiskTable or None
        The columns and types that all files have in common, None for blocks.
    only : function or None
        Says which rows with a true value are wanted, None for all.
    """

    kinds: Mapping[str, Kind]
    target: str | tuple[str, ...] | None = None
    like: DiskTable | None = None
    only: Callable[[pa.Table, NDArray[np.float64]], NDArray[np.bool_]] | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of true values."""
        return self.target if isinstance(self.target, tuple) else () if self.target is None else (self.target,)

    def rows(self, piece: Any) -> Iterator[tuple[pa.Table, NDArray[np.float64] | None, int]]:
        """Yield tables of some rows, their true values, and how many rows have none.

        Of several targets true values are ``(n, q)``, NaN where one is missing.

        Parameters
        ----------
        piece : Part or block
            What to read.
        """
        wanted: dict[str, Kind] = {**self.kinds, **dict.fromkeys(self.targets, "number")}
        if isinstance(piece, Part):
            assert self.like is not None
            disk, first = piece.open(self.like), 0
            for batch, _ in disk.sound_batches(list(wanted)):
                table = typed(batch, wanted, disk, first)
                first += len(batch)
                yield self._known(table, piece)
            return
        from ray.data.block import BlockAccessor

        table = BlockAccessor.for_block(piece).to_arrow()
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise ValueError(f"The dataset has no column {missing[0]!r}. Add it, or rename the one that you mean.")
        blocks = DiskTable("The dataset", tuple(wanted), None, None, _read=lambda columns: iter(()))
        yield self._known(typed(table, wanted, blocks), piece)

    def _known(self, table: Any, piece: Any) -> tuple[pa.Table, NDArray[np.float64] | None, int]:
        import pyarrow as pa

        if self.target is None:
            return table, None, 0
        each = []
        for name in self.targets:
            own = np.asarray(table[name].cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
            odd = np.flatnonzero(np.isinf(own))
            if len(odd):
                raise ValueError(
                    f"The target {name!r} must hold finite numbers, found {own[odd[0]]} in {name_of(piece)}. Correct "
                    "it, or remove the row."
                )
            each.append(own)
        y = np.stack(each, axis=1) if isinstance(self.target, tuple) else each[0]
        known = ~np.isnan(y) if y.ndim == 1 else ~np.isnan(y).all(axis=1)
        missing = int((~known).sum())
        features = table.select(list(self.kinds))
        if missing:
            features, y = features.filter(known), y[known]
        if self.only is None:
            return features, y, missing
        wanted = self.only(features, y) if len(y) else np.zeros(0, dtype=bool)
        return features.filter(wanted), y[wanted], 0  # whoever chooses rows has counted those without a true value
