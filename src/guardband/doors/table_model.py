"""A fitted model of tables: rows in, intervals out, without scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.predicted import Context, Predicted
from guardband.bands.units import Units
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import need_held_out
from guardband.calibration.places import CalibratedPlaces
from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging
from guardband.data.mixed_rows import Mixer
from guardband.data.table import Table, read_table
from guardband.data.target import Target
from guardband.data.target_units import TargetUnits
from guardband.doors.about import made_by, settings_of
from guardband.doors.distributed import Distributed, need_places
from guardband.doors.fitted import Fitted
from guardband.doors.judged import Judged, refuse_several
from guardband.doors.weights import weighed
from guardband.exceptions import UnlikeRowsWarning, warn
from guardband.learning.learned import Learned

if TYPE_CHECKING:
    from guardband.learning.table_network import TableNetwork


class TableModel(Distributed, Judged):
    """A fitted model of tables, which reads rows and predicts; ``IntervalRegressor`` adds training and scikit-learn.

    It stands alone because scikit-learn takes as long to load as torch, and the commands can predict without it.
    """

    fitted_: Fitted
    n_features_in_: int
    n_iter_: int
    feature_names_in_: NDArray[Any]

    def __init__(self, fitted: Fitted, names: Sequence[str], count: int) -> None:
        """Take what was fitted, on so many columns; there are no names if the columns had none."""
        self.fitted_ = fitted
        self.n_features_in_ = count
        self.n_iter_ = max(fitted.learned.epochs)
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def predict(self, X: Any, return_intervals: bool = False) -> NDArray[np.float64] | Intervals:
        """Return the predictions, ``(n,)``, or ``(n, q)`` for q targets; or the ``Intervals``, for use in a pipeline.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, with the columns given to ``fit``.
        return_intervals : bool, default False
            Whether to return ``Intervals`` in place of predictions. Use it behind a pipeline, which has no
            ``predict_interval``.
        """
        if return_intervals:
            return self.predict_interval(X)
        self._need_fitted()
        table = self._read(X, to_predict=True)
        predicted, calibrated = self.fitted_.predict(table), self.fitted_.calibrated
        if calibrated is None or self.fitted_.weighting is not None:
            point: NDArray[np.float64] = predicted.point[0, 0]
        else:
            _, point, _ = calibrated.ends(predicted, table.context)
        point = self.fitted_.learned.target.to_units(point, point, point)[1]
        return point

    def predict_interval(
        self,
        X: Any,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        weights: Any = None,
    ) -> Intervals:
        """Return the ``Intervals`` of new rows, at other levels if asked for.

        Rows unlike all training rows are counted in one ``UnlikeRowsWarning``, and marked in ``Intervals.unlike``.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, with the columns given to ``fit``.
        confidence_level : float or sequence of float, default None
            The share of new rows that should fall inside their intervals, or several such shares. None means 0.9,
            or the model's own level. Raise it if a miss is expensive; intervals become wider.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        weights : array of shape (n,), default None
            The weight of each row, if ``calibrate`` was given weights as numbers and the guarantee is "marginal".
        """
        calibrated = self.calibration_.at(confidence_level, alpha)
        table = self.read_rows(X, to_predict=True, weights=weights)
        bands = self.intervals_of(table, calibrated)
        columns, words = self._warned_of_unlike(table)
        return bands if columns is None else replace(bands, unlike_columns=columns, unlike_words=words)

    def _warned_of_unlike(self, table: Table) -> tuple[NDArray[np.object_] | None, str]:
        """Return which columns of rows are unlike all training rows, and so in words, which are a warning too."""
        seen = self.fitted_.seen
        if seen is None:
            return None, ""
        found, columns = seen.compare(table)
        words = found.in_words(lambda row: f"row {row:,}") if found.count else ""
        if words:
            warn(words, UnlikeRowsWarning)
        return columns, words

    def intervals_of(self, table: Table, calibrated: Calibrated | None = None) -> Intervals:
        """Return the ``Intervals`` of rows that ``read_rows`` returned, without a look at how unusual they are.

        Parameters
        ----------
        table : Table
            Rows that ``read_rows`` returned.
        calibrated : object, default None
            The rule at other levels than the model's own.
        """
        calibrated = calibrated or self.calibration_
        ends = calibrated.ends(self.fitted_.predict(table), table.context)
        ends = self.fitted_.learned.target.to_units(*ends)
        return calibrated.intervals(ends, index=table.index, input_names=(*table.names, *table.extra))

    def _placed(self, X: Any) -> tuple[CalibratedPlaces, NDArray[np.float64], Units, Table]:
        """Return what quantiles of new rows are made of; a model that has no such places is refused."""
        self.need_places()
        table = self._read(X, to_predict=True)
        placed = self.placed_of(table)
        self._warned_of_unlike(table)
        return *placed, table

    def need_places(self) -> CalibratedPlaces:
        """Return the places of the calibration rows; a model that has none is refused, with what to do."""
        calibrated = self.calibration_
        refuse_several(len(calibrated.rule.target_names), "A distribution")
        need_held_out(calibrated.rule, "predict distributions")
        return need_places(self.fitted_.places, calibrated, self.fitted_.grouping is not None)

    @property
    def quantile_certificate(self) -> Certificate | None:
        """What is promised of quantiles; None if the model was not fitted for them, or has none."""
        if not getattr(self, "distribution", False):
            return None
        try:
            return self.need_places().certificate
        except ValueError:
            return None

    def placed_of(self, table: Table) -> tuple[CalibratedPlaces, NDArray[np.float64], Units]:
        """Return what quantiles of rows that ``read_rows`` returned are made of.

        Parameters
        ----------
        table : Table
            Rows that ``read_rows`` returned.
        """
        places, learned = self.need_places(), self.fitted_.learned
        assert isinstance(learned, Learned)
        return places, learned.columns(table), TargetUnits(learned.target)

    def made_by(self) -> list[tuple[str, str]]:
        """Return rows, seed and networks by name, for the page."""
        return made_by(self)

    def settings(self) -> list[tuple[str, str]]:
        """Return the arguments that were given, other than by default."""
        from guardband.doors.table import IntervalRegressor

        return settings_of(self.fitted_, IntervalRegressor())

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the networks predict for rows that ``read_rows`` returned, and their columns as numbers.

        The indices of columns with many categories are no numbers, and left out.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as numpy, pandas, polars, Arrow or tensors.
        table : Table
            Rows that ``read_rows`` returned.
        """
        learned = self.fitted_.learned
        inputs = learned.encoder.encode(table)
        numbers = inputs.shape[1] - len(learned.architecture.sizes)
        if not isinstance(learned, Learned):
            return self.fitted_.predict(table), inputs[:, :numbers]
        return learned.predict_encoded(inputs, self.fitted_.rule.each_copy), inputs[:, :numbers]

    @property
    def is_quick(self) -> bool:
        """Whether the model may be asked for many rows: yes."""
        return True

    def mixer(self, X: Any) -> Mixer:
        """Return rows as the model reads them, and what it predicts for rows mixed from them.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as the model takes them.
        """
        self._need_fitted()
        return self.fitted_.mixer(self.read_rows(X, to_predict=True), X)

    @property
    def certificate_(self) -> Certificate:
        """What is promised of the intervals."""
        return self.calibration_.certificate

    @property
    def calibration_(self) -> Calibrated:
        """The calibrated rule."""
        self._need_fitted()
        if self.fitted_.calibrated is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This IntervalRegressor is trained but not calibrated: call calibrate(X, y) with rows that "
                "did not train it."
            )
        return self.fitted_.calibrated

    def as_network(self) -> TableNetwork:
        """Return the fitted model as one ``torch.nn.Module``, from rows of numbers to intervals in the units of y."""
        from guardband.learning.table_network import TableNetwork

        calibrated, learned = self.calibration_, self.fitted_.learned
        refuse_several(len(calibrated.rule.target_names), "A graph")
        need_held_out(calibrated.rule, "get one network or export it")
        assert isinstance(learned, Learned)
        if "weight" in calibrated.rule.uses_of_new:
            raise ValueError(
                "A graph of a table cannot find the weights of its rows. Serve this model from Python, or calibrate "
                'with guarantee="pac" and max_weight.'
            )
        names = tuple(map(str, getattr(self, "feature_names_in_", range(self.n_features_in_))))
        return TableNetwork(learned, calibrated, names, self.fitted_.grouping)

    def read_rows(self, X: Any, *, to_predict: bool = False, weights: Any = None) -> Table:
        """Return rows with the columns that the model was fitted on, as what they were then.

        Columns with names are found by them, in any order among others; arrays must have the same columns.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as numpy, pandas, polars, Arrow or tensors.
        to_predict : bool, default False
            Whether the rows are only to be predicted. Columns that are not learnt from may then be absent.
        weights : array of shape (n,), default None
            The weight of each row, if the model needs them.
        """
        table, fitted = self._read(X, to_predict=to_predict), self.fitted_
        if fitted.calibrated is None:
            return table
        return weighed(table, X, weights, fitted.weighting, fitted.calibrated.rule)

    def _read(self, X: Any, *, to_predict: bool = False) -> Table:
        """Return rows without their weights."""
        table, encoder, grouping = self._columns(X, to_predict), self.fitted_.learned.encoder, self.fitted_.grouping
        if isinstance(encoder, TableEncoder):
            table = table.read_as(encoder.kinds)
        return table if grouping is None else replace(table, context=Context(group=grouping.of_rows(table, X)))

    def _columns(self, X: Any, to_predict: bool) -> Table:
        """Return the columns that the model was fitted on: by their names if they had any, and else in order."""
        names, grouping = getattr(self, "feature_names_in_", None), self.fitted_.grouping
        if names is None:
            return read_table(X)
        needed = () if grouping is None else grouping.column_names
        unlearnt = [name for name in self.fitted_.learned.encoder.unlearnt(names) if name not in needed]
        return read_table(X, list(names), unlearnt if to_predict else ())

    def _need_fitted(self) -> None:
        """Raise if the model is not fitted yet: one from a file always is."""

    @property
    def target_(self) -> Target:
        """The scale of the target."""
        self._need_fitted()
        return self.fitted_.learned.target

    @property
    def belonging(self) -> Belonging:
        """How the model knows which rows belong together."""
        return Belonging(self.fitted_.params["split_by"], self.fitted_.repeat_rule)
