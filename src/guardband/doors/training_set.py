"""What training rows say before anything is trained on them.

The copy of the table that they are read from is needed for that alone: it is gone before training starts. And what is
done here need not be done after training, when a time limit leaves little time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.data.entities import Entities
from guardband.data.fingerprint import Prints
from guardband.data.labelled_rows import LabelledRows, Rows
from guardband.data.reference import Reference
from guardband.data.several_targets import average_of
from guardband.data.target import Target
from guardband.data.unlike import Seen
from guardband.learning.architecture import Architecture
from guardband.learning.dependence import Suspects
from guardband.learning.training_rows import TrainingRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Training rows as networks see them, and what is kept of them; ``places`` are theirs in the table given to fit.

    ``alone`` are those of them that stand for an entity each, all if rows stand alone, and ``suspects`` says where to
    look for rows that depend on each other, None if the user said what they belong to.
    """

    rows: TrainingRows
    places: Rows
    y: Array
    entities: Entities | None
    prints: Prints
    reference: Reference
    seen: Seen
    alone: Rows
    suspects: Suspects | None

    @classmethod
    def of(
        cls,
        given: LabelledRows,
        places: Rows,
        seed: int,
        architecture: Architecture,
        target: Target,
        keys: Sequence[str],
        may_depend: bool,
    ) -> TrainingSet:
        """Return what these of the rows given to fit say; ``keys`` are columns that name what rows belong to."""
        own = given.take(places)
        weight, together, alone = own.weight, own.entities, own.one_of_each_entity()
        table, y = own.table.take(alone), own.y[alone]
        looked_at = y if y.ndim == 1 else average_of(y)
        # What needs memory of its own comes before the rows as networks see them, which are as large as the table.
        when = None if own.times is None else own.times.values[alone]
        suspects = Suspects.of(table, looked_at, when) if may_depend else None
        reference, seen, prints = Reference.learn(table, y), Seen.learn(own.table, keys), own.prints
        rows = TrainingRows.of(
            own.table,
            own.y,
            None if weight is None else weight / weight.max(),
            seed,
            architecture,
            target,
            places,
            None if together is None else together.number,
            keys,
        )
        return cls(rows, places, own.y, together, prints, reference, seen, alone, suspects)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)
