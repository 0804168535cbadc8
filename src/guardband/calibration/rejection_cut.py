"""Weights and a promise given the data: keep calibration rows by chance, then calibrate as without weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.kept_promise import of_kept_rows
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.calibration.counted import Counted
from guardband.calibration.cut import Cut, MarginalCut, PacCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.summary import Array
from guardband.calibration.weighted_cut import WeightedCut, checked_weights
from guardband.data.fingerprint import mix
from guardband.words import number

SEEDS = 1 << 64


@dataclass(frozen=True)
class RejectionCut(Cut):
    """Keeps row i with probability w_i / ``max_weight``, and lets ``base`` find the thresholds from those.

    The rows that are kept are independent draws from the other population, as many as there are (Park et al. 2022).
    New rows need no weights.

    Parameters
    ----------
    base : Cut
        The guarantee given the data, of all rows or of each group.
    max_weight : float
        A bound on the weights of all rows that there can be, known beforehand.
    """

    base: Cut
    max_weight: float

    @property
    def word(self) -> str:  # type: ignore[override]
        """What ``guarantee=`` calls it."""
        return self.base.word

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        """The weight, and what the cut of the kept rows uses."""
        return self.base.uses | {"weight"}

    @property
    def uses_of_new(self) -> frozenset[str]:
        """What the cut of the kept rows uses."""
        return self.base.uses_of_new

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return what the rows that are kept settle."""
        weights = checked_weights(context.weight, len(scores))
        refuse_larger(float(weights.max()), self.max_weight)
        rows = kept_rows(scores, weights, self.max_weight)
        found = self.base.calibrate(scores[rows], self._known(context, rows), levels, chosen_after)
        return self._concluded(found, len(rows), len(scores))

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same from the scores of rows that were kept, which need not meet."""
        found = self.base.calibrate_counted(counted, levels, chosen_after)
        return self._concluded(found, counted.n, counted.drawn_from)

    def _concluded(self, found: Calibration, kept: int, n: int) -> Calibration:
        remarks = tuple(replace(own, why=partial(_kept, kept, n, own)) for own in found.remarks)
        return replace(found, promise=of_kept_rows(found.promise, n, self.max_weight), remarks=remarks)

    def completed(self, arrays: dict[str, Any], scores: Array, known: Context, new: Context, levels: Levels) -> None:
        """Let the cut of the kept rows add what new rows need."""
        rows = kept_rows(scores, known.weight, self.max_weight)
        self.base.completed(arrays, scores[rows], self._known(known, rows), new, levels)

    def prepared(self, arrays: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return what the cut of the kept rows needs for blocks of new rows."""
        return self.base.prepared(arrays, context)

    def thresholds(self, arrays: dict[str, Any], context: Context, xp: Any = np) -> Any:
        """Return the thresholds that the kept rows settled."""
        return self.base.thresholds(arrays, context, xp)

    def _known(self, context: Context, rows: NDArray[np.intp]) -> Context:
        return replace(context, weight=None).rows(rows)


def _kept(kept: int, n: int, remark: Remark) -> str:
    return f"The weights left {kept:,} of {n:,} calibration rows. {remark.in_words()}"


def weighted(cut: Cut, max_weight: float | None) -> Cut:
    """Return the cut for rows that count by their weights; raise if there is none."""
    base = cut.base if isinstance(cut, GroupedCut) else cut
    if isinstance(base, PacCut):
        if max_weight is None:
            raise ValueError(
                'weights with guarantee="pac" need max_weight, a bound on the weight of any row. Pass it, or use '
                'guarantee="marginal".'
            )
        if isinstance(max_weight, bool) or not 0 < max_weight < np.inf:
            raise ValueError(f"max_weight must be a positive number, found {max_weight!r}.")
        return RejectionCut(cut, float(max_weight))
    if type(base) is not MarginalCut:
        raise ValueError(f'weights need guarantee="marginal" or "pac", found {cut!r}.')
    if base is not cut:
        raise ValueError('weights and groups together need guarantee="pac". Ask for it, or remove one of the two.')
    if max_weight is not None:
        raise ValueError('max_weight is for guarantee="pac". Remove it, or ask for guarantee="pac".')
    return WeightedCut()


def refuse_larger(largest: float, max_weight: float) -> None:
    """Raise if a weight is larger than the bound that the user named."""
    if largest > max_weight:
        raise ValueError(
            f"The largest weight is {number(largest)}, and max_weight is {number(max_weight)}. Pass a "
            "max_weight that no row can exceed."
        )


def kept_rows(scores: Array, weights: Array, max_weight: float) -> NDArray[np.intp]:
    """Return which rows are kept, in their order.

    The draws depend on scores and weights through a hash alone: the same for the same rows, others for other rows.
    """
    return kept_in_part(scores, weights, max_weight, seed_of(scores, weights), 0)


def kept_in_part(scores: Array, weights: Array, max_weight: float, seed: int, first: int) -> NDArray[np.intp]:
    """Return which rows of a part of the table are kept; ``first`` is the number of its first row.

    ``seed`` is the sum of ``seed_of`` of all parts. The rows that are kept do not depend on the parts.
    """
    draws = np.random.PCG64(seed % SEEDS)
    draws.advance(first)  # each draw takes one step
    chances = np.asarray(weights, dtype=np.float64) / max_weight
    return np.flatnonzero(np.random.Generator(draws).random(len(scores)) < chances)


def seed_of(scores: Array, weights: Array) -> int:
    """Return a hash of rows, which is the sum of those of their parts, up to a multiple of ``SEEDS``."""
    bits = (np.ascontiguousarray(own, dtype=np.float64).view(np.uint64) for own in (scores, weights))
    prints = np.zeros(len(scores), dtype=np.uint64)
    for own in bits:
        prints = mix(prints, own)
    return int(prints.sum(dtype=np.uint64))
