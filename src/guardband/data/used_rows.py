"""What a calibrated model keeps of the rows it was made from: to recognise them, and to compare others with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guardband.data.entities import Labels
from guardband.data.fingerprint import Prints
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
