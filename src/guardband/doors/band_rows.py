"""What a calibrated rule knows of its rows, and how it reads others: all that an audit and its page need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.intervals import Intervals
from guardband.bands.predicted import Context, Predicted
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.calibrated import Calibrated
from guardband.data.entities import Entities
from guardband.data.grouping import BINS, Grouping, group_names, named_columns
from guardband.data.labelled_rows import Belonging, LabelledRows
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.data.used_rows import UsedRows, used_rows
from guardband.doors.band_columns import PARTS, BandColumns
from guardband.doors.band_options import BandOptions
from guardband.doors.bounds_in_order import SORT
from guardband.doors.weights import Weighting, refuse_idle, with_weights
from guardband.words import listed

Array = NDArray[np.float64]

DEFAULTS = {
    "guarantee": "marginal",
    "joint": False,
    "side": "both",
    "tails": None,
    "on_insufficient": "inf",
    "crossing": "raise",
    "calibration": "split",
    "small_groups": "inf",
    "missing_groups": False,
    "group_bins": BINS,
}
"""Arguments that say nothing new; those not named here are None by default."""


@dataclass(frozen=True, eq=False)
class GivenRows:
    """The calibration rows of a rule as they were given; ``columns`` is None if they cannot be those of a table.

    What is made of them takes longer than to calibrate, and waits until it is asked for.
    """

    columns: BandColumns | None
    predicted: Predicted
    y: Array
    entities: Entities | None = None
    split_by: Sequence[str] | None = None

    @cached_property
    def used(self) -> UsedRows:
        """Fingerprints and a summary of the rows."""
        assert self.columns is not None
        table = self.columns.table(self.columns.matrix(self.predicted))
        rows = LabelledRows(None, table, self.y, entities=self.entities)
        return used_rows(rows, rows.prints[:0])


@dataclass(frozen=True, eq=False)
class LoadedRows:
    """The same of a rule from a file, which does not hold the rows themselves."""

    columns: BandColumns
    used: UsedRows
    split_by: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class FittedBands:
    """What ``fit`` of a ``BandCalibrator`` found: the calibrated rule, and what is known of its rows.

    A prediction has as many ``candidates`` as those of ``fit``.
    """

    calibrated: Calibrated
    candidates: int
    rows: GivenRows | LoadedRows
    grouping: Grouping | None = None
    weighting: Weighting | None = None


class BandRows:
    """How a rule reads the columns of a table, and what is known of its calibration rows."""

    python_only = False
    arguments: dict[str, Any]
    _options: BandOptions
    _fitted: FittedBands | None

    @property
    def _found(self) -> FittedBands:
        if self._fitted is None:
            from sklearn.exceptions import NotFittedError  # loading scikit-learn takes as long as loading torch

            raise NotFittedError("This BandCalibrator is not calibrated yet: call fit first.")
        return self._fitted

    @property
    def columns(self) -> BandColumns:
        """The columns of a table that hold the predictions."""
        columns = self._found.rows.columns
        if columns is None:
            raise ValueError(
                "A rule for predictions of a kind of your own cannot be saved or audited. Audit its intervals by "
                "gb.metrics.coverage."
            )
        return columns

    @property
    def fitted_(self) -> UsedRows:
        """What is known of the calibration rows."""
        assert self.columns is not None
        return self._found.rows.used

    @property
    def grouping(self) -> Grouping | None:
        """The groups that have a promise of their own, if there are any."""
        return None if self._fitted is None else self._fitted.grouping

    @property
    def weighting(self) -> Weighting | None:
        """Where the weights of rows come from, if they have any."""
        return None if self._fitted is None else self._fitted.weighting

    @property
    def target_(self) -> Target:
        """The scale of the target: its own."""
        return Target(None, None, None)

    @property
    def belonging(self) -> Belonging:
        """How the rule knows which rows belong together; it does not search, as other rows may have equal bounds."""
        rule, split_by = self.fitted_.repeat_rule, self._found.rows.split_by
        return Belonging(split_by or (None if rule is not None else ()), rule)

    def made_by(self) -> list[tuple[str, str]]:
        """Return which columns hold the predictions, for the page."""
        parts = " and ".join([", ".join(PARTS[self.columns.form][:-1]), PARTS[self.columns.form][-1]]).removeprefix(
            " and "
        )
        return [("Predictions", f"{parts}, from the columns {listed(self.columns.names, 6)}")]

    def settings(self) -> list[tuple[str, str]]:
        """Return the arguments that were given, other than by default."""
        return [
            (name, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
            for name, value in self.arguments.items()
            if name != "method" and value != DEFAULTS.get(name)
        ]

    def read_rows(self, X: Any, to_predict: bool = False, *, weights: Any = None) -> Table:
        """Return the columns of a table that hold predictions.

        Parameters
        ----------
        X : table
            Rows, in a table with the columns of predictions.
        to_predict : bool, default False
            Whether the rows are only to be predicted. The columns are the same in both cases.
        weights : array of shape (n,), default None
            The weight of each row, if the rule needs them and no column holds them.
        """
        table, groups = self.columns.table(self.columns.numbers_in(X)), self.grouping
        context, weighting = Context(), self.weighting
        if groups is not None and groups.by is not None:
            context = replace(context, group=groups.of(named_columns(X, group_names(groups.by))))
        if weights is not None or (weighting is not None and weighting.column is not None):
            context = self._weighed(context, X, table.n_rows, weights)
        return replace(table, context=context)

    def read_labelled(self, X: Any) -> tuple[Predicted, Context, Table]:
        """Return the predictions in another table, the groups of its rows, and the rows as the rule knows them.

        Parameters
        ----------
        X : table
            Some rows, with the columns of predictions and of groups.
        """
        columns = self.columns
        matrix, codes = columns.numbers_in(X), None
        if self.grouping is not None:
            codes = self.grouping.of(named_columns(X, self.grouping.column_names))
        predicted = self._options.ordered(columns.predicted(matrix), 0, SORT)
        return predicted, Context(group=codes), columns.table(matrix)

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return the predictions in a table, and the rows as numbers: the point, and how wide the bounds are.

        Parameters
        ----------
        X : table
            The same rows, as they were given.
        table : Table
            Rows that ``read_rows`` returned.
        """
        predicted = self._read(self.columns.numbers_in(X))
        each = predicted.targets if isinstance(predicted, PredictedSeveral) else (predicted,)
        wide = [own.parts[-1] - (0 if self.columns.form == "gaussian" else own.parts[0]) for own in each]
        pairs = zip(each, wide, strict=True)
        places = np.stack([column[0, 0] for own, far in pairs for column in (own.point, far)], axis=1)
        places = np.where(np.isfinite(places), places, 0.0)
        reach = np.ptp(places, axis=0)
        return predicted, ((places - places[0]) / np.where(reach > 0, reach, 1.0)).astype(np.float32)

    def intervals_of(self, table: Table, calibrated: Calibrated | None = None) -> Intervals:
        """Return the intervals of rows that ``read_rows`` returned, at other levels if calibrated for them.

        Parameters
        ----------
        table : Table
            Rows that ``read_rows`` returned.
        calibrated : object, default None
            The rule at other levels than the calibrator's own.
        """
        calibrated = calibrated or self._found.calibrated
        predicted = self._read(np.stack([column.values for column in table.columns], axis=1))
        return calibrated.intervals(calibrated.ends(predicted, table.context), input_names=table.names)

    def _read(self, matrix: Array) -> Predicted:
        return self._options.ordered(self.columns.predicted(matrix), 0, SORT)

    def _as_fitted(self, predicted: Predicted) -> Predicted:
        """Return a prediction with as many candidates as fit was given; others are refused."""
        expected = self._found.candidates
        if predicted.candidates != expected:
            raise ValueError(f"Expected {expected} band(s), as fit was given, found {predicted.candidates}.")
        return predicted

    def _weighed(self, context: Context, X: Any, n: int, weights: Any) -> Context:
        """Return what is known of n new rows, with their weights if the rule needs them."""
        if self.weighting is None:
            refuse_idle(weights)
            return context
        return with_weights(context, self.weighting.of_new(X, n, weights, self._found.calibrated.rule))

    def _known_of(
        self, groups: Any, n: int, context: Context | None = None, weights: Any = None, *, are_counted: bool = False
    ) -> Context:
        """Return what is known of n new rows, with their weights and the groups that labels name.

        If the rows of each group ``are_counted`` later, as an audit does, groups are never said by sets.
        """
        own, grouping = context or Context(), self.grouping
        own = self._weighed(own, None, n, weights)
        if grouping is None:
            if groups is not None:
                raise ValueError("fit was given no groups, so there is no promise for each. Remove groups=...")
            return own
        if groups is None:
            raise ValueError(
                f"Each group has a promise of its own ({grouping.in_words}), and these rows do not say which they "
                "belong to. Pass groups=, as you did to fit."
            )
        return replace(own, group=(grouping.of_labels if are_counted else grouping.of_new_labels)(groups, n))
