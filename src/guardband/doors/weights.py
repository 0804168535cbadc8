"""Weights of rows, for every way in: as the user brings them, by a function of rows, or by a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Context
from guardband.calibration.rule import Rule
from guardband.calibration.weighted_cut import new_weights, weights_as_numbers
from guardband.data.entities import Entities
from guardband.data.mixed_rows import Sources, mix_rows
from guardband.data.table import Table, as_array, column_named, take_columns
from guardband.learning.shift import EstimatedWeights

Array = NDArray[np.float64]
Weights = Any
"""One number for each row, or a function of rows that returns them."""


@dataclass(frozen=True, eq=False)
class Weighting:
    """Where the weights of rows come from.

    A ``function`` of rows as the user gives them, a ``column`` of a table, or an ``estimate``; None of these if the
    user brings numbers for each row. ``max_weight`` is a bound on all weights, for a promise given the data.
    """

    function: Callable[[Any], Any] | None = None
    max_weight: float | None = None
    column: str | None = None
    estimate: EstimatedWeights | None = None

    @classmethod
    def of(cls, weights: Weights, max_weight: float | None) -> Weighting | None:
        """Return what weights the user asks for; None if there are none."""
        if weights is None:
            if max_weight is not None:
                raise ValueError("max_weight is a bound on weights, and there are none. Pass weights= too.")
            return None
        column = weights if isinstance(weights, str) else None
        return cls(weights if callable(weights) else None, max_weight, column)

    def rule(self, rule: Rule) -> Rule:
        """Return the rule for rows that count by their weights."""
        return rule.for_weights(self.max_weight) if self.estimate is None else self.estimate.rule(rule)

    def of_calibration(self, X: Any, n: int, weights: Weights) -> Array:
        """Return the weights of n calibration rows; raise unless each has one."""
        return new_weights(self._values(X, weights), n)

    def of_rows(self, X: Any, n: int) -> Array:
        """Return what a column or a function says of n rows, in double precision, whether it can be weights or not."""
        return weights_as_numbers(self._values(X, None), n)

    def of_new(self, X: Any, n: int, weights: Weights, rule: Rule, table: Table | None = None) -> Array | None:
        """Return the weights of n new rows, which a model reads as ``table``; None if the rule needs none."""
        if "weight" not in rule.uses_of_new:
            if weights is not None:
                raise ValueError('New rows need no weights with guarantee="pac". Remove weights=...')
            return None
        if self.estimate is not None and table is not None:
            if weights is not None:
                raise ValueError("for_target estimated the weights of this model. Remove weights=...")
            return self.estimate.of(table)
        if weights is None and self.function is None and self.column is None:
            raise ValueError(
                "The intervals of this model depend on the weight of each row, and these rows have none. Pass "
                "weights=, as you did to calibrate."
            )
        return new_weights(self._values(X, weights), n)

    def _values(self, X: Any, weights: Weights) -> Any:
        if weights is not None and not callable(weights) and not isinstance(weights, str):
            return as_array(weights)
        if self.column is not None:
            return as_array(column_named(X, self.column, "weights"))
        if self.function is None:
            raise ValueError("Only a function of rows can weigh these rows. Calibrate with weights as a function.")
        if X is None:
            raise ValueError("A function of rows needs rows, and there are only predictions. Pass weights as numbers.")
        return as_array(self.function(X))


def weighed(table: Table, X: Any, weights: Weights, weighting: Weighting | None, rule: Rule) -> Table:
    """Return new rows with their weights, if the rule needs them; ``X`` is what the user gave."""
    if weighting is None:
        refuse_idle(weights)
        return table
    own = weighting.of_new(X, table.n_rows, weights, rule, table)
    return replace(table, context=with_weights(table.context, own))


def mixed_weights(
    context: Callable[[Sources], Context], weighting: Weighting | None, table: Table, X: Any
) -> Callable[[Sources], Context]:
    """Return what is known of rows mixed from a table, with the weights that a function or an estimate gives them."""
    if table.context.weight is None or weighting is None:
        return context
    estimate = weighting.estimate
    if estimate is not None:
        cells = estimate.encoder.rows(table)

        def estimated(sources: Sources) -> Context:
            mixed = estimate.encoder.encode_rows(np.take_along_axis(cells, sources, axis=0), np)
            return with_weights(context(sources), estimate.ratio.weights(mixed))

        return estimated
    rows, own = take_columns(X, table.names), weighting
    return lambda sources: with_weights(
        context(sources), new_weights(own._values(mix_rows(rows, sources), None), len(sources))
    )


def weighted(rule: Rule, weighting: Weighting | None) -> Rule:
    """Return the rule for rows that count by their weights, if they have any."""
    return rule if weighting is None else weighting.rule(rule)


def with_weights(context: Context, weights: Array | None) -> Context:
    """Return what is known of rows together with their weights, if there are any."""
    return context if weights is None else replace(context, weight=weights)


def refuse_entities(entities: Entities | None, weighting: Weighting | None) -> None:
    """Raise if rows have weights and belong together, unless they are repeated rows, of which one counts."""
    if weighting is not None and entities is not None and entities.rule is None:
        raise ValueError(
            "Weights are for rows that stand alone, and these belong together. Remove weights, or entities and "
            "split_by."
        )


def refuse_idle(weights: Weights) -> None:
    """Raise if new rows have weights, and the model was calibrated without."""
    if weights is not None:
        raise ValueError("This model was calibrated without weights. Remove weights=..., or calibrate it with weights.")
