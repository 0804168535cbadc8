"""A calibrated model for another population: weights are estimated from rows of it whose true values nobody knows."""

from __future__ import annotations

from dataclasses import replace

from guardband.bands.predicted import Context
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.group_widths import Units, same_units
from guardband.calibration.rule import Rule
from guardband.data.table import Table
from guardband.doors.calibrated_rows import calibrated_rows
from guardband.doors.weights import Weighting, refuse_entities
from guardband.learning.shift import KnownRows, estimate_weights

ROWS_AGAIN = (
    "for_target needs rows that a file does not hold. Call calibrate(X, y) with the calibration rows again, then "
    "for_target(X_target, source=X_train) with the training rows."
)


def for_target(
    known: KnownRows, rule: Rule, target: Table, before: Calibrated, to_units: Units = same_units
) -> tuple[Calibrated, Weighting]:
    """Return the calibration for the population of some rows, and where weights come from.

    ``rule`` is the one without weights, and ``before`` the calibration that this one replaces.
    """
    estimate, weights = estimate_weights(known, rule, target)
    weighting = Weighting(estimate=estimate)
    refuse_entities(known.entities, weighting)
    own, block = estimate.rule(rule), (known.predicted, known.y, Context(weight=weights))
    calibrated = calibrated_rows(own, block, known.entities, before.notes, before.on_insufficient, to_units)
    return replace(calibrated, in_time=before.in_time), weighting


def with_source(known: KnownRows | None, source: Table | None) -> KnownRows:
    """Return what is known of a model's rows, with training rows that the user brings; raise if some are lacking."""
    if known is not None and source is not None:
        known = replace(known, source=known.encoder.encode(source))
    if known is None or known.source is None:
        raise ValueError(ROWS_AGAIN)
    return known
