"""Several targets: each on a scale of its own. Values have a column for each, and NaN where one is not known."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from guardband.data.absurd import absurd, warn_of_absurd
from guardband.data.codes import center_and_scale
from guardband.data.fingerprint import column_prints, mix
from guardband.data.row_numbers import known_as, rows_known_as
from guardband.data.table import Column, as_array, is_frame
from guardband.data.target import Target, read_target
from guardband.data.transforms import Transform
from guardband.exceptions import warn
from guardband.words import listed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeveralTargets(Target):
    """The target of each column, with its name; ``scales`` are those of all of them, one behind the other."""

    transform: Transform | None = None
    y_min: float | None = None
    y_max: float | None = None
    names: tuple[str, ...] = ()
    each: tuple[Target, ...] = ()

    def decided(self, y: Array) -> SeveralTargets:
        """Return the targets for the rows given to fit; values that cannot be are refused."""
        return self._changed(y, lambda own, known: own.decided(known))

    def decided_again(self, y: Array) -> SeveralTargets:
        """Return the targets for other calibration rows."""
        return self._changed(y, lambda own, known: own.decided_again(known))

    def learn(self, y: Array) -> SeveralTargets:
        """Return the targets with the scales of the training rows."""
        return self._changed(y, lambda own, known: own.learn(known))

    def to_work(self, y: Array) -> Array:
        """Return values in work units, ``(n, q) -> (n, q)``; those that cannot be are refused."""
        return self._mapped(y, lambda own, known: own.to_work(known))

    def possible(self, y: Array) -> NDArray[np.bool_]:
        """Return in which rows no value is one that the model was told to be impossible, ``(n,)``."""
        out = np.ones(len(y), dtype=bool)
        for own, column in self._columns(y):
            out &= own.possible(column) | np.isnan(column)
        return out

    def to_learn(self, y: Array) -> Array:
        """Return values in learn units, ``(n, q) -> (S, n, q)``; a target with one scale has it in all S turns."""
        columns = self._columns(self.to_work(y))
        every = [[scale.forward(column) for scale in own.scales] for own, column in columns]
        turns = max(map(len, every))
        return np.stack([np.stack([own[turn % len(own)] for own in every], axis=1) for turn in range(turns)])

    def of_turn(self, turn: int) -> SeveralTargets:
        """Return the targets, each with the one scale that is learnt at this turn."""
        return replace(self, each=tuple(own.of_turn(turn) for own in self.each))._scaled()

    def to_units(self, lower: Any, point: Any, upper: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return ends and points in the targets' own units, each along axis 1."""
        every = [own.to_units(lower[:, j], point[:, j], upper[:, j], xp) for j, own in enumerate(self.each)]
        low, middle, high = (xp.stack(same, 1) for same in zip(*every, strict=True))
        return low, middle, high

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate says of the targets."""
        pairs = zip(self.names, self.each, strict=True)
        return tuple(f"{name}: {note}" for name, own in pairs for note in own.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the first target for JSON: a file has a place of its own for the others."""
        return self.each[0].to_dict()

    def restored(self, entries: Sequence[Mapping[str, Any]]) -> SeveralTargets:
        """Return the targets from what each said of itself for JSON, with the transforms of these."""
        pairs = zip(entries, self.each, strict=True)
        return replace(self, each=tuple(Target.from_dict(own, like.transform) for own, like in pairs))._scaled()

    def _columns(self, y: Array) -> Iterator[tuple[Target, Array]]:
        return zip(self.each, y.T, strict=True)

    def _mapped(self, y: Array, change: Callable[[Target, Array], Array]) -> Array:
        out = np.full(y.shape, np.nan)
        for j, (own, column) in enumerate(self._columns(y)):
            known = np.flatnonzero(~np.isnan(column))
            if len(known):
                with named(self.names[j]), rows_known_as(known_as(known)):
                    out[known, j] = change(own, column[known])
        return out

    def _changed(self, y: Array, change: Callable[[Target, Array], Target]) -> SeveralTargets:
        changed = list(self.each)
        for j, (own, column) in enumerate(self._columns(y)):
            known = np.flatnonzero(~np.isnan(column))
            if not len(known):
                raise ValueError(f"The target {self.names[j]!r} is missing in every row. Fill it in, or leave it out.")
            with named(self.names[j]), rows_known_as(known_as(known)):
                changed[j] = change(own, column[known])
        return replace(self, each=tuple(changed))._scaled()

    def _scaled(self) -> SeveralTargets:
        return replace(self, scales=tuple(scale for own in self.each for scale in own.scales))


def read_targets(y: Any, n_rows: int, names: Sequence[str] = ()) -> tuple[Array, tuple[str, ...]]:
    """Return several targets as ``(n, q)``, NaN where one is missing, and their names.

    The columns of a table have names, and are found by ``names`` if these are given; those of an array are counted.
    """
    if y is None:
        raise ValueError("guardband requires y to be passed, but the targets y are None.")
    counts = Counter(map(str, y.column_names if hasattr(y, "column_names") else getattr(y, "columns", ())))
    again = [name for name, count in counts.items() if count > 1]
    if again:
        raise ValueError(f"y has two columns {again[0]!r}. Rename one, or leave it out.")
    if is_frame(y):
        frame = nw.from_native(y, eager_only=True)
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(f"y lacks the target {absent[0]!r}. Pass the columns {listed(names)}.")
        own = tuple(names or map(str, frame.columns))
        columns = [nw.to_native(frame[name]) for name in (names or frame.columns)]
    else:
        array = as_array(y)
        if array.ndim != 2:
            raise ValueError(
                f"With several targets, y must have one column for each, (n, q), found shape {array.shape}. Pass a "
                "table or an array with several columns, or remove targets."
            )
        own = tuple(names) or tuple(f"target {j + 1}" for j in range(array.shape[1]))
        columns = list(array.T)
    if len(columns) < 2:
        raise ValueError(f"Several targets need at least 2 columns in y, found {len(columns)}. Remove targets for one.")
    if len(columns) != len(own) or len(set(own)) < len(own):
        raise ValueError(f"y must have the {len(own)} targets {listed(own)}, found {len(columns)} columns.")
    values = []
    for name, column in zip(own, columns, strict=True):
        with named(name):
            values.append(read_target(column, n_rows, may_miss=True))
    return np.stack(values, axis=1), own


def key_of(y: Array) -> Array:
    """Return one whole number for each row of several targets, equal for equal rows, ``(n, q) -> (n,)``."""
    prints = np.zeros(len(y), dtype=np.uint64)
    for j, column in enumerate(y.T):
        prints = mix(prints, column_prints(Column(f"target {j}", column)))
    return (prints >> np.uint64(12)).astype(np.float64)  # 52 bits: each is a float of its own


def average_of(values: Array) -> Array:
    """Return one number for each row of several targets, the average of those known, each in units of its spread."""
    known = ~np.isnan(values)
    pairs = [center_and_scale(own[is_known]) for own, is_known in zip(values.T, known.T, strict=True)]
    standard = (values - np.array([center for center, _ in pairs])) / np.array([scale or 1.0 for _, scale in pairs])
    out: Array = np.where(known, standard, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return out


def without_absurd(
    targets: SeveralTargets, y: Array, rows: NDArray[np.intp], trains: bool = True
) -> tuple[Array, NDArray[np.bool_]]:
    """Return targets with NaN in place of those far beyond all others, and which rows have none left.

    They are warned of; ``rows`` are positions in the user's table.
    """
    y, work = y.copy(), targets.to_work(y)
    for j, name in enumerate(targets.names):
        known = np.flatnonzero(~np.isnan(work[:, j]))
        wrong = np.flatnonzero(absurd(work[known, j]))
        with named(name):
            warn_of_absurd(y[known, j], wrong, rows[known], trains)
        y[known[wrong], j] = np.nan
    return y, np.asarray(np.isnan(y).all(axis=1))


@contextmanager
def named(name: str) -> Iterator[None]:
    """Let errors and warnings say which target they are about.

    Parameters
    ----------
    name : str
        The target.
    """
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise ValueError(f"Target {name!r}: {error}") from None
    for own in found:
        warn(f"Target {name!r}: {own.message}", own.category)
