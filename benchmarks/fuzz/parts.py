"""The parts of guardband that read bytes of others themselves, each alone and without a file: these are quick."""

from __future__ import annotations

import json
import random
from io import BufferedReader, BytesIO
from typing import cast

import tables
from judging import Find, Target, need, refused
from models import opened
from mutate import Raw, changed_json

from damaged_files import arrow_bytes, nested_columns, parquet_bytes, plain_columns, rich_columns
from guardband.data.arrow_file import batches_in
from guardband.data.csv_file import HEAD, sniff
from guardband.data.damage import reading
from guardband.data.parquet_file import row_groups
from guardband.data.text_cells import boolean_in, day_in, decoded, number_in
from guardband.doors.stored import entries_of, schema_of
from online_rows import started

ARROW, PARQUET = b"A", b"P"


def footer(data: bytes) -> None:
    """Read what an Arrow or a Parquet file says of itself; the first letter says which one it is."""
    kind, body = data[:1], data[1:]
    if kind == ARROW:
        file = cast(BufferedReader, BytesIO(body))

        def work() -> None:
            with reading("table", "Arrow"):
                for batch in batches_in(file, "table"):
                    need(batch.rows >= 0 and batch.size >= 0, "a batch has less than no rows")

        refused(work)
        return
    file = cast(BufferedReader, BytesIO(body + len(body).to_bytes(4, "little") + b"PAR1"))

    def shallow() -> None:
        with reading("table", "Parquet"):
            row_groups(file, "table")

    refused(shallow)


def _footers() -> dict[str, bytes]:
    arrows = {
        "plain": arrow_bytes(plain_columns(4)),
        "rich": arrow_bytes(rich_columns(4), "zstd"),
        "nested": arrow_bytes(nested_columns(4), "lz4"),
    }
    made = {f"arrow {name}": ARROW + own for name, own in arrows.items()}
    for name, columns in (("plain", plain_columns(4)), ("nested", nested_columns(4))):
        whole = parquet_bytes(columns)
        size = int.from_bytes(whole[-8:-4], "little")
        made[f"parquet {name}"] = PARQUET + whole[-8 - size : -8]
    return made


def text(data: bytes) -> None:
    """Read a text as a number, a truth and a date: no other error than that it is none."""
    cell = decoded(data).strip()
    for read in (number_in, lambda own: number_in(own, decimal_comma=True), boolean_in, day_in):
        try:
            found = read(cell)
        except ValueError:
            continue
        need(isinstance(found, float), "it is no number")


def head(data: bytes) -> None:
    """Find the separator, the encoding and the names of a CSV."""

    def work() -> None:
        found = sniff(data[:HEAD], "table")
        need(found.names and all(isinstance(name, str) for name in found.names), "there are no names")

    refused(work)


def entries(data: bytes) -> None:
    """Read the entries of a model file: they are a ``ValueError``, or what this version writes."""
    try:
        said = data.decode()
    except UnicodeDecodeError:
        return
    for read in (schema_of, entries_of):
        try:
            found = read(said)
        except ValueError:
            continue
        except Exception as error:
            raise Find(f"{type(error).__name__}: {error}") from error
        need(isinstance(found, int | dict), "something else is read")


def _entries() -> dict[str, bytes]:
    from models import KINDS, _saved

    every = [own for names in KINDS.values() for own in _saved(names[:3]).values()]
    started("aci", confidence_level=0.9).save("state")
    with open("state", "rb") as file:
        every.append(file.read())
    return {str(i): json.dumps(opened(own)[0]).encode() for i, own in enumerate(every)}


def _changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    return changed_json(data, most, random.Random(seed), raw)


TARGETS = {
    "footers": Target(footer, _footers, longest=1_500),
    "texts": Target(text, lambda: {str(i): own for i, own in enumerate(tables.CELLS)}, longest=40),
    "heads": Target(head, lambda: tables.CSV, longest=400, words=tables.WORDS),
    "entries": Target(entries, _entries, _changed, longest=12_000),
}
