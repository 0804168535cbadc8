"""Which conformity score gives the shorter intervals: found on D1, by copies on rows that they did not see."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from guardband.calibration.calibrated import Calibrated
from guardband.doors.learning import Array
from guardband.exceptions import InsufficientCalibrationWarning
from guardband.methods.method import Method, Wish
from guardband.methods.registry import METHODS

AUTO = "auto"
SCORES = ("conf-nn", "cqr", "cqr-r")
"""They take the same network; of those that do equally well the first is chosen."""


def sharpest(wish: Wish, bands: Array, y: Array) -> Method:
    """Return the method with the least interval score, given bands ``(K, n, 3)`` of rows that did not train them.

    Each is calibrated on these rows and judged on them: it finds one number in thousands of rows, which favours none.
    """
    wish = replace(wish, on_insufficient="inf")  # D2 may have more rows
    scores = {name: _score(METHODS[name], wish, bands, y) for name in SCORES}
    return METHODS[min(SCORES, key=lambda name: scores[name])]


def _score(method: Method, wish: Wish, bands: Array, y: Array) -> float:
    """Return the interval score, averaged over levels; infinite for the whole line."""
    rule = method.rule(wish)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        calibrated = Calibrated.by(rule, rule.summarise([rule.statistic(bands, y)]))
    lower, _, upper = calibrated.ends(bands)
    missed = np.maximum(lower - y[:, None], 0) + np.maximum(y[:, None] - upper, 0)
    alphas = np.array([float(alpha) for alpha in wish.levels.alphas])
    return float(((upper - lower) + 2 / alphas * missed).mean())
