"""Where outcomes lie within what a network predicts: the placement, with tails by rows that copies did not train on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from guardband.bands.placement import ByQuantiles, ByResidual, ByScale, Placement
from guardband.learning.learned import Learned
from guardband.nn.heads import Gaussian, Head, Median, NestedTriples, Triple
from guardband.nn.reading import QuantileColumns

LEVELS = (0.01, 0.025, *(round(0.05 * i, 2) for i in range(1, 20)), 0.975, 0.99)
"""The quantiles that a network learns for distributions, besides those of its intervals."""
MOST_ROWS = 20_000
"""Training rows that fit the tails: more would say no more."""


def with_levels(head: NestedTriples) -> NestedTriples:
    """Return a head that also learns the quantiles of a distribution: in pairs, so that the median is in the middle."""
    wanted = {round(q, 12) for q in (*LEVELS, *head.quantiles)}
    return replace(head, quantiles=tuple(sorted(wanted | {round(1 - q, 12) for q in wanted})))


def placement_of(heads: tuple[Head, ...]) -> Placement | None:
    """Return the placement for what networks predict, with the tails of a Laplace distribution; None if there is none.

    Several networks are several candidates, among which calibration rows choose: those rows cannot calibrate again.
    """
    if len(heads) != 1:
        return None
    (head,) = heads
    if isinstance(head, QuantileColumns):
        return ByQuantiles.of(head.quantiles)
    if isinstance(head, Triple):
        below, above = head.tails
        return ByQuantiles.of((below, 0.5, 1 - above))
    if isinstance(head, Median):
        return ByResidual()
    return ByScale() if isinstance(head, Gaussian) else None


def learn_placement(learned: Learned, x: NDArray[np.float32], work: NDArray[np.float64]) -> Placement | None:
    """Return the placement with tails of encoded training rows, each by the copy that did not see it, if there is one.

    ``work`` are the targets of these rows in work units.
    """
    plain = placement_of(learned.heads)
    if not isinstance(plain, ByQuantiles) or learned.left_out is None:
        return plain
    some = slice(None, None, -(-len(x) // MOST_ROWS))
    columns, rows = replace(learned, left_out=learned.left_out[some]).columns_left_out(x[some])
    return ByQuantiles.learn(plain.levels, columns, work[some][rows])
