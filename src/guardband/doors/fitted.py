"""What a fitted ``IntervalRegressor`` knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.rule import Rule
from guardband.data.fingerprint import Prints
from guardband.data.reference import Reference
from guardband.data.table import Table
from guardband.learning.learned import Learned


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that ``fit`` and ``calibrate`` found: ``model.fitted_``.

    The prints are fingerprints of the rows that trained, of those that ``fit`` held out, and of those that calibrated
    last. ``reference`` summarises the training rows, and ``params`` are the arguments that the model was fitted with.
    """

    learned: Learned
    rule: Rule
    calibrated: Calibrated | None
    training_prints: Prints
    held_out_prints: Prints
    calibration_prints: Prints
    reference: Reference
    params: Mapping[str, Any]

    def predict(self, table: Table) -> Predicted:
        """Return what the networks predict in work units, as the rule is to see it."""
        return self.learned.predict(table, self.rule.each_copy)
