"""Tables of many files as a Ray dataset whose rows know where they came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.data.damage import UnreadableError
from guardband.data.disk import DiskTable, batch_rows, open_table
from guardband.data.packages import need_packages
from guardband.data.parquet_part import part_of_parquet
from guardband.data.several import joined, paths_in, typed_alike
from guardband.data.storage import StorageError, is_address, version_of
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

FILE, ROW = "guardband file", "guardband row"
"""Columns of a dataset that was read here: the number of a row's file, and of the row in it, both from 0."""
Named = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Files by their paths or by patterns."""
OPENED_AT_ONCE = 16
PART_ROWS = 1 << 20
"""A worker reads so many rows of a Parquet file at least before another may read on."""


@dataclass(frozen=True)
class Part:
    """Rows that one worker reads: of a Parquet file some, of another file all, whose ``rows`` nobody has counted.

    ``version`` says which object in storage they are of. It stays None for a file on a disk.
    """

    file: int
    path: str
    first: int = 0
    rows: int | None = None
    version: str | None = None

    @property
    def name(self) -> str:
        """What the part is called in file names: they sort as the rows do."""
        return f"{self.file:06d}-{self.first:012d}"

    def open(self, like: DiskTable) -> DiskTable:
        """Return the part as a table with the columns and types that all files have in common."""
        with self._unchanged():
            disk = open_table(self.path)
        if self.rows is not None:
            disk = part_of_parquet(disk, self.first, self.rows)

        def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
            wanted = list(like.names if columns is None else columns)
            with self._unchanged():
                for batch, done in disk.sound_batches(wanted):
                    yield typed_alike(batch.select(wanted), like.schema), done

        return replace(disk, names=like.names, schema=like.schema, _read=read, kind=None, _place=self._place)

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise if an object is not the same before and after. Ranges of two look like a damaged file."""
        self._need_same()
        try:
            yield
        except (UnreadableError, StorageError):
            self._need_same()
            raise
        self._need_same()

    def _need_same(self) -> None:
        if self.version is not None and self.version != version_of(self.path):
            raise StorageError(f"{self.path} was changed meanwhile. Run again when nobody writes to it.")

    def _place(self, row: int) -> str:
        return f"row {self.first + row:,} of {self.path}"


@dataclass(frozen=True)
class Files:
    """Files of one table in a fixed order, cut into parts; ``skipped`` says which could not be read, and why.

    ``like`` says which columns all have, and of what types; it reads nothing itself.
    """

    paths: tuple[str, ...]
    like: DiskTable
    parts: tuple[Part, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: Named, skip_corrupt: bool = False, part_rows: int = PART_ROWS) -> Files:
        """Return the files that are named, also by patterns: those of a pattern in the order of their names.

        Parameters
        ----------
        given : str, path or sequence of these
            Paths or patterns such as ``"in/*.parquet"``, also in object storage: ``"s3://bucket/in/*.parquet"``.
        skip_corrupt : bool, default False
            Whether to go on without files that cannot be read. They are counted.
        part_rows : int, default 2**20
            How many rows of a Parquet file one part has at most. CSV files are one part each.
        """
        need_packages("tables", "pyarrow")
        disks, skipped, parts = [], [], []
        paths = paths_in(_names(given))
        # Storage answers slowly, and many requests at once.
        with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
            opened = pool.map(_opened, paths) if any(map(is_address, paths)) else map(_opened, paths)
            for file, (disk, version) in enumerate(opened):
                if not isinstance(disk, UnreadableError):
                    disks.append(disk)
                    parts += _parts(file, disk, part_rows, version)
                elif skip_corrupt:
                    skipped.append((paths[file], str(disk)))
                else:
                    raise disk
        if not disks:
            raise ValueError(f"None of the {len(paths):,} files can be read: {skipped[0][1]}")
        like = replace(joined(disks), _read=_nothing, _place=None)
        return cls(tuple(paths), like, tuple(parts), tuple(skipped))

    @property
    def rows(self) -> int | None:
        """How many rows there are, None if nobody has counted them."""
        counts = [part.rows for part in self.parts if part.rows is not None]
        return sum(counts) if len(counts) == len(self.parts) else None

    def place(self, file: int, row: int) -> str:
        """Return where a row lies, both counted from 0."""
        return f"row {row + 1:,} of {self.paths[file]}"


def read(data: Named | Dataset, columns: Sequence[str] | None = None) -> Dataset:
    """Return a Ray dataset of the rows of files; a dataset is returned as it is.

    Rows of files have two columns more: ``FILE`` and ``ROW`` say which file a row is from, and which row of it. Cells
    of CSV are bytes, as guardband reads them before it knows the kind of a column: ``Files.of(paths).like`` goes with
    them to ``guardband.data.typed_columns.typed``.

    Parameters
    ----------
    data : str, path, sequence of these or ray.data.Dataset
        Paths or patterns such as ``"in/*.parquet"`` of files with the same columns, or a dataset. They may be in object
        storage: ``"s3://bucket/in/*.parquet"``.
    columns : sequence of str, default None
        The columns to read. None means all.
    """
    from ray.data import Dataset

    return data if isinstance(data, Dataset) else read_files(Files.of(data), columns)


def read_files(files: Files, columns: Sequence[str] | None = None) -> Dataset:
    """Return a Ray dataset of the rows of files.

    Parameters
    ----------
    files : Files
        The files.
    columns : sequence of str, default None
        The columns to read. None means all.
    """
    from ray.data import Datasource, read_datasource
    from ray.data.block import BlockMetadata
    from ray.data.datasource import ReadTask

    class Guardband(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return None if files.rows is None else files.rows * 8 * len(columns or files.like.names)

        def get_read_tasks(self, parallelism: int, per_task_row_limit: Any = None, data_context: Any = None) -> Any:
            return [
                ReadTask(
                    _reader(part, files.like, columns),
                    BlockMetadata(part.rows, None if part.rows is None else part.rows * 8, None, input_files=None),
                    per_task_row_limit=per_task_row_limit,
                )
                for part in files.parts
            ]

    made: Dataset = read_datasource(Guardband(), override_num_blocks=len(files.parts))  # type: ignore[no-untyped-call]
    return made


def _reader(part: Part, like: DiskTable, columns: Sequence[str] | None) -> Callable[[], Iterator[pa.Table]]:
    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        at = part.first
        for batch, _ in part.open(like).sound_batches(columns):
            numbers = {
                FILE: pa.array(np.full(len(batch), part.file, dtype=np.int32)),
                ROW: pa.array(np.arange(at, at + len(batch))),
            }
            at += len(batch)
            yield pa.table(dict(zip(batch.schema.names, batch.columns, strict=True)) | numbers)

    return rows


def _names(given: Named) -> list[str]:
    """Return the paths and patterns that were given as text."""
    each = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(each, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in each):
        raise TypeError(
            f"Rows must be paths, patterns or a Ray dataset, found {type(given).__name__}. Make a dataset of a table, "
            "such as ray.data.from_pandas(table)."
        )
    if not each:
        raise ValueError("There are no files. Name at least one, such as 'in/*.parquet'.")
    return [os.fspath(path) for path in each]


def _opened(path: str) -> tuple[DiskTable | UnreadableError, str | None]:
    """Return the table at a path, or why it cannot be read, and which version it is."""
    version = version_of(path)
    try:
        return open_table(path), version
    except UnreadableError as error:
        return error, version


def _parts(file: int, disk: DiskTable, part_rows: int, version: str | None) -> list[Part]:
    """Return the parts of a file: only Parquet can be read from the middle, and says at once if it has no rows."""
    if disk.kind != "Parquet" or disk.total is None:
        return [Part(file, disk.label, version=version)]
    size = batch_rows(len(disk.names))
    step = max(1, part_rows // size) * size
    starts = range(0, disk.total, step)
    return [Part(file, disk.label, first, min(step, disk.total - first), version) for first in starts]


def _nothing(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
    raise ValueError(f"Only parts of files are read, not {listed(list(columns or ()))} of all at once.")
