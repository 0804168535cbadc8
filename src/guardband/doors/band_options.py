"""What the arguments of a ``BandCalibrator`` ask for, checked before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guardband.bands.predicted import Predicted
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.cross import FEWEST_FOLDS, CalibrationKind, check_kind, crossed, refusal
from guardband.calibration.rule import Rule
from guardband.data.grouping import Grouping
from guardband.doors.bounds_in_order import SWAP, Crossing, check_crossing_word, in_order
from guardband.doors.groups import GroupOptions, grouped, request_of
from guardband.doors.weights import Weighting, weighted
from guardband.learning.several import Targets, check_targets, several_rule
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named


@dataclass(frozen=True)
class BandOptions:
    """How predictions calibrate: by which method, in which order they come, by groups, and for how many targets.

    ``rule`` is for one target, without groups or weights.
    """

    method: Method
    request: Request
    rule: Rule
    crossing: Crossing
    calibration: CalibrationKind
    groups: GroupOptions
    targets: Targets | None
    scales: tuple[float, ...] | None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> BandOptions:
        """Return what arguments ask for; contradictions are refused."""
        crossing, calibration, targets = (arguments[name] for name in ("crossing", "calibration", "targets"))
        check_crossing_word(crossing)
        request, method = request_of(arguments), method_named(arguments["method"])
        method.check(request)
        rule = method.rule(request)
        check_kind(calibration)
        if calibration != "split":
            crossed(rule, calibration, FEWEST_FOLDS)  # refuses what cannot be
            if targets is not None:
                raise ValueError(refusal(calibration, "several targets"))
        check_targets(targets, request, method)
        scales = arguments["scales"]
        if scales is not None and targets != "joint":
            raise ValueError('scales are for targets="joint". Remove scales, or set targets="joint".')
        scales = None if scales is None else tuple(map(float, scales))
        return cls(method, request, rule, crossing, calibration, GroupOptions.of(arguments), targets, scales)

    def rule_for(self, targets: tuple[str, ...], grouping: Grouping | None, weighting: Weighting | None) -> Rule:
        """Return the rule for targets of these names if there are several, and for groups and weights if there are."""
        one = self.rule
        if self.targets is not None:
            one = several_rule(self.method, self.request, self.targets, targets, self.scales or ())
        return weighted(grouped(one, grouping), weighting)

    def ordered(self, predicted: Predicted, first_row: int = 0, hint: str = SWAP) -> Predicted:
        """Return the candidates in the order that the rule expects; bounds that cross are refused or sorted."""
        if isinstance(predicted, PredictedSeveral):
            return PredictedSeveral(tuple(self.ordered(own, first_row, hint) for own in predicted.targets))
        order = self.method.order(self.request, predicted.candidates if self.calibration == "split" else 1)
        if self.calibration == "split" and order != list(range(len(order))):
            predicted = predicted.map(lambda part: part[:, order])
        return in_order(predicted, self.crossing, first_row, hint)
