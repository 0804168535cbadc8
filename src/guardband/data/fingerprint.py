"""Row fingerprints: does a calibration row stand among the training rows?"""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, Table
from guardband.data.text_cells import boolean_in, days
from guardband.exceptions import OverlapError

Prints = NDArray[np.uint64]

MOST_OVERLAP = 0.05
"""The share of calibration rows that may stand among the training rows, beyond what twins explain.

Genuine twins are common: 3 to 5% of the concrete data's calibration rows have one among the training rows.
"""

DEVIATIONS = 3.0
"""So many standard deviations of chance are allowed for: much in a small table that has few different rows."""

MOST_TWINS = 3
"""So many rows that are found in a sample say nothing."""


def fingerprints(table: Table, y: NDArray[np.float64]) -> Prints:
    """Return one 64-bit number per row of x and y, ``(n,)``: rows equal in single precision have equal ones."""
    return with_target(input_prints(table), y)


def input_prints(table: Table) -> Prints:
    """Return one number per row of x, to which ``with_target`` adds what y is."""
    prints = np.zeros(table.n_rows, dtype=np.uint64)
    for column in table.columns:
        prints = mix(prints, column_prints(column))
    return prints


def with_target(prints: Prints, y: NDArray[np.float64]) -> Prints:
    """Return the fingerprints of rows from those of their inputs."""
    return mix(prints, _bits(y))


def column_prints(column: Column) -> Prints:
    """Return one number per value of a column: values equal in single precision have equal ones."""
    return _cell_bits(column.values) if column.has_cells else _bits(column.values)


def count_overlap(prints: Prints, training: Prints) -> int:
    """Return how many rows have an equal row among the training rows."""
    return int(are_among(prints, training).sum())


def are_among(prints: Prints, known: Prints) -> NDArray[np.bool_]:
    """Return which rows have an equal row among known ones, which are searched and not sorted if they are in order."""
    if len(known) <= len(prints) or (known[1:] < known[:-1]).any():
        return np.isin(prints, known)
    at = np.searchsorted(known, prints)
    at[at == len(known)] = 0
    found: NDArray[np.bool_] = known[at] == prints
    return found


def smallest_prints(prints: Prints, most: int) -> Prints:
    """Return the smallest of different fingerprints, in order: a sample, whatever the order of the rows.

    The smallest of several sets together are among the smallest of each.
    """
    ordered = np.sort(prints)
    return np.delete(ordered, _repeats(ordered))[:most]


def _repeats(ordered: Prints) -> NDArray[np.intp]:
    """Return where a fingerprint repeats the one before. ``numpy.unique`` would hash, which takes far longer."""
    return 1 + np.flatnonzero(ordered[1:] == ordered[:-1])


def overlap_with_sample(prints: Prints, sample: Prints) -> int:
    """Return about how many rows have an equal one among rows of which the smallest fingerprints alone are known.

    Only rows with fingerprints as small can tell. A few that are found may be twins, and count for none.
    """
    if not len(sample):
        return 0
    own = prints[prints <= sample[-1]]
    found = count_overlap(own, sample)
    return round(found / len(own) * len(prints)) if found > MOST_TWINS else 0


@dataclass(frozen=True)
class Twins:
    """How often new rows equal a known row by chance: as a ``share`` of the ``known`` rows equals another of them."""

    share: float
    known: int

    @classmethod
    def among(cls, known: Prints, by_chance: bool = True) -> Twins:
        """Return it for known rows, whose equal ones say nothing of new rows unless they are equal ``by_chance``."""
        _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
        return cls(float((counts[inverse] > 1).mean()) if len(known) and by_chance else 0.0, len(known))

    def most(self, n: int) -> int:
        """Return how many of n rows may equal a known one: the share, what chance adds to it, and a little more."""
        # Equal rows among the known come in pairs at least, so that their share varies twice as much.
        variance = self.share * (1 - self.share) * (1 / max(n, 1) + 2 / max(self.known, 1))
        return math.ceil((self.share + DEVIATIONS * math.sqrt(variance) + MOST_OVERLAP) * n)


def refuse_overlap(
    prints: Prints,
    training: Prints,
    by_chance: bool = True,
    names: tuple[str, str] = ("calibration", "training"),
    to_do: str = "Calibrate on rows that did not train the model.",
) -> None:
    """Raise if more rows stand among the training rows than twins explain; ``names`` says what the two are.

    If the rows are independent, a calibration row has a twin among the training rows about as often as a
    training row has: only what exceeds that share by more than chance and ``MOST_OVERLAP`` tells of a leak.
    """
    allowed = Twins.among(training, by_chance).most(len(prints))
    found = count_overlap(prints, training)
    if found > allowed:
        raise OverlapError(
            f"{found:,} of {len(prints):,} {names[0]} rows also occur in the {names[1]} rows. Natural duplicates "
            f"explain at most {allowed:,}. {to_do}"
        )


def repeats_in_words(prints: Prints) -> str | None:
    """Return how many rows repeat an earlier one and what to do, or None if they are no more than chance explains."""
    again = len(_repeats(np.sort(prints)))
    if again <= MOST_OVERLAP * len(prints):
        return None
    return (
        f"{again:,} of {len(prints):,} calibration rows equal an earlier one. If the loader repeats rows, the promise "
        f"is that of {len(prints) - again:,} rows at best. Calibrate on each row once."
    )


def _bits(numbers: NDArray[np.floating[Any]]) -> Prints:
    """Return single precision's bits: the same table may come back as float32.

    One bit pattern for 0.0 and -0.0, and one for every NaN.
    """
    with np.errstate(over="ignore"):
        plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype(np.float32)
    return plain.view(np.uint32).astype(np.uint64)


def _cell_bits(cells: NDArray[np.object_]) -> Prints:
    known = {cell: _one_cell(cell) for cell in set(cells)}
    return np.array([known[cell] for cell in cells], dtype=np.uint64)


def _one_cell(cell: str | float | None) -> np.uint64:
    """Return the bits of a number, also if text says one, truth or a moment; otherwise a hash of the text.

    A moment may be written in any form of ISO 8601, also in those that are no date in a table: rows are known again
    after they were read by other programs.
    """
    for read in (boolean_in, _day):
        with suppress(ValueError, OverflowError):
            number = read(cell) if isinstance(cell, str) else np.nan if cell is None else cell
            return np.uint64(_bits(np.array([number]))[0])
    return np.uint64(int.from_bytes(blake2b(str(cell).encode(), digest_size=8).digest()))


def _day(text: str) -> float:
    return days(datetime.datetime.fromisoformat(text))


def mix(prints: Prints, bits: Prints) -> Prints:
    """Return a fresh hash of both (the finaliser of splitmix64, Steele et al. 2014)."""
    mixed = (prints * np.uint64(0x9E3779B97F4A7C15)) ^ bits
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
