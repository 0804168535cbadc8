"""The training rows as networks see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.data.encoder import Encoder, PlainNumbers, TableEncoder
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.learning.architecture import Architecture

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRows:
    """Rows as networks see them, ``x (n, d)`` and ``y (n,)``, and the seed of what is random in training.

    ``entity``, ``(n,)``, says which rows belong together.
    """

    encoder: Encoder
    target: Target
    x: NDArray[np.float32]
    y: Array
    weight: Array | None
    seed: int
    entity: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        y: Array,
        weight: Array | None,
        seed: int,
        architecture: Architecture,
        target: Target,
        entity: NDArray[np.intp] | None = None,
        keys: Sequence[str] = (),
    ) -> TrainingRows:
        """Return the rows of a table: how to encode its columns and to standardise the target is learnt here.

        ``keys`` name columns that say what rows belong to: of these, text is left out.
        """
        encoder: Encoder = PlainNumbers()
        if architecture.builder is None:
            encoder = TableEncoder.learn(table, architecture.tabular, keys)
        target = target.learn(y)
        apart = None if entity is None or len(np.unique(entity)) < 2 else entity
        return cls(encoder, target, encoder.encode(table), target.to_learn(y), weight, seed, apart)
