"""The training rows as networks see them."""

from __future__ import annotations

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
    """Rows as networks see them, ``x (n, d)`` and ``y (n,)``, and the seed of what is random in training."""

    encoder: Encoder
    target: Target
    x: NDArray[np.float32]
    y: Array
    weight: Array | None
    seed: int

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
    ) -> TrainingRows:
        """Return the rows of a table: how to encode its columns and to standardise the target is learnt here.

        ``rows`` are their positions in the table that the user gave, for messages.
        """
        encoder = (
            PlainNumbers() if architecture.builder is not None else TableEncoder.learn(table, architecture.tabular)
        )
        target = target.learn(y, rows)
        return cls(encoder, target, encoder.encode(table), target.to_learn(y), weight, seed)
