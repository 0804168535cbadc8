"""Weights that were estimated: how rows to predict differ from the training rows, and what that leaves of a promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Predicted
from guardband.bands.weighted_promise import EstimatedPromise, WeightedPromise
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rule import Rule
from guardband.calibration.weighted_cut import WeightedCut, effective_rows
from guardband.data.encoder import Encoder, TableEncoder, encoder_from_dict
from guardband.data.entities import Entities
from guardband.data.row_numbers import known_as
from guardband.data.table import Table
from guardband.data.unlike import Seen
from guardband.exceptions import InsufficientCalibrationError, UnlikeRowsWarning, warn
from guardband.learning.density_ratio import FEWEST, MOST, DensityRatio, some_rows
from guardband.words import level_name, rows_named

Array = NDArray[np.float64]
Matrix = NDArray[np.float32]

BEYOND = 2.0
"""A row is unlike the calibration rows if its weight is so many times the largest of theirs."""
MOST_UNLIKE = 0.5
"""If more of the rows to predict are, no weight makes up for it."""


@dataclass(frozen=True)
class EstimatedCut(WeightedCut):
    """The cut by weights that were estimated: it says so.

    Parameters
    ----------
    n_training : int
        How many training rows the weights were learnt from.
    n_target : int
        How many rows to predict they were learnt from.
    largest_weight : float
        No weight is larger.
    unlike : int
        How many of the rows to predict are unlike anything that was calibrated.
    """

    n_training: int
    n_target: int
    largest_weight: float
    unlike: int

    def promised(self, promise: WeightedPromise, weights: Array) -> EstimatedPromise:
        """Return the promise with all that is not exact about it."""
        own = {each.name: getattr(promise, each.name) for each in fields(promise)}
        mine = {each.name: getattr(self, each.name) for each in fields(self)}
        return EstimatedPromise(**own, **mine, clipped=int((weights >= self.largest_weight).sum()))


@dataclass(frozen=True, eq=False)
class EstimatedWeights:
    """The weights of rows by a classifier, from columns as ``encoder`` writes them."""

    encoder: Encoder
    ratio: DensityRatio
    cut: EstimatedCut

    def rule(self, rule: Rule) -> Rule:
        """Return the rule for rows that count by these weights."""
        refuse_other_promises(rule)
        assert isinstance(rule, Conformal)
        return replace(rule, cut=self.cut)

    def of(self, table: Table) -> Array:
        """Return the weights of a table's rows."""
        return self.ratio.weights(self.encoder.encode(table))

    def to_dict(self) -> dict[str, Any]:
        """Return all but the arrays, for JSON."""
        return {"encoder": self.encoder.to_dict()} | {own.name: getattr(self.cut, own.name) for own in fields(self.cut)}

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays, for a file."""
        return self.ratio.to_arrays()

    @classmethod
    def restored(cls, entries: Mapping[str, Any], arrays: Mapping[str, Array], columns: int) -> EstimatedWeights:
        """Return what ``to_dict`` and ``to_arrays`` described, for tables of so many columns."""
        encoder = encoder_from_dict(entries["encoder"])
        numbers, sizes = _shape(encoder, columns)
        cut = EstimatedCut(**{own.name: entries[own.name] for own in fields(EstimatedCut)})
        if isinstance(encoder, TableEncoder) and len(encoder.codes) != columns:
            raise ValueError("its weights are for other columns")
        ratio = DensityRatio.from_arrays(arrays, numbers, sizes)
        if ratio.largest != cut.largest_weight:
            raise ValueError("its weights are not what its certificate says")
        return cls(encoder, ratio, cut)


@dataclass(frozen=True, eq=False)
class KnownRows:
    """What a model in memory keeps of its rows to be able to serve another population; no file holds it.

    ``source`` are training rows as the encoder writes them, some of many; None for a model from a file. ``inputs`` are
    the calibration rows in the same way, with what the model predicts for them and their targets on the scale of the
    rule.
    """

    encoder: Encoder
    source: Matrix | None
    inputs: Matrix
    predicted: Predicted
    y: Array
    entities: Entities | None
    seen: Seen | None


def kept_source(encoded: Matrix) -> Matrix:
    """Return encoded training rows, some of many."""
    return some_rows(encoded, np.random.default_rng(0), MOST)


def refuse_other_promises(rule: Rule) -> None:
    """Raise unless the promise is on average and about all rows: no other is known for estimated weights."""
    if isinstance(rule, Conformal) and type(rule.cut) is MarginalCut:
        return
    if isinstance(rule, Conformal) and isinstance(rule.cut, GroupedCut):
        raise ValueError("for_target has no promise for each group. Fit the model without groups.")
    if not isinstance(rule, Conformal):
        rule.for_weights()  # which says why it cannot
    raise ValueError(
        'for_target needs guarantee="marginal" and a method such as "conf-nn". With estimated weights no other promise '
        "is known. Fit or calibrate the model with it."
    )


def estimate_weights(known: KnownRows, rule: Rule, target: Table) -> tuple[EstimatedWeights, Array]:
    """Return the weights for the population of some rows, and those of the calibration rows.

    Raise if there is too little that the populations share. Rows that are unlike anything calibrated are warned of.
    """
    refuse_other_promises(rule)
    assert known.source is not None
    inputs = known.encoder.encode(target)
    _, sizes = _shape(known.encoder, len(target.columns))
    for rows, what in ((known.source, "training rows"), (inputs, "rows to predict")):
        if len(rows) < FEWEST:
            raise ValueError(
                f"for_target needs at least {FEWEST} {what} to estimate weights from, found {len(rows)}. Pass more."
            )
    ratio = DensityRatio.learn(known.source, inputs, sizes)
    weights = ratio.weights(known.inputs)
    unlike = _unlike(known, ratio, inputs, target)
    if len(unlike) > MOST_UNLIKE * len(inputs):
        raise ValueError(
            f"{len(unlike):,} of {len(inputs):,} rows to predict are unlike anything that was calibrated. No weights "
            "can make up for that: calibrate on rows like these."
        )
    _refuse_few(effective_rows(weights), len(weights), rule)
    cut = EstimatedCut(len(known.source), min(len(inputs), MOST), ratio.largest, len(unlike))
    if len(unlike):
        these = "This row is" if len(unlike) == 1 else f"These {len(unlike):,} rows are"
        warn(
            f"{these} unlike anything that was calibrated ({rows_named(known_as(unlike))} of {len(inputs):,}). The "
            "promise says little about them. Calibrate on rows like them, or do not rely on their intervals.",
            UnlikeRowsWarning,
        )
    return EstimatedWeights(known.encoder, ratio, cut), weights


def _unlike(known: KnownRows, ratio: DensityRatio, inputs: Matrix, target: Table) -> NDArray[np.intp]:
    """Return the rows to predict that hold what no training row held, or that are far likelier than calibrated ones."""
    limit = ratio.log_ratios(known.inputs).max() + np.log(BEYOND)
    unlike = ratio.log_ratios(inputs) > limit
    if known.seen is not None:
        unlike = unlike | (known.seen.compare(target)[1] != "")
    return np.flatnonzero(unlike)


def _refuse_few(effective: float, n: int, rule: Rule) -> None:
    level = max(rule.levels.values)
    if effective < level / (1 - level):
        raise InsufficientCalibrationError(
            f"With estimated weights the {n:,} calibration rows say only as much as {effective:.1f} rows of equal "
            f"weight. {level_name(float(level))} intervals need at least {float(level / (1 - level)):.0f}. Calibrate "
            "on rows like those you will predict, or choose a lower confidence level."
        )


def _shape(encoder: Encoder, columns: int) -> tuple[int, tuple[int, ...]]:
    """Return how many numbers an encoder writes for such a table, and how many indices each further column has."""
    if not isinstance(encoder, TableEncoder):
        return columns, ()
    return encoder.width - len(encoder.sizes), encoder.sizes
