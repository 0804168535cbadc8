"""What a calibrated model keeps of the rows it was made from: to recognise them, and to compare others with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guardband.data.entities import Labels
from guardband.data.fingerprint import Prints
from guardband.data.labelled_rows import LabelledRows
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule


@dataclass(frozen=True, eq=False, kw_only=True)
class UsedRows:
    """Fingerprints of training and calibration rows, what they belong to, and a summary of their columns.

    The entities are None if rows stand alone; ``repeat_rule`` says which rows are the same if that was found in the
    table. ``doubts`` says why rows may depend on each other, in sentences: an audit then cannot judge the promise.
    """

    training_prints: Prints
    calibration_prints: Prints
    reference: Reference
    training_entities: Labels | None = None
    calibration_entities: Labels | None = None
    repeat_rule: RepeatRule | None = None
    doubts: tuple[str, ...] = ()

    @property
    def used_prints(self) -> Prints:
        """Fingerprints of all rows that the model was made from, each row once."""
        return np.concatenate([self.training_prints, self.calibration_prints])

    @property
    def has_labels(self) -> bool:
        """Whether the user said what rows belong to; otherwise it was found, if anything was."""
        known = self.training_entities is not None or self.calibration_entities is not None
        return known and self.repeat_rule is None


def used_rows(rows: LabelledRows, training_prints: Prints) -> UsedRows:
    """Return what is kept of calibration rows, and of the training rows that are known by their fingerprints.

    Of rows that belong together, one of each entity is summarised.
    """
    alone, entities = rows.one_of_each_entity(), rows.entities
    return UsedRows(
        training_prints=training_prints,
        calibration_prints=rows.prints,
        reference=Reference.learn(rows.table.take(alone), rows.y[alone]),
        calibration_entities=None if entities is None else entities.every,
        repeat_rule=None if entities is None else entities.rule,
    )
