"""Keys of rows: by which an outcome that arrives later finds its row, and by which a row counts once."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import as_array

Digests = NDArray[np.uint64]

WHOLE = re.compile(r"^(-?(?:0|[1-9]\d*))\.0+$")
"""A whole number as other programs write it: 7.0."""


def digests(keys: Any, n: int) -> Digests:
    """Return a 64-bit number for each key, ``(n,)``: the same for a whole number and for text that says it."""
    values = as_array(keys)
    if values.shape != (n,):
        raise ValueError(f"keys must have one entry for each of {n:,} rows, found shape {values.shape}.")
    cells = values.tolist()
    missing = [i + 1 for i, cell in enumerate(cells) if _is_missing(cell)]
    if missing:
        raise ValueError(
            f"A key is missing in row {missing[0]:,}. Give every row a key, or leave the rows without one out."
        )
    known = {cell: _digest(cell) for cell in set(cells)}
    found = np.array([known[cell] for cell in cells], dtype=np.uint64)
    every, counts = np.unique(found, return_counts=True)
    if len(every) < n:
        at = int(np.flatnonzero(found == every[counts.argmax()])[0])
        raise ValueError(f"Each row needs a key of its own, but {cells[at]!r} stands in several rows. Use other keys.")
    return found


def _is_missing(cell: Any) -> bool:
    try:
        return cell is None or cell == "" or bool(cell != cell)
    except TypeError:  # a missing value of pandas says nothing of itself
        return True


def _digest(cell: Any) -> int:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = WHOLE.sub(r"\1", str(cell).strip())
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())
