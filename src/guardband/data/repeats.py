"""Repeated rows: found in a table before it is split, and told from equal rows that chance explains.

Equal rows do no harm if the table is coarse: then new rows equal old ones just as often. They do if a join or a second
upload repeated them: then a row that calibrates was seen in training, and a new row never is. What tells the two apart
is rows that differ in a single column. In a coarse table there are more of these than of equal ones; where rows were
copied there are none. All rows are looked at alike, before any of them is set aside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import DISTINCT_ROW
from guardband.data.entities import Entities
from guardband.data.fingerprint import Prints, column_prints, mix
from guardband.data.table import Column, Table

Sizes = NDArray[np.intp]

FEWEST_SHARE = 0.01
"""Fewer rows that repeat another, relative to all, stay as they are."""
CLEAR_SHARE = 0.05
"""From here on the target tells copies in a coarse table too."""
FEWEST_CLASSES = 10
FEWEST_REPEATS = 5
LARGEST_CLASS = 0.05
"""A class with more of the rows than this is a frequent value, not a row that was copied."""
FEW = 0.25
"""Pairs that differ in one column, relative to pairs that are equal, that still count as none."""
ALIKE = 0.2
"""How much less often the targets of rows with equal inputs differ, relative to those of any two rows."""
FEWEST_FOR_ID = 30


@dataclass(frozen=True)
class Repeats:
    """Rows that repeat another, in all columns or in the ``inputs`` alone: how many, and the entities they form."""

    extra: int
    entities: Entities
    inputs: bool

    def in_words(self) -> str:
        """Return how many rows repeat another, what was done, and what to do."""
        what = "have the inputs of another row" if self.inputs else "repeat another row"
        return (
            f"{self.extra:,} of {len(self.entities.labels):,} rows {what}, more than chance explains. guardband keeps "
            "equal rows together and counts them once. Remove repeated rows if a join or a second upload made them."
        )


def repeats_in(table: Table, y: NDArray[np.float64]) -> Repeats | None:
    """Return the rows that were repeated, or None if chance explains those that are equal.

    Columns that number the rows, or name each of them, do not count.
    """
    columns = [column for column in table.columns if not _is_id(column)]
    if not columns:
        return None
    # A sum of hashes, so that one column can be taken out again.
    hashes = [mix(np.full(len(y), j, dtype=np.uint64), _exact_bits(own)) for j, own in enumerate(columns)]
    inputs, target = np.add.reduce(hashes), _exact_bits(Column("y", y))
    whole = mix(inputs, target)
    by_inputs = _sizes(inputs)
    if _extra(by_inputs) < FEWEST_REPEATS:
        return None
    if _could_be_copies(by_inputs) and _extra(by_inputs) > FEWEST_SHARE * len(y) and _is_fine(inputs, hashes):
        return Repeats(_extra(by_inputs), Entities(inputs.view(np.int64), DISTINCT_ROW), True)
    by_row = _sizes(whole)
    if _could_be_copies(by_row) and (_all_repeated(by_row) or _targets_tell(by_inputs, by_row, _sizes(target))):
        return Repeats(_extra(by_row), Entities(whole.view(np.int64), DISTINCT_ROW), False)
    return None


def _is_fine(inputs: Prints, hashes: list[Prints]) -> bool:
    """Return whether hardly any two rows differ in exactly one column."""
    equal, differ = _pairs(_sizes(inputs)), 0.0
    for own in hashes:
        differ += _pairs(_sizes(inputs - own)) - equal
        if differ > FEW * equal:
            return False
    return True


def _all_repeated(by_row: Sizes) -> bool:
    """Return whether the number of times that a row is there is always a multiple of the same number."""
    return int(np.gcd.reduce(by_row)) > 1


def _targets_tell(by_inputs: Sizes, by_row: Sizes, by_target: Sizes) -> bool:
    """Return whether rows with equal inputs have equal targets, or rows with equal targets equal inputs, nearly always.

    Nearly: measured by how often two rows of the table differ there at all.
    """
    n = int(by_row.sum())
    if _extra(by_row) <= CLEAR_SHARE * n:
        return False
    every, equal, inputs, targets = n * (n - 1) / 2, _pairs(by_row), _pairs(by_inputs), _pairs(by_target)
    return any(
        1 - equal / given < ALIKE * (1 - other / every) for given, other in ((inputs, targets), (targets, inputs))
    )


def _could_be_copies(sizes: Sizes) -> bool:
    return bool(len(sizes) >= FEWEST_CLASSES and sizes.max() <= max(LARGEST_CLASS * sizes.sum(), FEWEST_CLASSES))


def _sizes(prints: Prints) -> Sizes:
    """Return how many rows are equal, for each row that is there."""
    return np.unique(prints, return_counts=True)[1]


def _extra(sizes: Sizes) -> int:
    return int((sizes - 1).sum())


def _pairs(sizes: Sizes) -> float:
    """Return how many pairs of rows are equal."""
    return float((sizes * (sizes - 1.0) / 2).sum())


def _exact_bits(column: Column) -> Prints:
    """Return one number per value, equal for equal values."""
    if column.has_cells:
        return column_prints(column)
    return np.where(np.isnan(column.values), np.nan, column.values + 0.0).view(np.uint64)


def _is_id(column: Column) -> bool:
    """Return whether a column has another text, or another whole number, in each row."""
    values = column.values
    if len(values) < FEWEST_FOR_ID:
        return False
    if column.has_cells:
        return len(set(values)) == len(values)
    whole = column.numbers_are == "number" and not np.isnan(values).any() and (values == np.round(values)).all()
    return bool(whole) and len(np.unique(values)) == len(values)
