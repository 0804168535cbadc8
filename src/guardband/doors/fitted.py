"""What a fitted ``IntervalRegressor`` knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated, OnInsufficient
from guardband.calibration.rule import Rule
from guardband.data.context import context_of
from guardband.data.fingerprint import Prints, count_overlap
from guardband.data.labelled_rows import LabelledRows
from guardband.data.table import Table
from guardband.data.unlike import Seen
from guardband.data.used_rows import UsedRows
from guardband.learning.learned import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(UsedRows):
    """All that ``fit`` and ``calibrate`` found: ``model.fitted_``.

    ``held_out_prints`` are fingerprints of the rows that ``fit`` held out, and ``params`` the arguments that the model
    was fitted with. ``seen`` is what the training rows held, None for a model of a file that does not say.
    """

    learned: Learned
    rule: Rule
    calibrated: Calibrated | None
    held_out_prints: Prints
    params: Mapping[str, Any]
    seen: Seen | None = None

    def predict(self, table: Table) -> Predicted:
        """Return what the networks predict in work units, as the rule is to see it."""
        return self.learned.predict(table, self.rule.each_copy)

    def calibrated_on(self, rows: LabelledRows, on_insufficient: OnInsufficient, *notes: str) -> Fitted:
        """Return the same, calibrated on these rows, with what is to be said of them."""
        if self.learned.choices:
            notes += (f"Chosen on the training rows alone: {self.learned.choices}.",)
        shared = count_overlap(rows.prints, self.training_prints)
        if shared:
            notes += (
                f"{shared} of {rows.n} calibration rows have an equal row among the training rows. Chance twins "
                "do no harm; rows that were repeated before the split void the promise.",
            )
        target = self.learned.target.decided_again(rows.y)
        notes += (*target.notes, *self.doubts)
        block = (self.predict(rows.table), target.to_work(rows.y), context_of(rows.table))
        if rows.entities is None:
            calibrated = Calibrated.from_blocks(self.rule, [block], notes, on_insufficient)
        else:
            calibrated = Calibrated.from_entities(self.rule, block, rows.entities, notes, on_insufficient)
        return replace(
            self,
            learned=replace(self.learned, target=target),
            calibrated=calibrated,
            calibration_prints=rows.prints,
            calibration_entities=None if rows.entities is None else rows.entities.every,
        )
