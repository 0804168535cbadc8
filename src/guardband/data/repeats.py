"""Repeated rows: found in a table before it is split, and told from equal rows that chance explains.

Equal rows do no harm if the table is coarse: then new rows equal old ones just as often. They do if a join or a second
upload repeated them: then a row that calibrates was seen in training, and a new row never is. Two things tell these
apart. Copies have the target of their original, however finely it is measured. And how often each row is there differs
less than chance would have it: twice for each, for example. All rows are looked at alike, before any is set aside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import DISTINCT_ROW
from guardband.data.entities import Entities
from guardband.data.fingerprint import Prints, column_prints, mix
from guardband.data.table import Column, Table, numbers_from
from guardband.words import listed

Sizes = NDArray[np.intp]

FEWEST_REPEATS, FEWEST_SHARE = 5, 0.01
"""Fewer rows that repeat another, or fewer relative to all, stay as they are."""
CLEAR_SHARE = 0.05
"""From here on equal targets tell copies in a table of coarse inputs too."""
LARGEST_CLASS, LARGE_ANYWAY = 0.05, 10
"""A class with more of the rows is a frequent value, such as an empty row, and not a row that was copied."""
MOSTLY = 0.5
"""The share of rows that must not be frequent values."""
ALIKE = 0.2
"""How much less often the targets of rows with equal inputs differ, relative to those of any two rows."""
FINE_TARGET = 0.8
"""How often two targets must differ to tell copies in all columns but one."""
FEWEST_CLASSES, FEWEST_MULTIPLES, FEWEST_INPUTS = 10, 20, 50
"""Different rows that there must be: at all; to tell that each is there equally often; to tell it without targets."""
FEW = 0.25
"""Pairs that differ in one column, relative to pairs that are equal, that still count as none."""
ERRORS = 3.0
FEWEST_FOR_ID = 30
MOST_ROWS = 50_000
FEWEST_ALIKE, SEVERAL = 3, 1.5
"""Targets in at least so many rows each, at most so many of them for each combination of inputs, are frequent ones."""
EQUAL_INPUTS = "combination of inputs"


@dataclass(frozen=True)
class RepeatRule:
    """Which rows are the same: those that are equal in these columns, and in the target too if ``with_target``."""

    columns: tuple[str, ...]
    with_target: bool

    def entities(self, table: Table, y: NDArray[np.float64]) -> Entities:
        """Return which rows of a table are the same; those of frequent values are themselves."""
        return self.entities_of(self.prints(table, y))

    def prints(self, table: Table, y: NDArray[np.float64]) -> Prints:
        """Return a number for each row, equal for rows that are equal in these columns."""
        own = [column for column in table.columns if column.name in self.columns]
        prints = _inputs(_hashes(own), len(y))
        return mix(prints, _exact_bits(Column("y", y))) if self.with_target else prints

    def entities_of(self, prints: Prints) -> Entities:
        """Return which of all rows are the same, from what ``prints`` returned; those of frequent values are not."""
        alone = ~_is_rare(prints)
        labels = prints.copy()
        labels[alone] = mix(prints[alone], np.flatnonzero(alone).astype(np.uint64))
        return Entities(labels.view(np.int64), self.name, self)

    @property
    def name(self) -> str:
        """What rows that are the same are called."""
        return DISTINCT_ROW if self.with_target else EQUAL_INPUTS

    def to_dict(self) -> dict[str, Any]:
        """Return the rule for JSON."""
        return {"columns": list(self.columns), "with_target": self.with_target}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> RepeatRule:
        """Return the rule that ``to_dict`` described."""
        return cls(tuple(entries["columns"]), entries["with_target"])


@dataclass(frozen=True)
class Repeats:
    """Rows that repeat another, by which rule, in all columns but ``besides``."""

    rule: RepeatRule
    entities: Entities
    besides: tuple[str, ...]

    @property
    def extra(self) -> int:
        """How many rows repeat another."""
        return len(self.entities.labels) - len(self.entities.every)

    def in_words(self) -> str:
        """Return how many rows repeat another, what was done, and what to do."""
        what = "repeat another row" if self.rule.with_target else "have the inputs of another row"
        but = f", but for {listed(self.besides)}" if self.besides else ""
        return (
            f"{self.extra:,} of {len(self.entities.labels):,} rows {what}{but}. Chance does not explain that. "
            "guardband keeps these rows together and counts them once. Remove repeated rows if a join or a second "
            "upload made them."
        )


def repeats_in(table: Table, y: NDArray[np.float64]) -> Repeats | None:
    """Return the rows that were repeated, or None if chance explains those that are equal.

    Columns that differ in each row do not count, nor does one more that a join may have brought. Without the target,
    only those columns are left out that number or name the rows.
    """
    named = [own.name for own in table.columns if not _is_id(own, measured=False)]
    columns = _copied_columns(table, y, named)
    if columns:
        return _found(table, y, columns, with_target=True)
    inputs = [own for own in table.columns if own.name in named]
    return _found(table, y, named, with_target=False) if inputs and _are_near_copies(inputs, len(y)) else None


def _copied_columns(table: Table, y: NDArray[np.float64], named: list[str]) -> list[str] | None:
    """Return the columns in which rows and targets were copied: those named, or fewer; None if none were."""
    target = _exact_bits(Column("y", y))
    if len(target) > MOST_ROWS:  # by the target's bits, which leaves copies together
        some = np.flatnonzero(mix(target, target) % np.uint64(len(target) // MOST_ROWS + 1) == 0)
        table, target = table.take(some), target[some]
    if len(target) == 0 or _extra(_sizes(target)) < FEWEST_REPEATS:
        return None
    columns = [own for own in table.columns if own.name in named]
    hashes = dict(zip(named, _hashes(columns), strict=True))
    if not named or _are_copies(_inputs(hashes.values(), len(target)), target, strictly=False):
        return named or None
    fewer = [own.name for own in columns if not _is_id(own, measured=True)]
    if not fewer:
        return None
    inputs = _inputs([hashes[name] for name in fewer], len(target))
    if len(fewer) < len(named) and _are_copies(inputs, target, strictly=True):
        return fewer
    for left_out in fewer if len(fewer) > 1 else ():
        if _are_copies(inputs - hashes[left_out], target, strictly=True):
            return [name for name in fewer if name != left_out]
    return None


def _found(table: Table, y: NDArray[np.float64], columns: Sequence[str], with_target: bool) -> Repeats:
    rule = RepeatRule(tuple(columns), with_target)
    besides = tuple(own.name for own in table.columns if own.name not in rule.columns)
    return Repeats(rule, rule.entities(table, y), besides)


def _are_copies(inputs: Prints, target: Prints, strictly: bool) -> bool:
    """Return whether rows with equal inputs and targets are copies; ``strictly`` by a fine target alone."""
    whole = mix(inputs, target)
    rare = _is_rare(whole)
    inputs, target, whole = inputs[rare], target[rare], whole[rare]
    by_row, n = _sizes(whole), len(whole)
    share = CLEAR_SHARE if strictly else FEWEST_SHARE
    if len(by_row) < FEWEST_CLASSES or n < MOSTLY * len(rare) or _extra(by_row) < max(FEWEST_REPEATS, share * n):
        return False
    every, equal = n * (n - 1) / 2, _pairs(by_row)
    same_inputs, same_targets = _pairs(_sizes(inputs)), _pairs(_sizes(target))
    by_inputs = 1 - equal / same_inputs < ALIKE * (1 - same_targets / every)
    if strictly:
        return by_inputs and 1 - same_targets / every > FINE_TARGET
    by_targets = 1 - equal / same_targets < ALIKE * (1 - same_inputs / every) and _extra(by_row) > CLEAR_SHARE * n
    return by_inputs or (by_targets and not _follow(inputs, whole)) or _too_even(by_row)


def _follow(inputs: Prints, whole: Prints) -> bool:
    """Return whether rows are equal because a frequent target follows from the inputs, such as a list price.

    Each combination of inputs then has one such target, in many rows. Of copies, most combinations have several.
    """
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    again = counts > 1
    rows, kinds = int(counts[again].sum()), int(again.sum())
    combinations = len(np.unique(inputs[first[again]]))
    return rows >= FEWEST_ALIKE * kinds and kinds < SEVERAL * combinations


def _are_near_copies(columns: Sequence[Column], n: int) -> bool:
    """Return whether rows with equal inputs are copies, whatever their targets."""
    inputs = _inputs(_hashes(columns), n)
    rare = _is_rare(inputs)
    inputs = inputs[rare]
    sizes = _sizes(inputs)
    if len(sizes) < FEWEST_INPUTS or _extra(sizes) < max(FEWEST_REPEATS, FEWEST_SHARE * rare.sum()):
        return False
    return _too_even(sizes) and _is_fine(inputs, (own[rare] for own in _hashes(columns)))


def _too_even(sizes: Sizes) -> bool:
    """Return whether rows are there too evenly for independent draws, however frequent each is.

    If f_k rows are there k times, k! f_k is log-convex in k for every mixture of Poisson laws, up to chance.
    """
    if len(sizes) >= FEWEST_MULTIPLES and int(np.gcd.reduce(sizes)) > 1:
        return True
    counts = np.bincount(sizes, minlength=3).astype(float)
    counts = np.append(counts, 0.0)
    high = np.log(counts + ERRORS * np.sqrt(counts) + ERRORS**2)
    for k in range(2, len(counts) - 1):
        low = counts[k] - ERRORS * math.sqrt(counts[k])
        # k! f_k squared over (k-1)! f_(k-1) times (k+1)! f_(k+1)
        if low > 0 and 2 * math.log(low) + math.log(k / (k + 1)) > high[k - 1] + high[k + 1]:
            return True
    return False


def _is_fine(inputs: Prints, hashes: Iterable[Prints]) -> bool:
    """Return whether hardly any two rows differ in exactly one column."""
    equal, differ = _pairs(_sizes(inputs)), 0.0
    for own in hashes:
        differ += _pairs(_sizes(inputs - own)) - equal
        if differ > FEW * equal:
            return False
    return True


def _is_rare(prints: Prints) -> NDArray[np.bool_]:
    _, inverse, counts = np.unique(prints, return_inverse=True, return_counts=True)
    rare: NDArray[np.bool_] = counts[inverse] <= max(LARGEST_CLASS * len(prints), LARGE_ANYWAY)
    return rare


def _sizes(prints: Prints) -> Sizes:
    """Return how many rows are equal, for each row that is there."""
    return np.unique(prints, return_counts=True)[1]


def _extra(sizes: Sizes) -> int:
    return int((sizes - 1).sum())


def _pairs(sizes: Sizes) -> float:
    """Return how many pairs of rows are equal."""
    return float((sizes * (sizes - 1.0) / 2).sum())


def _hashes(columns: Sequence[Column]) -> Iterator[Prints]:
    """Yield a number for each value of each column, which depends on the column's name too."""
    for own in columns:
        seed = int.from_bytes(blake2b(own.name.encode(), digest_size=8).digest())
        yield mix(np.array([seed], dtype=np.uint64), _exact_bits(own))


def _inputs(hashes: Iterable[Prints], n: int) -> Prints:
    """Return a number for each of n rows: a sum, so that one column can be taken out again."""
    total = np.zeros(n, dtype=np.uint64)
    for own in hashes:
        total += own
    return total


def _exact_bits(column: Column) -> Prints:
    """Return one number per value, equal for equal values."""
    if column.has_cells:
        return column_prints(column)
    numbers = numbers_from(column, column.kind)
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)


def _is_id(column: Column, measured: bool) -> bool:
    """Return whether a column differs in each row where it is known; of numbers whole ones, unless ``measured``."""
    if column.has_cells:
        known: Any = [cell for cell in column.values if cell is not None]
        return FEWEST_FOR_ID <= len(known) == len(set(known))
    known = column.values[~np.isnan(column.values)]
    if not measured and column.numbers_are == "number" and (known % 1).any():
        return False
    return FEWEST_FOR_ID <= len(known) == len(np.unique(known))
