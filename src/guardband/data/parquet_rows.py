"""Rows of a Parquet file in batches of one size, unpacked so few at a time that they fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from guardband.data.damage import need_sound, unpacked_bytes
from guardband.data.memory import need_memory_for_bytes
from guardband.data.parquet_pages import rows_at_once
from guardband.data.storage import Address

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

LARGEST_OBJECT = 1 << 20
"""Bytes of an object in storage whose pages are looked at: each page of a larger one would take a request."""


def parquet_rows(
    path: Path | Address,
    file: ParquetFile,
    size: int,
    columns: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups (None: all), ``size`` at a time.

    What unpacks to far more than the file is refused before it is held.

    Parameters
    ----------
    path : Path or Address
        Where the file lies.
    file : ParquetFile
        The open file.
    size : int
        How many rows a batch has, a multiple of 1,024.
    columns : sequence of str, or None
        The columns to read (None: all).
    groups : sequence of int, or None
        The row groups to read (None: all).
    """
    import pyarrow as pa

    chosen = list(range(file.num_row_groups)) if groups is None else list(groups)
    packed = path.stat().st_size
    step = size
    if isinstance(path, Path):
        with path.open("rb") as opened:
            step = rows_at_once(opened, file.schema, columns, chosen, size, str(path))
    elif packed <= LARGEST_OBJECT:
        step = rows_at_once(cast(BufferedReader, BytesIO(path.read())), file.schema, columns, chosen, size, str(path))
    pieces = file.iter_batches(step, row_groups=chosen, columns=columns)
    if step == size:
        yield from pieces
        return
    kept: list[pa.RecordBatch] = []
    rows = taken = 0
    for piece in pieces:
        need_sound(piece)
        kept.append(piece)
        rows, taken = rows + len(piece), taken + unpacked_bytes(piece)
        need_memory_for_bytes(taken, str(path), packed)
        if rows >= size:
            yield pa.Table.from_batches(kept).combine_chunks().to_batches()[0]
            kept, rows, taken = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept).combine_chunks().to_batches()[0]
