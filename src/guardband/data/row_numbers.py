"""The numbers by which the user knows the rows of a table, where these are not the positions in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]

_numbers: ContextVar[Rows | None] = ContextVar("row_numbers", default=None)


@contextmanager
def rows_known_as(numbers: Rows) -> Iterator[None]:
    """Let messages about the table that is fitted or calibrated on within name its rows by these numbers, ``(n,)``."""
    token = _numbers.set(numbers)
    try:
        yield
    finally:
        _numbers.reset(token)


def known_as(rows: Rows) -> Rows:
    """Return the numbers of rows, given their positions in the table."""
    numbers = _numbers.get()
    return rows if numbers is None else numbers[rows]
