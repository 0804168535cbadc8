"""An explanation in words."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from guardband.explain.bars import label_of, others
from guardband.explain.explanation import Explanation, Of
from guardband.words import number

Array = NDArray[np.float64]

DIGITS = 3
"""How many digits the largest number of a sentence has; the others are rounded to the same place."""
IN_A_SENTENCE = 3
OPENINGS = {
    "both": "This interval is {} wide",
    "lower": "The lower bound is {} below the prediction",
    "upper": "The upper bound is {} above the prediction",
}


def sentences(explanation: Explanation, row: int, of: Of, most: int) -> str:
    """Return what makes an interval wide, or what moves the prediction; see ``Explanation.in_words``."""
    value, average = explanation.whole(row, of)
    step = _step(value, average)
    opening = OPENINGS[explanation.side] if of == "width" else "The prediction is {}"
    opening = opening.format(_rounded(value, step))
    return " ".join([f"{opening}, {_compared(value, average, step)}.", *_columns(explanation, row, of, most, step)])


def _compared(value: float, average: float, step: float) -> str:
    difference = round((value - average) / step) * step
    if difference == 0:
        return "about the average"
    return f"{number(abs(difference))} {'more' if difference > 0 else 'less'} than average"


def _columns(explanation: Explanation, row: int, of: Of, most: int, step: float) -> list[str]:
    """Return the columns that add, those that take away, and the sum of the others, a sentence each."""
    values, errors = (side[row] for side in explanation.contributions(of))
    order = np.argsort(-np.abs(values), kind="stable")
    seen = [int(j) for j in order if abs(values[j]) >= step / 2]
    if not seen:
        return ["No column changes it much." if np.any(values) else "No column changes it."]
    adds, takes = ([j for j in seen[:most] if sign * values[j] > 0] for sign in (1, -1))
    found = []
    for named, (before, after) in ((adds, ("adds ", "")), (takes, ("takes ", " away"))):
        parts = [
            f"{label_of(explanation, row, j)} {before}{_rounded(abs(values[j]), step)}{after}{_error(errors[j], step)}"
            for j in named
        ]
        found += [f"{', '.join(parts[i : i + IN_A_SENTENCE])}." for i in range(0, len(parts), IN_A_SENTENCE)]
    rest = np.setdiff1d(order, [*adds, *takes])
    total = float(values[rest].sum())
    if len(rest) and abs(total) >= step / 2:
        verb = ("adds" if total > 0 else "takes") if len(rest) == 1 else ("add" if total > 0 else "take")
        found.append(f"The {others(rest)} {verb} {_rounded(abs(total), step)}{'' if total > 0 else ' away'}.")
    return found


def _error(error: float, step: float) -> str:
    return f" (± {_rounded(2 * error, step)})" if 2 * error >= step / 2 else ""


def _step(*values: float) -> float:
    """Return the place to which numbers are rounded that are compared with these."""
    largest = max(map(abs, values))
    return 10.0 ** (math.floor(math.log10(largest)) - DIGITS + 1) if largest > 0 else 1.0


def _rounded(value: float, step: float) -> str:
    return number(round(value / step) * step)
