"""Some successive rows of a Parquet file as a table of its own, in the batches in which the whole file is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from guardband.data.disk import DiskTable, batch_rows
from guardband.data.parquet_rows import parquet_rows
from guardband.data.storage import Address, arrow_source, buffer_bytes, is_address

if TYPE_CHECKING:
    import pyarrow as pa


def part_of_parquet(disk: DiskTable, first: int, rows: int) -> DiskTable:
    """Return the table of the rows of a Parquet file from ``first``, which begins a batch.

    Batches are those of the whole file, because networks may compute the last bit of a row by how many rows they are
    given at once. Only row groups that hold some of the rows are read.

    Parameters
    ----------
    disk : DiskTable
        The Parquet file.
    first : int
        The first row, counted from 0: a multiple of ``batch_rows``.
    rows : int
        How many rows.
    """
    import pyarrow as pa
    from pyarrow import parquet

    size = batch_rows(len(disk.names))
    path = Address.of(disk.label) if is_address(disk.label) else Path(disk.label)

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        wanted = list(disk.names if columns is None else columns)
        buffer = buffer_bytes(path, len(disk.names))
        with (
            arrow_source(path) as source,
            parquet.ParquetFile(source, buffer_size=buffer, pre_buffer=False) as file,
        ):
            names = file.schema_arrow.names
            as_they_are = set(disk.names) == set(names) and not any("." in name for name in names)
            groups, before = [], 0
            start = None
            for number in range(file.num_row_groups):
                own = file.metadata.row_group(number).num_rows
                if before < first + rows and before + own > first:
                    groups.append(number)
                    start = before if start is None else start
                before += own
            at, kept, held = start or 0, [], 0
            chosen = [name for name in disk.names if name in wanted] if as_they_are else None
            for batch in parquet_rows(path, file, size, chosen, groups):
                named = batch.rename_columns(chosen or list(disk.names))
                low, high = max(first - at, 0), min(first + rows - at, len(batch))
                at += len(batch)
                if low >= high:
                    continue
                kept.append(named.slice(low, high - low))
                held += high - low
                while held >= size:
                    whole = pa.Table.from_batches(kept).combine_chunks()
                    yield whole.slice(0, size).to_batches()[0], 0
                    kept, held = whole.slice(size).to_batches(), held - size
            if held:
                yield pa.Table.from_batches(kept).combine_chunks().to_batches()[0], 0

    return replace(disk, total=rows, _read=read)
