"""A few rows with their intervals, to look at after a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.cli.console import cell, table
from guardband.words import level_name, number

if TYPE_CHECKING:
    from guardband.cli.labelled import Labelled
    from guardband.doors.table import IntervalRegressor

SAMPLE = 5
SHOWN_FEATURES = 3


def sample_of(model: IntervalRegressor, rows: Labelled) -> list[dict[str, Any]]:
    """Return a few rows from all over a table: inputs, point, intervals by level, and outcome."""
    few = rows.take(np.linspace(0, rows.n - 1, min(SAMPLE, rows.n)).round().astype(np.intp))
    bands = model.intervals_of(model.read_rows(few.X))
    names, outcomes = list(few.features[:SHOWN_FEATURES]), few.y.to_list()
    lower, upper = bands.per_level()
    level = bands.confidence_level
    levels = level if isinstance(level, tuple) else (level,)
    return [
        {
            "row": {name: cell(few.table[name][i].as_py()) for name in names},
            "point": float(bands.point[i]),
            "intervals": {f"{own:g}": [float(lower[i, j]), float(upper[i, j])] for j, own in enumerate(levels)},
            "outcome": outcomes[i],
        }
        for i in range(few.n)
    ]


def sample_table(sample: list[dict[str, Any]], target: str, what: str) -> Any:
    """Return the rows as a table to print."""
    features, levels = list(sample[0]["row"]), list(sample[0]["intervals"])
    columns = [*features, "point", *(f"{level_name(float(level))} interval" for level in levels), target]
    shown = table(*columns, title=f"{len(sample)} {what}", right=range(len(features), len(columns)))
    for row in sample:
        ends = [f"{number(low)} to {number(high)}" for low, high in row["intervals"].values()]
        shown.add_row(*row["row"].values(), number(row["point"]), *ends, number(row["outcome"]))
    return shown
