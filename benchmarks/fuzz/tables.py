"""Tables: CSV, Arrow, Parquet and Excel are read as ``fit`` reads them; single cells are read in both ways."""

from __future__ import annotations

import datetime
import gzip
import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from judging import Find, Target, need, refused
from mutate import Raw, changed_archive

from damaged_files import arrow_bytes, parquet_bytes, plain_columns, rich_columns
from excel_files import write_xlsx
from guardband.cli.columns import crowded_in_words, useless_in_words, views_of
from guardband.cli.console import Speaker
from guardband.cli.labelled import read_labelled
from guardband.data import disk
from guardband.data.damage import UnreadableError
from guardband.data.encoder import TableEncoder
from guardband.data.excel_sheet import Sheet, load_sheet
from guardband.data.fingerprint import fingerprints
from guardband.data.kinds import kind_of_text
from guardband.data.repeats import repeats_in
from guardband.data.several import open_tables
from guardband.data.table import read_table
from guardband.data.text_cells import (
    CellError,
    boolean_in,
    booleans_in,
    cells_of,
    dates_in,
    day_in,
    number_in,
    numbers_in,
)

CSV = {
    "plain": b"a,b,y\n1,x,2.5\n2,y,3.5\n,z,4\n",
    "semicolons": b"\xef\xbb\xbfa;d;y\n1,5;2024-01-31;2\n2,5;2024-02-29;3\n",
    "quotes": b'"a ""b""","c\nd",y\n"1","x,\ny",2\n2,"",3\n',
    "dates": b"when\tt\ty\n31.12.2024\ttrue\t1e3\n1.1.2024 10:00:00\tno\t-.5\n",
    "latin": "gr\u00f6\u00dfe|y\nWien\u20ac|1\nGraz|2\n".encode("cp1252"),
    "utf-16": "a,y\n1,2\n3,4\n".encode("utf-16"),
    "missing": b"\n\na,b,y\nNA,null,1\n?,inf,2\nnan,-0,NA\n",
    "gzip": gzip.compress(b"a,y\n1,2\n3,4\n", mtime=0),
}


def read(path: Path) -> None:
    """Read a table as ``fit`` does up to training; its last column is the target."""
    found = open_tables([str(path)])
    *features, target = found.names
    if not features or target in features:
        return
    rows = read_labelled(found, features, target, Speaker(quiet=True))
    views = views_of(rows)
    useless_in_words(views), crowded_in_words(views)
    table, y = read_table(rows.X).settled(), rows.y.to_numpy()
    encoded = TableEncoder.learn(table).encode(table)
    need(np.isfinite(encoded).all(), "an encoded cell is no finite number")
    repeats_in(table, y)
    fingerprints(table, y)
    rows.take(np.arange(rows.n // 2))


def table(data: bytes) -> None:
    """Read a table of any format."""
    path = Path("table")
    path.write_bytes(data)
    refused(lambda: read(path))


def sheet(data: bytes) -> None:
    """Read a workbook in this process, which guardband leaves to another one; that takes a hundred times as long."""
    kept, disk.read_sheet = disk.read_sheet, _read_here
    try:
        table(data)
    finally:
        disk.read_sheet = kept


def _read_here(path: Path, name: str | None) -> Sheet:
    try:
        return load_sheet(path, name)
    except ValueError:
        raise
    except BaseException as error:  # the other process would end, as it does when Rust panics
        raise UnreadableError(f"{path} cannot be read as a workbook of Excel.") from error


def _target(n: int = 6) -> dict[str, pa.Array]:
    return {"z": pa.array(np.arange(n) * 1.5)}


def _arrows() -> dict[str, bytes]:
    plain, rich = plain_columns(6), rich_columns(6)
    return {
        "plain": arrow_bytes(plain | _target()),
        "rich": arrow_bytes(rich | _target()),
        "zstd": arrow_bytes(plain | _target(), "zstd"),
    }


def _parquets() -> dict[str, bytes]:
    plain = plain_columns(6)
    small = {name: plain[name] for name in ("whole", "text")} | _target()
    codings = {"whole": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "z": "PLAIN"}
    return {
        "plain": parquet_bytes(small, compression="none"),
        "rich": parquet_bytes(rich_columns(6) | _target(), row_group_size=3),
        "version 2": parquet_bytes(small, compression="gzip", data_page_version="2.0"),
        "delta": parquet_bytes(small, compression="none", use_dictionary=False, column_encoding=codings),
    }


def _sheets() -> dict[str, bytes]:
    day = datetime.datetime(2024, 1, 31)
    rows = [["a", "when", "truth", "y"], [1, day, True, 2.5], ["x", day, None, 3.5], [None, day, False, 4]]
    found = {"book": write_xlsx(Path("book"), {"one": rows, "two": [["y"], [1]]}, ("A1:B1",)).read_bytes()}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as made:
        made.writestr("table.csv", CSV["plain"])
    return found | {"zip": sink.getvalue()}


def _changed_sheet(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    return changed_archive(data, most, random.Random(seed), raw)


# Cells: Arrow reads those of a file all at once, Python those of an array one by one. Both must say the same.


def cells(data: bytes) -> None:
    """Read a cell as Python does and as Arrow does, as a number, a truth and a date; both must find the same."""
    text = cells_of(pa.array([data], pa.binary()))
    cell = text[0].as_py()
    kind_of_text(text, True)
    if cell is None:
        return
    for comma in (False, True):
        _same(cell, lambda comma=comma: number_in(cell, comma), lambda comma=comma: numbers_in(text, comma))
    _same(cell, lambda: boolean_in(cell), lambda: booleans_in(text, False).cast(pa.float64()))
    _same(cell, lambda: day_in(cell), lambda: _days(dates_in(text, False)))


def _same(cell: str, one, many) -> None:  # type: ignore[no-untyped-def]
    try:
        found = one()
    except ValueError:
        found = None
    try:
        also = many()[0].as_py()
    except CellError:
        also = None
    alike = found == also or (found is not None and also is not None and np.isclose(found, also, 1e-12, 1e-9, True))
    if not alike:
        raise Find(f"the cell {cell!r} is {found} alone and {also} in a file")


def _days(moments: pa.Array) -> pa.Array:
    unit = {"us": 86_400e6, "ns": 86_400e9}[moments.type.unit]
    return pa.array(np.asarray(moments.cast(pa.int64())) / unit)


CELLS = [b"1", b"-2,5", b"1e3", b".5", b"inf", b"NaN", b"true", b"No", b"2024-12-31", b"31.12.2024 10:00", b" 1 "]
CELLS += [b"2024-12-31T10:00:00.123456+01:00", b"2024-01-01 00:00:00.123456789", b"1,234", b"\xe4", b"1_000", b"0x10"]

WORDS = (",", ";", "\t", "\n", '"', "NA", "2024-01-31", "true", "\xef\xbb\xbf")
TARGETS = {
    "csv": Target(table, lambda: CSV, longest=600, words=WORDS),
    "arrow": Target(table, _arrows, longest=8000),
    "parquet": Target(table, _parquets, longest=8000),
    "excel": Target(sheet, _sheets, _changed_sheet, apart=table, longest=12_000),
    "cells": Target(cells, lambda: {str(i): own for i, own in enumerate(CELLS)}, longest=40),
}
