"""One target of several: its calibrated rule, and the boxes of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from guardband.bands.boxes import Boxes
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.joint import JointConformal
from guardband.calibration.rule import Ends
from guardband.calibration.several import SeveralRule


def target_calibrated(calibrated: Calibrated, j: int) -> Calibrated:
    """Return the calibrated rule of one target, with what is promised of it alone."""
    rule, unit = calibrated.rule, calibrated.unit
    assert isinstance(rule, SeveralRule)
    found = rule.target_found(j, calibrated.summary)
    if unit is not None:
        found = replace(found, promise=found.promise.of_entities(unit.entity, unit.n_rows))
    note = f"the target {rule.targets[j]!r} is one of {len(rule.targets)} with one promise for all of them together."
    notes = (*calibrated.notes, note) if isinstance(rule, JointConformal) else calibrated.notes
    return replace(
        calibrated, rule=rule.of_target(j), summary=rule.target_summary(j, calibrated.summary), found=found, notes=notes
    )


def boxes_of(calibrated: Calibrated, ends: Ends, index: Any = None, input_names: tuple[str, ...] = ()) -> Boxes:
    """Return ends ``(n, q, L)`` as ``Boxes``, ``(n, q)`` where there is one level."""
    (lower, point, upper), levels, names = ends, calibrated.rule.levels, calibrated.rule.target_names
    if levels.scalar:
        lower, upper = lower[..., 0], upper[..., 0]
    each = tuple(target_calibrated(calibrated, j).certificate for j in range(len(names)))
    return Boxes(lower, point, upper, levels.confidence_level, names, calibrated.certificate, each, index, input_names)
