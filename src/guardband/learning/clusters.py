"""Clusters: columns whose values name entities, such as a patient or a storm, with several rows of similar errors.

Networks that saw other rows of an entity have learnt what is special about it, so their errors hide it. Therefore a
small proxy predicts each entity from the others, without the column. If the column is an irrelevant label, its rows may
be exchanged. If it is a quantity, such as an age, rows of neighbouring values may be: that is what the test does, and
an entity's likeness must be far above that of neighbouring values.

Fractions name entities, too, if they are too precise to be equal by chance: the place of a station, or any measurement
that a join repeated.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, SomeRows, Table, categories_from, numbers_from
from guardband.learning.likeness import centred_ranks, p_value
from guardband.learning.precision import counts_rows, possible_values
from guardband.learning.proxy import Inputs, normal_scores

Array = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]

FEWEST_ENTITIES = 30
MOST_MEAN = 200
LEAST_SHARING = 0.5
LARGEST_SHARE = 0.1
"""A value of more rows than that is a default, such as 0, and no entity."""
PRECISE = 100
"""Fractions are equal by chance unless they could have so many times as many values as there are rows."""
FINER, ALMOST_ALL, MUCH_WIDER = 2, 1.1, 10
"""What makes a key a coarse form of another column; see ``_is_coarse_form``."""
MOST_TESTED = 4
MOST_ROWS, MOST_OF_ONE = 4000, 25
FOLDS, NEIGHBOURS = 3, 6
LEAST_LIKENESS, LEAST_OF_NUMBERS = 0.05, 0.1
MOST_NEIGHBOURLY = 0.5
SURELY_ORDINAL = 0.8
CLEARLY, SURELY = 3.0, 4.5
"""Standard errors by which likeness must differ: that of a quantity never does, and a little likeness must by more."""


@dataclass(frozen=True)
class Key:
    """A column that may name entities: each row's entity, in the order of the values, or -1 if it has none."""

    name: str
    entities: Ints
    is_text: bool
    is_fraction: bool = False


@dataclass(frozen=True)
class Clusters:
    """What was found of a key: the p-value, the likeness within entities and the coverage of new ones to expect."""

    key: Key
    p_value: float
    likeness: float
    coverage: float


def possible_keys(table: Table) -> list[Key]:
    """Return the columns that have many values of several rows each, once if several name the same entities.

    Dates are not among them, nor is a coarse form of a measurement, such as the district of a latitude. Of columns that
    name the same entities the first counts, of text if there is one, and of fractions only if there is no other.
    """
    found = [_key(column) for column in table.columns if column.kind in ("number", "category")]
    keys = sorted((key for key in found if key is not None), key=lambda key: (not key.is_text, key.is_fraction))
    keys = _once_each(keys)
    named = {key.name for key in found if key is not None}
    for own in table.columns:
        if keys and own.kind == "number" and own.name not in named:
            values = numbers_from(own)
            if not counts_rows(values):
                order = np.argsort(values, kind="stable")
                keys = [key for key in keys if not _is_coarse_form(key, values, order)]
    return keys


def _once_each(keys: list[Key]) -> list[Key]:
    """Return of the keys that name the same entities the first."""
    numbers = [int(key.entities.max()) for key in keys]
    alike = Counter(numbers)  # only keys of equally many entities need a closer look, which takes long
    once: dict[object, Key] = {}
    for key, number in zip(keys, numbers, strict=True):
        once.setdefault(number if alike[number] == 1 else _print(key.entities), key)
    return list(once.values())


def likeliest_keys(keys: list[Key], y: Array, errors: Array | None) -> list[Key]:
    """Return the few keys to test: those that most likely are one by the target and by the networks' errors.

    Numbers whose neighbouring values have similar targets are quantities. The choice is free: the limit of a test
    allows for all keys.
    """
    if not keys:
        return []  # to rank all rows takes seconds and memory where there are millions
    known = [y] if errors is None else [y, np.where(np.isnan(errors), np.nanmedian(errors), errors)]
    everything = [centred_ranks(values, np.zeros(len(y), np.intp)) for values in known]

    def promise(key: Key) -> float:
        found = [Likeness.of(ranks, key.entities) for ranks in everything]
        if not key.is_text and found[0].is_ordinal:
            return -math.inf
        return max(own.surplus for own in found)

    ranked = sorted(((promise(key), key) for key in keys), key=lambda pair: -pair[0])
    return [key for score, key in ranked[:MOST_TESTED] if score > -math.inf]


def look_for_clusters(
    table: Table | SomeRows, y: Array, key: Key, level: float, limit: float, seed: int
) -> Clusters | None:
    """Return the clusters that a key names, or None if its rows may as well be independent."""
    rng = np.random.default_rng([seed, table.names.index(key.name)])
    rows = _some_rows(key.entities, rng)
    if len(rows) == 0:
        return None
    some, y = table.take(rows), normal_scores(y[rows])
    entities = np.unique(key.entities[rows], return_inverse=True)[1]
    folds = (rng.permutation(entities.max() + 1) % FOLDS)[entities]
    apart = Inputs.of(some, y, without=(key.name,)).errors(y, folds)
    ranks = centred_ranks(apart, folds)
    found = Likeness.of(ranks, entities)
    if found.within < (LEAST_LIKENESS if key.is_text else LEAST_OF_NUMBERS) and not found.exceeds_neighbours(SURELY):
        return None
    if found.nearby > MOST_NEIGHBOURLY * found.within or not (key.is_text or found.exceeds_neighbours(CLEARLY)):
        return None
    p = exchange_p_value(ranks, entities, folds, limit, rng)
    if p > limit:
        return None
    mixed = rng.permutation(len(y)) % FOLDS
    seen = Inputs.of(some, y).errors(y, mixed)
    if key.is_text:  # of which networks learn an effect for each, as trees hardly do
        seen = seen - taught(seen, entities, mixed)
    inside = np.abs(apart) <= np.quantile(np.abs(seen), level, method="higher")
    sizes = np.bincount(entities)
    return Clusters(key, p, found.within, float((inside / sizes[entities]).sum() / len(sizes)))


def taught(errors: Array, entities: Ints, folds: Ints) -> Array:
    """Return what errors of an entity's rows in other folds say of a row's: their mean, less what may be chance."""
    likeness = Likeness.of(centred_ranks(errors, np.zeros_like(folds)), entities).within
    if likeness <= 0:
        return np.zeros_like(errors)
    sums, counts = (
        np.bincount(entities, of)[entities] - np.bincount(entities * FOLDS + folds, of)[entities * FOLDS + folds]
        for of in (errors, np.ones_like(errors))
    )
    shrunk: Array = sums / (counts + (1 - likeness) / likeness)
    return shrunk


def exchange_p_value(ranks: Array, entities: Ints, folds: Ints, limit: float, rng: np.random.Generator) -> float:
    """Return the p-value of likeness within entities if rows of a fold with neighbouring values may be exchanged."""
    order = np.lexsort((entities, folds))
    starts = np.flatnonzero(np.diff(entities[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    blocks = []
    for fold in np.unique(folds):
        first, rows = int(np.searchsorted(folds[order], fold)), int((folds == fold).sum())
        count = max(1, len(np.unique(entities[folds == fold])) // NEIGHBOURS)
        length, longer = divmod(rows, count)
        blocks += [(first, longer, length + 1), (first + longer * (length + 1), count - longer, length)]
    return p_value(lambda values: _within(values, starts, sizes), ranks[order], blocks, limit, rng)


@dataclass(frozen=True)
class Likeness:
    """Correlation of ranks within entities and between neighbouring ones, and the standard errors of both by chance."""

    within: float
    nearby: float
    within_error: float
    nearby_error: float

    @classmethod
    def of(cls, ranks: Array, entities: Ints) -> Likeness:
        """Return the likeness of centred ranks; rows of entity -1 do not count."""
        order = np.argsort(entities, kind="stable")
        order = order[np.searchsorted(entities[order], 0) :]
        ranks = ranks[order] / max(float(np.sqrt(np.mean(ranks[order] ** 2))), 1e-12)
        starts = np.flatnonzero(np.diff(entities[order], prepend=-1))
        sizes = np.diff(np.append(starts, len(order)))
        several = sizes[sizes > 1]
        sums, roots = np.add.reduceat(ranks, starts) / np.sqrt(sizes), np.sqrt(sizes)
        pairs = float((roots[1:] * roots[:-1]).sum())
        return cls(
            within=float(_within(ranks[None], starts, sizes)[0]) / several.sum(),
            nearby=float((sums[1:] * sums[:-1]).sum()) / pairs,
            within_error=math.sqrt(float((2 * several / (several - 1)).sum())) / several.sum(),
            nearby_error=math.sqrt(len(sizes) - 1) / pairs,
        )

    @property
    def surplus(self) -> float:
        """By how many standard errors likeness within exceeds what neighbouring values would explain."""
        return (self.within - self.nearby / MOST_NEIGHBOURLY) / math.hypot(
            self.within_error, self.nearby_error / MOST_NEIGHBOURLY
        )

    def exceeds_neighbours(self, errors: float) -> bool:
        """Return whether likeness within is so many standard errors above that of neighbouring values."""
        return self.within - self.nearby > errors * math.hypot(self.within_error, self.nearby_error)

    @property
    def is_ordinal(self) -> bool:
        """Whether neighbouring values are so alike that the values must be a quantity."""
        error = math.hypot(SURELY_ORDINAL * self.within_error, self.nearby_error)
        return self.nearby - SURELY_ORDINAL * self.within > CLEARLY * error


def _within(ranks: Array, starts: Ints, sizes: Ints) -> Array:
    """Return for ``(times, n)`` ranks the sum over rows of the mean product with another row of the entity."""
    sums = np.add.reduceat(ranks, starts, axis=1) ** 2 - np.add.reduceat(ranks**2, starts, axis=1)
    weights: Array = np.where(sizes > 1, 1 / np.maximum(sizes - 1, 1), 0.0)
    return np.asarray(sums @ weights)


def _key(column: Column) -> Key | None:
    is_text, is_fraction = column.kind == "category", False
    values: NDArray[np.generic]
    if is_text:
        cells = categories_from(column)
        present = np.array([cell is not None for cell in cells])
        values = np.array([cell or "" for cell in cells])
    else:
        values = numbers_from(column)
        present = ~np.isnan(values)
        is_fraction = bool((values[present] % 1).any())
        if is_fraction and possible_values(values[present]) <= PRECISE * len(values):
            return None
    _, codes, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    is_entity = counts <= LARGEST_SHARE * len(values)
    own = counts[is_entity]
    if len(own) < FEWEST_ENTITIES or own.mean() > MOST_MEAN:
        return None
    if own[own > 1].sum() < LEAST_SHARING * len(values):
        return None
    entities = np.full(len(values), -1, dtype=np.int32)  # a long table may have many keys, which wait for training
    entities[present] = np.where(is_entity[codes], (np.cumsum(is_entity) - 1)[codes], -1)
    return Key(column.name, entities, is_text, is_fraction)


def _print(entities: Ints) -> bytes:
    """Return a hash of entities numbered as they first appear: it is the same for columns that name the same ones."""
    _, first, codes = np.unique(entities, return_index=True, return_inverse=True)
    return blake2b(np.argsort(np.argsort(first))[codes].data).digest()


def _is_coarse_form(key: Key, values: Array, order: Ints) -> bool:
    """Return whether a key tells only in which interval a measurement lies; ``order`` sorts the measurement.

    The rows of almost every entity are then next to each other, with more values than entities, and the next entity is
    hardly farther. A measurement that is the same for all rows of an entity, or nearly, does not make it a coarse form.
    """
    several = np.append(np.bincount(key.entities[key.entities >= 0]) > 1, False)
    own = order[several[key.entities[order]] & ~np.isnan(values[order])]
    borders = np.diff(key.entities[own]) != 0
    steps = np.diff(values[own])
    inside, between = steps[(steps > 0) & ~borders], steps[borders]
    if borders.sum() >= ALMOST_ALL * several.sum() or (steps > 0).sum() < FINER * several.sum():
        return False
    return len(inside) > 0 and bool(np.median(between) <= MUCH_WIDER * np.median(inside))


def _some_rows(entities: Ints, rng: np.random.Generator) -> Ints:
    """Return rows in the table's order, of entities with several: some of each, and of some entities if many."""
    order = rng.permutation(len(entities))
    order = order[np.argsort(entities[order], kind="stable")]
    order = order[np.searchsorted(entities[order], 0) :]
    starts = np.flatnonzero(np.diff(entities[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    kept = (np.arange(len(order)) - np.repeat(starts, sizes) < MOST_OF_ONE) & np.repeat(sizes > 1, sizes)
    drawn = rng.permutation(len(sizes))
    rows_by = np.cumsum(np.where(sizes > 1, np.minimum(sizes, MOST_OF_ONE), 0)[drawn])
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[drawn[rows_by <= MOST_ROWS]] = True
    return np.sort(order[kept & np.repeat(chosen, sizes)])
