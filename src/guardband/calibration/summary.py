"""What a rule keeps of calibration rows, so that blocks of rows, files or machines can be added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]

TOGETHER = 16
"""So many blocks are joined at a time."""


@dataclass(frozen=True, eq=False)
class Summary:
    """The number of rows, totals over them, which are added, and blocks of them, which are put one behind the other.

    Parameters
    ----------
    n : int
        The number of rows.
    totals : dict of arrays
        Totals over the rows, which are added.
    blocks : tuple of dicts of arrays, default ()
        What is kept of each row, block by block.

    Examples
    --------
    >>> one = Summary(2, {"inside": np.array([1, 2])}, ({"score": np.array([0.5, 1.5])},))
    >>> both = one + one
    >>> both.n, both.totals["inside"].tolist(), both.rows("score").tolist()
    (4, [2, 4], [0.5, 1.5, 0.5, 1.5])
    """

    n: int
    totals: Arrays
    blocks: tuple[Arrays, ...] = ()

    def __add__(self, other: Summary) -> Summary:
        totals = {name: total + other.totals[name] for name, total in self.totals.items()}
        blocks = [*self.blocks, *other.blocks]
        # Blocks are joined, many at a time, unless the first is twice as long as the last: so lengths halve from one
        # lot to the next, and a row is copied O(log n) times while blocks are added one by one.
        while len(blocks) >= TOGETHER and _length(blocks[-TOGETHER]) < 2 * _length(blocks[-1]):
            blocks[-TOGETHER:] = [_joined(blocks[-TOGETHER:])]
        return Summary(self.n + other.n, totals, tuple(blocks))

    def joined(self) -> Summary:
        """Return the same as one block, of which ``rows`` is no copy."""
        return self if len(self.blocks) < 2 else Summary(self.n, self.totals, (_joined(self.blocks),))

    def rows(self, name: str) -> Array:
        """Return what is kept of every row under a name, ``(n, ...)``.

        Parameters
        ----------
        name : str
            The name under which it is kept.
        """
        return self.blocks[0][name] if len(self.blocks) == 1 else _behind([own[name] for own in self.blocks])

    def to_arrays(self) -> dict[str, Array]:
        """Return the summary as named arrays, for a file."""
        kept = {"total": self.totals, "rows": _joined(self.blocks)}
        named = {f"{kind}.{name}": np.asarray(array) for kind, arrays in kept.items() for name, array in arrays.items()}
        return named | {"n": np.array(self.n)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Summary:
        """Return the summary that ``to_arrays`` named.

        Parameters
        ----------
        arrays : dict of arrays
            What ``to_arrays`` returned.
        """
        totals, rows = (
            {name.removeprefix(kind): array for name, array in arrays.items() if name.startswith(kind)}
            for kind in ("total.", "rows.")
        )
        return cls(int(arrays["n"]), totals, (rows,) if rows else ())


def _length(block: Arrays) -> int:
    return len(next(iter(block.values())))


def _joined(blocks: Sequence[Arrays]) -> Arrays:
    return {name: _behind([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}


def _behind(parts: Sequence[Array]) -> Array:
    """Return arrays one behind the other; if they are successive rows of one array, they are not copied."""
    first, whole = parts[0], parts[0].base
    starts = [_address(own) for own in parts]
    ends = [start + own.nbytes for start, own in zip(starts, parts, strict=True)]
    is_one = starts[1:] == ends[:-1] and all(
        own.base is whole and own.dtype == first.dtype and own.shape[1:] == first.shape[1:] for own in parts
    )
    if not isinstance(whole, np.ndarray) or not is_one or not all(own.flags.c_contiguous for own in (whole, *parts)):
        return np.concatenate(parts)
    shape = (sum(map(len, parts)), *first.shape[1:])
    return np.ndarray(shape, first.dtype, whole, starts[0] - _address(whole))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
