"""Several files that are parts of one table: the same columns by name, rows in the order of the files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.data.disk import DiskTable, open_table
from guardband.data.files import STANDARD
from guardband.data.storage import addresses_in, is_address
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa

PATTERN = "*?["


def paths_in(given: Sequence[str]) -> list[str]:
    """Return the files that were named, also by patterns such as part-*.csv; a file that is named twice is an error."""
    paths: list[str] = []
    for path in given:
        if is_address(path):
            paths += addresses_in(path)
            continue
        is_pattern = any(sign in path for sign in PATTERN) and not Path(path).exists()
        found = sorted(glob.glob(path)) if is_pattern else [path]
        if not found:
            raise FileNotFoundError(f"No file matches {path}: check the pattern.")
        paths += found
    if len(paths) > 1 and STANDARD in paths:
        raise ValueError("Standard input (-) is a table alone: name either files or -.")
    known: dict[str, str] = {}
    for path in paths:
        real = path if is_address(path) else os.path.realpath(path)
        if real in known:
            same = "is named twice" if known[real] == path else f"is the same file as {known[real]}"
            raise ValueError(f"{path} {same}, and its rows would count twice: name it once.")
        known[real] = path
    return paths


def open_tables(paths: Sequence[str], sheet: str | None = None) -> DiskTable:
    """Return one table of one file or more; all must have the same columns, in any order."""
    stored = next((path for path in paths if is_address(path)), None)
    if stored is not None:
        raise ValueError(f"{stored} is in object storage, which only --ray reads. Add --ray local, or copy the file.")
    absent = [path for path in paths if path != STANDARD and not Path(path).exists()]
    if len(paths) > 1 and absent:
        raise FileNotFoundError(f"There is no table at {absent[0]}: check the path. Put names with spaces in quotes.")
    disks = [open_table(path, sheet) for path in paths]
    return joined(disks)


def joined(disks: list[DiskTable]) -> DiskTable:
    """Return tables as one, their rows one behind the other; columns that differ are refused."""
    if len(disks) == 1:
        return disks[0]
    first = disks[0]
    for disk in disks[1:]:
        _need_same_columns(first, disk)
    schema = _common_schema(disks)
    totals = [disk.total for disk in disks if disk.total is not None]
    packed = [disk.packed for disk in disks if disk.packed is not None]
    starts: list[tuple[int, DiskTable]] = []

    def read(columns: Sequence[str] | None) -> Iterator[tuple[pa.RecordBatch, int]]:
        wanted = list(first.names if columns is None else columns)
        rows = done = 0
        starts.clear()
        for disk in disks:
            starts.append((rows, disk))
            for batch, at in disk.sound_batches(wanted):
                rows += len(batch)
                yield typed_alike(batch.select(wanted), schema), done + at
            done += disk.total or 0

    def place(row: int) -> str:
        before, disk = next((start for start in reversed(starts) if start[0] < row), (0, first))
        return disk.place(row - before)

    latin = any(disk.dialect is not None and disk.dialect.is_latin for disk in disks)
    return DiskTable(
        label=f"{len(disks):,} files, {first.label} to {disks[-1].label}",
        names=first.names,
        total=sum(totals) if len(totals) == len(disks) else None,
        dialect=None if first.dialect is None else replace(first.dialect, is_latin=latin),
        _read=read,
        schema=schema,
        is_sheet=first.is_sheet,
        remarks=tuple(remark for disk in disks for remark in disk.remarks),
        _place=place,
        packed=sum(packed) if len(packed) == len(disks) else None,
    )


def _need_same_columns(first: DiskTable, other: DiskTable) -> None:
    missing = [name for name in first.names if name not in other.names]
    if missing:
        words = f"{other.label} lacks {listed(missing)}, which {first.label} has"
        raise ValueError(f"{words}: add that, or leave the file out.")
    extra = [name for name in other.names if name not in first.names]
    if extra:
        words = f"{other.label} has {listed(extra)}, which {first.label} lacks"
        raise ValueError(f"{words}: remove that, or leave the file out.")
    if first.is_text != other.is_text or first.is_sheet != other.is_sheet:
        raise ValueError(f"{first.label} and {other.label} have different formats: save all files in one format.")
    if first.decimal_comma != other.decimal_comma:
        raise ValueError(
            f"{first.label} and {other.label} separate their cells by different signs: save both with the same one."
        )


def _common_schema(disks: list[DiskTable]) -> pa.Schema | None:
    """Return types that hold the columns of all files; CSV has none."""
    import pyarrow as pa

    names = disks[0].names
    # A file without rows says nothing of its types: libraries write numbers there for want of text.
    disks = [disk for disk in disks if disk.total != 0] or disks
    first = disks[0].schema
    if first is None:
        return None
    fields = []
    for name in names:
        field = pa.field(name, first.field(name).type)
        for disk in disks[1:]:
            assert disk.schema is not None
            own = disk.schema.field(name).type
            if own != field.type:
                own, field = _plain(own), field.with_type(_plain(field.type))
            try:
                (field,) = pa.unify_schemas(
                    [pa.schema([field]), pa.schema([(name, own)])], promote_options="permissive"
                )
            except (pa.ArrowException, TypeError):
                raise ValueError(
                    f"The column {name!r} holds {own} in {disk.label}, but {field.type} in {disks[0].label}: save both "
                    "with the same type."
                ) from None
        fields.append(field)
    return pa.schema(fields)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the cells: categories of one file are texts in another."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def typed_alike(batch: Any, schema: pa.Schema | None) -> Any:
    """Return a batch with the types that all files have in common."""
    import pyarrow as pa

    if schema is None:
        return batch
    own = pa.schema([(name, schema.field(name).type) for name in batch.schema.names])
    if batch.schema.equals(own):
        return batch
    return batch.cast(own) if len(batch) else pa.record_batch([pa.array([], kind) for kind in own.types], schema=own)
