"""How much memory there is, and tables that are too large for it: a small file may unpack to more than that."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from guardband.data.damage import UnreadableError

CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
BYTES_PER_CELL = 48
"""A cell is held as the file has it, as a number of eight bytes, and as what networks see, by turns in copies."""
LARGEST_SHARE = 0.5
"""Of the memory, that one batch may fill before it is converted."""
GIB = 1 << 30
LEAST, TIMES = 1 << 28, 1000
"""Bytes that the rows of any file may take, and how many times its own size those of a larger one may."""


def memory() -> int | None:
    """Return the bytes of memory of this machine, or of the container; None if nobody says so."""
    known = []
    with suppress(ValueError, OSError, AttributeError):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CONTAINER:
        with suppress(ValueError, OSError):  # it says "max" where there is no limit
            known.append(int(path.read_text()))
    return min((size for size in known if size > 0), default=None)


def need_memory_for_cells(rows: int, columns: int, label: str) -> None:
    """Raise if a table that is needed whole has more cells than memory can hold."""
    _need(rows * columns * BYTES_PER_CELL, 1.0, f"{label} has {rows:,} rows of {columns:,} columns, which")


def need_memory_for_bytes(size: int, label: str, packed: int | None = None) -> None:
    """Raise if what was read so far, or a batch that is read at once, is more than memory can hold and convert.

    So is what takes out of all proportion more than the file, if ``packed`` says how many bytes that has.
    """
    if packed is not None and size > max(LEAST, TIMES * packed):
        raise UnreadableError(
            f"{label} has {packed:,} bytes, and unpacks to more than {max(LEAST, TIMES * packed) / (1 << 20):,.0f} MiB "
            "of rows, as files do that are made to fill memory. Use fewer rows or columns, or shorten long texts."
        )
    _need(size, LARGEST_SHARE, f"{label} unpacks to rows that")


def _need(size: int, share: float, what: str) -> None:
    there = memory()
    if there is not None and size > share * there:
        raise UnreadableError(
            f"{what} need about {max(1, round(size / share / GIB)):,} GiB of memory, but this machine has "
            f"{there / GIB:,.0f} GiB. Use fewer rows or columns."
        )
