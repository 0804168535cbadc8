"""Rows that calibrate a rule, whether they stand alone or some belong together."""

from __future__ import annotations

from guardband.calibration.calibrated import Block, Calibrated, OnInsufficient
from guardband.calibration.group_widths import Units, same_units
from guardband.calibration.rule import Rule
from guardband.data.entities import Entities


def calibrated_rows(
    rule: Rule,
    block: Block,
    entities: Entities | None,
    notes: tuple[str, ...] = (),
    on_insufficient: OnInsufficient = "inf",
    to_units: Units = same_units,
) -> Calibrated:
    """Return what a rule finds on rows; ``entities`` say which of them belong together, None if all stand alone."""
    if entities is None:
        return Calibrated.from_blocks(rule, [block], notes, on_insufficient, to_units=to_units)
    return Calibrated.from_entities(rule, block, entities, notes, on_insufficient, to_units)
