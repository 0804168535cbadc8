"""Keys of rows: by which an outcome that arrives later finds its row, and by which a row counts once."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import as_array

Digests = NDArray[np.uint64]


def digests(keys: Any, n: int) -> Digests:
    """Return a 64-bit number for each key, ``(n,)``: the same for a whole number and for text that says it."""
    values = as_array(keys)
    if values.shape != (n,):
        raise ValueError(f"keys must have one entry for each of {n:,} rows, found shape {values.shape}.")
    cells = values.tolist()
    known = {cell: _digest(cell) for cell in set(cells)}
    found = np.array([known[cell] for cell in cells], dtype=np.uint64)
    every, counts = np.unique(found, return_counts=True)
    if len(every) < n:
        at = int(np.flatnonzero(found == every[counts.argmax()])[0])
        raise ValueError(f"Each row needs a key of its own, but {cells[at]!r} stands in several rows. Use other keys.")
    return found


def among(keys: Digests, known: Digests) -> NDArray[np.bool_]:
    """Return which keys are among known ones, which are in order; the time grows with the logarithm of their number."""
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return found


def with_added(known: Digests, keys: Digests) -> Digests:
    """Return known keys, which are in order, and further ones, in order again."""
    new = np.unique(keys)
    new = new[~among(new, known)]
    return np.insert(known, np.searchsorted(known, new), new)


def _digest(cell: Any) -> int:
    if cell is None or cell != cell or cell == "":
        raise ValueError("A key is missing. Give every row a key, or leave the rows without one out.")
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return int.from_bytes(blake2b(str(cell).strip().encode(errors="surrogatepass"), digest_size=8).digest())
