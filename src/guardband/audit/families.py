"""The ways in which an audit groups rows."""

from __future__ import annotations

import numpy as np

from guardband.audit.evidence import Evidence
from guardband.audit.periods import unit_for
from guardband.audit.strata import (
    Bins,
    Family,
    Stratum,
    bins_of_column,
    bins_of_labels,
    bins_of_numbers,
    judge,
    stratum,
    without_noise,
)
from guardband.bands.law import Law
from guardband.data.table import Column, categories_from, numbers_from
from guardband.metrics import worst_slab_counts
from guardband.words import as_moment, as_written

MOST_ROWS_SEARCHED = 10_000
FEWEST_ROWS_SEARCHED = 40
SHARE_OF_REGION = 0.2
BY_WIDTH = {
    "both": "By the width of the interval",
    "lower": "By the distance of the lower bound from the prediction",
    "upper": "By the distance of the upper bound from the prediction",
}


def families_of(evidence: Evidence, law: Law, significance: float) -> tuple[Family, ...]:
    """Return coverage by group and over time where these are given, by width and size if they vary, and by each column.

    Each family is tested at ``significance`` as a whole; the columns are one family.
    """
    headline = evidence.headline
    covered = evidence.covered[:, 0]
    ways: list[tuple[str, str, Bins]] = []
    if evidence.group is not None:
        labels = categories_from(_as_cells(evidence.group))
        ways.append(("group", f"By {evidence.group.name}", bins_of_labels(labels, 30)))
    if evidence.time is not None:
        ways.append(("time", *_in_time(evidence.time)))
    widths = without_noise(evidence.reach[:, 0], headline.lower if evidence.side == "lower" else headline.upper)
    for key, title, values in (
        ("width", BY_WIDTH[evidence.side], widths),
        ("size", "By the size of the prediction", without_noise(headline.point)),
    ):
        bins = bins_of_numbers(values, 10)
        if len(bins.labels) > 1:
            ways.append((key, title, bins))
    families = [
        Family(key, title, judge(bins, covered, law, significance, len(bins.labels)), len(bins.labels), bins.stratum_of)
        for key, title, bins in ways
    ]
    by_column = [
        bins_of_column(column, as_moment if column.name in evidence.moments else None)
        for column in evidence.table.columns
    ]
    looked_at = sum(len(bins.labels) for bins in by_column)
    for j, (column, bins) in enumerate(zip(evidence.table.columns, by_column, strict=True)):
        strata = judge(bins, covered, law, significance, looked_at)
        families.append(Family(f"column-{j}", column.name, strata, looked_at, bins.stratum_of))
    return tuple(families)


def _as_cells(column: Column) -> Column:
    """Return a column whose numbers are cells, so that each is a label of its own."""
    if column.has_cells:
        return column
    cells = np.array([None if np.isnan(value) else float(value) for value in column.values], dtype=object)
    return Column(column.name, cells)


def _in_time(column: Column) -> tuple[str, Bins]:
    """Return a title, and the rows by month or another unit of time, or by ranges of equal count if it has none."""
    kind, title = column.kind, f"Over {column.name}"
    if kind == "date":
        days = numbers_from(column, kind)
        unit = unit_for(days)
        return (title, bins_of_numbers(days, 10, as_moment)) if unit is None else unit.periods(days, column.name)
    if kind != "category":
        return title, bins_of_numbers(numbers_from(column, kind), 10, as_written)
    cells = categories_from(column)
    order = sorted({cell for cell in cells if cell is not None})
    place = {cell: float(i) for i, cell in enumerate(order)}
    values = np.array([np.nan if cell is None else place[cell] for cell in cells])
    return title, bins_of_numbers(values, 10, lambda i: order[int(i)])


def searched_region(evidence: Evidence, law: Law, significance: float) -> Stratum | None:
    """Return the region of the encoded inputs that looked worst on a quarter of the rows, counted on the others."""
    rows = np.sort(np.random.default_rng(0).permutation(evidence.n)[:MOST_ROWS_SEARCHED])
    x = evidence.inputs[rows].astype(float)
    if evidence.n < FEWEST_ROWS_SEARCHED or not np.ptp(x, axis=0).any():
        return None
    own = evidence.headline
    bands = type(own)(own.lower[rows], own.point[rows], own.upper[rows], own.confidence_level)
    ((covered, n),) = worst_slab_counts(evidence.y[rows], bands, x, mass=SHARE_OF_REGION)
    return stratum("the region that was searched out", int(n), int(covered), law, significance) if n else None
