"""Whole tables, which count once: known again in another format or another order, and within a larger table.

Of each table a few numbers are kept: how many rows were judged before it, a digest of all its rows, and the smallest
fingerprints of its rows. A table that holds all of these rows holds the earlier table.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from guardband.data.fingerprint import MOST_OVERLAP
from guardband.monitor.rows import Digests

SMALLEST = 16
KEPT = 2 + SMALLEST


def described(prints: Digests, before: int) -> Digests:
    """Return what is kept of a table, ``(n,) -> (KEPT,)``; ``before`` is how many rows were judged before it.

    Where rows are few or often equal, another table may hold them by chance: only the whole table is known again.
    """
    whole = _digest(prints)
    distinct = np.unique(prints)
    telling = len(distinct) >= max(SMALLEST, (1 - MOST_OVERLAP) * len(prints))
    smallest = distinct[:SMALLEST] if telling else np.full(SMALLEST, whole)
    return np.concatenate([np.array([before, whole], dtype=np.uint64), smallest])


def first_row_of(prints: Digests, tables: Digests) -> int | None:
    """Return how many rows were judged before the same table, None if it is new."""
    known = tables.reshape(-1, KEPT)
    same = np.flatnonzero(known[:, 1] == _digest(prints))
    return int(known[same[0], 0]) if len(same) else None


def refuse_more(prints: Digests, tables: Digests) -> None:
    """Raise if a table holds all rows of an earlier one, and others."""
    held = np.isin(tables.reshape(-1, KEPT)[:, 2:], np.append(prints, _digest(prints)))
    if held.all(axis=1).any():
        raise ValueError(
            "The table contains the rows of a table that was counted before, and each row counts once. Bring new rows "
            "only, or give every row a key."
        )


def _digest(prints: Digests) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(np.sort(prints).tobytes(), digest_size=8).digest()))
