"""The training rows as networks see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from guardband.data.absurd import absurd, warn_of_absurd
from guardband.data.category_targets import Described, describe
from guardband.data.encoder import Encoder, PlainNumbers, TableEncoder
from guardband.data.several_targets import SeveralTargets, without_absurd
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.learning.architecture import Architecture

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRows:
    """Rows as networks see them, ``x (n, d)`` and ``y (S, n)`` on S scales, and the seed of what is random in training.

    With q targets y is ``(S, n, q)``, NaN where one is missing.

    ``kept`` are their positions among the training rows: those with an absurd target are left out. Rows with the same
    number in ``entity``, ``(n,)``, belong together. ``described`` are the same rows with many categories described by
    the target; ``told`` says what they are described by.
    """

    encoder: Encoder
    target: Target
    x: NDArray[np.float32]
    y: Array
    weight: Array | None
    seed: int
    kept: NDArray[np.intp]
    entity: NDArray[np.intp] | None = None
    described: TrainingRows | None = None
    told: Described | None = None
    choice: str = ""
    """What was chosen on these rows before, in words."""

    def as_new(self, left_out: NDArray[np.intp] | None) -> TrainingRows:
        """Return the rows as they are new to copies: ``left_out`` is the one that did not see a row, -1 if all did."""
        if self.told is None or left_out is None:
            return self
        return replace(self, x=self.told.unseen(left_out), told=None)

    @classmethod
    def of(
        cls,
        table: Table,
        y: Array,
        weight: Array | None,
        seed: int,
        architecture: Architecture,
        target: Target,
        rows: NDArray[np.intp] | None = None,
        entity: NDArray[np.intp] | None = None,
        keys: Sequence[str] = (),
    ) -> TrainingRows:
        """Return the rows of a table: how to encode its columns and to standardise the target is learnt here.

        ``rows`` are their positions in the table that the user gave, for messages. ``keys`` name columns that say what
        rows belong to: of these, text is left out.
        """
        if isinstance(target, SeveralTargets):
            y, wrong = without_absurd(target, y, np.arange(len(y)) if rows is None else rows)
        else:
            wrong = absurd(target.to_work(y))
            warn_of_absurd(y, np.flatnonzero(wrong), np.arange(len(y)) if rows is None else rows)
        kept = np.flatnonzero(~wrong)
        if wrong.any():
            table, y, weight = table.take(kept), y[kept], None if weight is None else weight[kept]
            entity = None if entity is None else entity[kept]
        encoder: Encoder = PlainNumbers()
        if architecture.builder is None:
            encoder = TableEncoder.learn(table, architecture.tabular, keys)
        target = target.learn(y)
        apart = None if entity is None or len(np.unique(entity)) < 2 else entity
        own = cls(encoder, target, encoder.encode(table), target.to_learn(y), weight, seed, kept, apart)
        if not isinstance(encoder, TableEncoder) or y.ndim > 1:
            return own
        told = describe(encoder, table, y, seed, weight, apart)
        if told is None:
            return own
        return replace(own, described=replace(own, encoder=told.encoder, x=told.x, told=told))
