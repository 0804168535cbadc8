"""Which conformity score gives the shorter intervals: found on the training rows, by copies that did not see them."""

from __future__ import annotations

import numpy as np

from guardband.bands.predicted import Context, Predicted
from guardband.bands.sides import bound_scores
from guardband.calibration.group_widths import Units, same_units
from guardband.learning.training_rows import Array
from guardband.methods.method import Method, Request
from guardband.methods.registry import method_named

AUTO = "auto"
SCORES = ("conf-nn", "cqr", "cqr-r")
"""They take the same network; the first is chosen unless another gains something."""
LEAST_GAIN = 0.005
"""A share of the interval score: on most tables all do equally well, and rounding would choose."""


def sharpest(request: Request, predicted: Predicted, y: Array, to_units: Units = same_units) -> Method:
    """Return the method with the least interval score, given predictions of rows that did not train them.

    Each is calibrated on these rows and judged on them: it finds one number in thousands of rows, which favours none.
    For a risk, which each of them keeps, the least mean width in the user's units counts.
    """
    scores = {name: interval_score_of(method_named(name), request, predicted, y, to_units) for name in SCORES}
    best = min(SCORES, key=lambda name: scores[name])
    return method_named(best if scores[best] < (1 - LEAST_GAIN) * scores[SCORES[0]] else SCORES[0])


def interval_score_of(method: Method, request: Request, predicted: Predicted, y: Array, to_units: Units) -> float:
    """Return the interval score, averaged over levels; infinite for the whole line."""
    rule, context = method.rule(request).in_units(to_units), Context()
    found = rule.calibrate(rule.summarise(predicted, y, context))
    lower, point, upper = rule.ends(predicted, context, found.arrays)
    if request.risk is not None:
        lower, _, upper = to_units(lower, point[:, None], upper)
        return float((upper - lower).mean())
    if request.is_sided:
        return float(np.sum(bound_scores(y[:, None], lower, upper, found.promise.tails()), axis=0).mean())
    missed = np.maximum(lower - y[:, None], 0) + np.maximum(y[:, None] - upper, 0)
    return float(((upper - lower) + 2 / np.array(request.levels.alphas) * missed).mean())
