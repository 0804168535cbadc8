"""The groups of many rows by one number each: what depends on a row's groups is then looked up by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class NumberedGroups:
    """Rows with equal numbers belong to the same groups.

    Parameters
    ----------
    number : array of shape (n,)
        The number of each row, smaller than P.
    codes : array of shape (P, J)
        The groups of each number, one for each of J columns that make groups.
    """

    number: NDArray[np.unsignedinteger[Any]]
    codes: NDArray[np.integer[Any]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, as the only axis."""
        return self.number.shape

    def __getitem__(self, rows: Any) -> NumberedGroups:
        """Return the groups of some of the rows."""
        return NumberedGroups(self.number[rows], self.codes)

    def of_rows(self) -> NDArray[np.integer[Any]]:
        """Return the groups of each row, ``(n, J)``."""
        return self.codes.take(self.number, axis=0)
