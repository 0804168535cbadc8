"""The largest contributions of a row, and the sum of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.explain.explanation import Explanation, Of
from guardband.words import visible

LONGEST = 40


@dataclass(frozen=True)
class Bar:
    """What one column adds, or what several add together; ``error`` is a standard error, None if it is not known."""

    label: str
    value: float
    error: float | None


def bars_of(explanation: Explanation, row: int, of: Of, most: int) -> list[Bar]:
    """Return the contributions of a row, largest first, at most so many, and last the sum of the others."""
    values, errors = (side[row] for side in explanation.contributions(of))
    order = np.argsort(-np.abs(values), kind="stable")
    bars = [Bar(label_of(explanation, row, int(j)), float(values[j]), float(errors[j])) for j in order[:most]]
    rest = order[most:]
    return [*bars, Bar(others(rest), float(values[rest].sum()), None)] if len(rest) else bars


def label_of(explanation: Explanation, row: int, column: int) -> str:
    """Return a column with its value in a row, such as ``area = 240``."""
    return f"{short(explanation.columns[column])} = {short(explanation.cells[row][column])}"


def others(columns: NDArray[np.intp]) -> str:
    """Return so many other columns in words."""
    return "1 other column" if len(columns) == 1 else f"{len(columns):,} other columns"


def short(text: str) -> str:
    """Return a text that is no longer than a label has room for, and does nothing on a terminal."""
    text = visible(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
