"""A few rows with their intervals, to look at after a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.cli.console import cell, table
from guardband.cli.numbers import digits_for, short_cell, with_digits
from guardband.words import level_name

if TYPE_CHECKING:
    from rich.table import Table

    from guardband.cli.labelled import Labelled
    from guardband.cli.model_columns import Model

SAMPLE = 5
BETWEEN = 3
"""Blanks between two columns of a table."""


@dataclass(frozen=True)
class SampleRow:
    """One row: some inputs, the prediction, an interval for each level, and the true value."""

    inputs: dict[str, Any]
    point: float
    intervals: dict[float, tuple[float, float]]
    true_value: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "row": {name: cell(value) for name, value in self.inputs.items()},
            "point": self.point,
            "intervals": {f"{level:g}": list(ends) for level, ends in self.intervals.items()},
            "outcome": self.true_value,
        }


def sample_of(model: Model, rows: Labelled, names: Sequence[str]) -> list[SampleRow]:
    """Return a few rows from all over a table, with these of their columns."""
    few = rows.take(np.linspace(0, rows.n - 1, min(SAMPLE, rows.n)).round().astype(np.intp))
    bands = model.intervals_of(model.read_rows(few.X))
    true_values = few.y.to_list()
    lower, upper = bands.per_level()
    levels = bands.levels
    return [
        SampleRow(
            {name: few.table[name][i].as_py() for name in names},
            float(bands.point[i]),
            {own: (float(lower[i, j]), float(upper[i, j])) for j, own in enumerate(levels)},
            true_values[i],
        )
        for i in range(few.n)
    ]


def sample_table(sample: list[SampleRow], width: int) -> Table:
    """Return the rows as a table to print, with as many input columns as the width has room for."""
    levels = list(sample[0].intervals)
    ends = [
        f"{word} {level_name(level)}" if len(levels) > 1 else word for level in levels for word in ("lower", "upper")
    ]
    digits = _digits_of(sample)
    numbers = [["prediction", *(with_digits(row.point, digits) for row in sample)]]
    flat = [[end for pair in row.intervals.values() for end in pair] for row in sample]
    numbers += [[name, *(with_digits(own[j], digits) for own in flat)] for j, name in enumerate(ends)]
    numbers.append(["true value", *(with_digits(row.true_value, digits) for row in sample)])
    inputs = [[short_cell(name), *(short_cell(row.inputs[name]) for row in sample)] for name in sample[0].inputs]
    while inputs and _width(inputs + numbers) > width:
        inputs.pop()
    columns = inputs + numbers
    shown = table(*(column[0] for column in columns), right=range(len(inputs), len(columns)))
    for i in range(len(sample)):
        shown.add_row(*(column[i + 1] for column in columns))
    return shown


def _digits_of(sample: list[SampleRow]) -> int:
    """Return how many digits after the point the rows need: none if all their numbers are whole."""
    intervals = [own for row in sample for own in row.intervals.values()]
    values = [value for own in intervals for value in own]
    values += [value for row in sample for value in (row.point, row.true_value)]
    if all(float(value).is_integer() for value in values if math.isfinite(value)):
        return 0
    return digits_for([high - low for low, high in intervals])


def _width(columns: list[list[str]]) -> int:
    return sum(max(map(len, column)) + BETWEEN for column in columns)
