"""Door 1: a table, from rows to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, check_is_fitted, validate_data

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.predicted import Predicted
from guardband.calibration.calibrated import Calibrated, OnInsufficient
from guardband.calibration.pav import Average
from guardband.data.context import context_of
from guardband.data.encoder import TableEncoder
from guardband.data.entities import SplitBy, refuse_seen
from guardband.data.fingerprint import count_overlap, refuse_overlap
from guardband.data.labelled_rows import Belonging, LabelledRows
from guardband.data.table import Table, read_table
from guardband.data.target import Target
from guardband.data.transforms import Transform
from guardband.doors.about import made_by, settings_of
from guardband.doors.fit_rows import PREPARED_OUTSIDE, fit_rows, warn_of_absurd_rows
from guardband.doors.judged import Judged
from guardband.exceptions import UnlikeRowsWarning, warn
from guardband.learning.architecture import Builder
from guardband.learning.options import FitOptions
from guardband.methods.method import Guarantee, Method
from guardband.nn.loss import Point
from guardband.nn.ordering import Ordering
from guardband.training.recipe import Epochs

if TYPE_CHECKING:
    from guardband.learning.table_network import TableNetwork

Array = NDArray[np.float64]

PROMISED = ("method", "confidence_level", "alpha", "guarantee", "delta", "joint", "taus", "rule", "average")
"""What fit settles of the promise."""


class IntervalRegressor(Judged, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A network for tables whose prediction intervals come with a guarantee.

    ``fit`` splits its rows into D1, which trains, and D2, which calibrates (``calibration_size``, a share or
    a number of rows); with ``calibration_size=None`` all rows train, and ``calibrate`` brings D2.

    Parameters
    ----------
    method : {"conf-nn", "pav", "high-q", "neg-ll", "conf-fw", "qreg-un", "bayes", "cqr", "cqr-r", "auto"} or Method
        "conf-nn" is split conformal on the scaled score, "pav" a selection from a grid of levels; "auto" takes
        whichever of "conf-nn", "cqr" and "cqr-r" gives the least interval score on folds of D1. The others are
        those that the paper compares with, and two more conformal scores. "high-q", "neg-ll", "bayes" and
        "qreg-un" promise nothing: with the first two D2 chooses among networks.
    confidence_level, alpha : float or sequence of float
        The level or levels of the intervals, 0.9 unless given; or one minus them.
    guarantee : {"marginal", "pac"} or Cut
        On average over calibration sets, or with probability 1 - ``delta`` over them (for each level apart,
        with ``joint`` for all at once). pav states its own guarantee; ``"pac"`` asks it for the level itself.
    tau : float
        The level of the network of conf-nn, cqr and cqr-r: alpha unless given, the smallest of several.
    taus, rule, average
        pav's grid, its rule ("fixed-sequence", "nested" or the paper's own, "paper"), and "corollary" or
        "sharp" to ask for average coverage.
    on_insufficient : {"inf", "raise"}
        Too few calibration rows give the whole line with a warning, or an error.
    split_by : str, sequence of str or callable
        The column or columns that name what rows belong to, such as a storm, a patient or a customer; or a function
        of the table that returns a label for each row. Rows that belong together stay on one side of every split. The
        promise is then for a new row of a new storm, and ``n_calibration`` counts storms. Columns of text that are
        named here are not learnt from, because new rows have new values. By default guardband looks for repeated rows
        and for columns that act as such keys; an empty list says that rows stand alone.
    network : {"tabular", "plain", "paper"} or callable
        "tabular" embeds numbers, has three hidden layers, and is trained as several copies over folds of D1, each
        stopped early by the rows that it did not see; their average is used. "plain" is fully connected, with
        weight decay and early stopping; "paper" the same with the paper's ReLU ordering, no weight decay and
        cross-validated epochs. A callable takes the number of columns and returns a module that puts out bands,
        such as one that ends in ``gb.nn.TripleHead``; it gets the columns as they are, numbers only, and the
        response standardised.
    preset : {"fast", "default", "best"} or float
        How much time to spend on "tabular": 2 small copies, 8 or 24; or seconds, after which no epoch is begun.
    hidden, activation, dropout, ordering
        The shape of the network; None is what suits it.
    power, point
        The loss: see ``gb.nn.IntervalLoss``.
    epochs, max_epochs, patience, batch_size, learning_rate, weight_decay
        The training: ``epochs`` is a number, "cv" or "early".
    target_transform : {"log", "log1p", "asinh", "sqrt"} or pair of functions, default None
        The scale on which guardband learns y. Intervals come back in the units of y. Use "log" for positive targets
        that vary by factors, "log1p" if some are zero, "asinh" if some are negative, "sqrt" for counts. A pair
        ``(forward, inverse)`` must be increasing and take numpy arrays.
    y_min, y_max : float, default None
        The smallest and the largest value that y can have. Intervals end there at the latest.
    integer : bool, default None
        Whether y is always a whole number. If it is, intervals and points are whole numbers too. None means: if all
        values of y given to ``fit`` are whole numbers. Use False if other values can occur later.
    device : str
        "auto", or any name that torch knows.
    random_state : int, RandomState or None
        Same seed, same result.
    verbose : bool or None
        Whether to show progress; None shows it in a terminal, for fits of more than a second.
    """

    def __init__(
        self,
        method: str | Method = "conf-nn",
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        guarantee: Guarantee = "marginal",
        delta: float | None = None,
        joint: bool = False,
        tau: float | None = None,
        taus: Sequence[float] | None = None,
        rule: PavRule | None = None,
        average: Average | None = None,
        on_insufficient: OnInsufficient = "inf",
        calibration_size: float | int | None = 0.25,
        split_by: SplitBy | None = None,
        network: str | Builder = "tabular",
        preset: str | float = "default",
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        dropout: float | None = None,
        ordering: Ordering | None = None,
        power: Literal[1, 2] = 1,
        point: Point = "median",
        epochs: Epochs | None = None,
        max_epochs: int = 200,
        patience: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        target_transform: Transform | None = None,
        y_min: float | None = None,
        y_max: float | None = None,
        integer: bool | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.method = method
        self.confidence_level = confidence_level
        self.alpha = alpha
        self.guarantee = guarantee
        self.delta = delta
        self.joint = joint
        self.tau = tau
        self.taus = taus
        self.rule = rule
        self.average = average
        self.on_insufficient = on_insufficient
        self.calibration_size = calibration_size
        self.split_by = split_by
        self.network = network
        self.preset = preset
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.ordering = ordering
        self.power = power
        self.point = point
        self.epochs = epochs
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.target_transform = target_transform
        self.y_min = y_min
        self.y_max = y_max
        self.integer = integer
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, entities: Any = None) -> IntervalRegressor:
        """Train on D1 and, unless ``calibration_size`` is None, calibrate on D2.

        ``sample_weight`` weighs training; the guarantee treats all rows alike. Rows whose ``y`` is missing are left
        out. What a column is, numbers or categories, all rows decide. ``entities``, ``(n,)``, labels rows that belong
        together, in place of the columns that ``split_by`` names.
        """
        params = self.get_params(deep=False)
        options, belonging = FitOptions.of(params), Belonging(self.split_by)
        table = read_table(X).settled()
        validate_data(BaseEstimator(), X, skip_check_array=True)  # column names that cannot be kept are refused now
        labels = belonging.labelled(entities, table.n_rows)
        weight = None if sample_weight is None else _weights(sample_weight, table.n_rows)
        given = LabelledRows.of(X, table, y, weight, labels)
        fitted = fit_rows(given, params, options, belonging)
        validate_data(self, given.X, skip_check_array=True, reset=True)
        self.n_features_in_ = len(table.columns)
        self.n_iter_ = max(fitted.learned.epochs)
        self.fitted_ = fitted
        return self

    def calibrate(self, X: Any, y: Any, *, entities: Any = None) -> IntervalRegressor:
        """Calibrate on rows that are new to the network; replaces any calibration before.

        Rows whose ``y`` is missing are left out. ``entities``, ``(n,)``, labels rows that belong together, in place of
        the columns that ``split_by`` names.
        """
        check_is_fitted(self, "fitted_")
        for name in PROMISED:
            if repr(getattr(self, name)) != repr(self.fitted_.params[name]):
                raise ValueError(f"{name} was changed after fit, and has no effect on a fitted model. Fit again.")
        fitted, table = self.fitted_, self.read_rows(X)
        rows = LabelledRows.of(X, table, y, entities=self.belonging.labelled(entities, table.n_rows))
        refuse_overlap(rows.prints, fitted.training_prints, by_chance=fitted.training_entities is None)
        again = count_overlap(rows.prints, fitted.held_out_prints)
        notes = (f"{again} of {rows.n} calibration rows were given to fit. {PREPARED_OUTSIDE}",) if again else ()
        rows = rows.grouped(self.belonging)
        if rows.entities is not None and fitted.training_entities is not None:
            refuse_seen(rows.entities, fitted.training_entities)
        warn_of_absurd_rows(fitted.learned.target, rows, np.arange(rows.n))
        self.fitted_ = fitted.calibrated_on(rows, self.on_insufficient, *notes)
        return self

    def conformalize(self, X: Any, y: Any, *, entities: Any = None) -> IntervalRegressor:
        """Calibrate: another name for ``calibrate``."""
        return self.calibrate(X, y, entities=entities)

    # ------------------------------------------------------------------------------------ predict

    def predict(self, X: Any, return_intervals: bool = False) -> Array | Intervals:
        """Return the point predictions, ``(n,)``; or the ``Intervals``, for use behind a pipeline."""
        if return_intervals:
            return self.predict_interval(X)
        check_is_fitted(self, "fitted_")
        table = self.read_rows(X, to_predict=True)
        predicted, calibrated = self.fitted_.predict(table), self.fitted_.calibrated
        if calibrated is None:
            point: Array = predicted.point[0, 0]
        else:
            _, point, _ = calibrated.ends(predicted, context_of(table))
        point = self.fitted_.learned.target.to_units(point, point, point)[1]
        return point

    def predict_interval(
        self,
        X: Any,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
    ) -> Intervals:
        """Return the ``Intervals`` of new rows, at other levels if asked for.

        Rows unlike all training rows are counted in one ``UnlikeRowsWarning``, and marked in ``Intervals.unlike``.
        """
        calibrated = self.calibration_.at(confidence_level, alpha)
        table = self.read_rows(X, to_predict=True)
        bands = self.intervals_of(table, calibrated)
        seen = self.fitted_.seen
        if seen is None:
            return bands
        found, columns = seen.compare(table)
        words = found.in_words(lambda row: f"row {row:,}") if found.count else ""
        if words:
            warn(words, UnlikeRowsWarning)
        return replace(bands, unlike_columns=columns, unlike_words=words)

    def intervals_of(self, table: Table, calibrated: Calibrated | None = None) -> Intervals:
        """Return the ``Intervals`` of rows that ``read_rows`` returned, without a look at how unusual they are.

        ``calibrated`` is the rule at other levels than the model's own.
        """
        calibrated = calibrated or self.calibration_
        ends = calibrated.ends(self.fitted_.predict(table), context_of(table))
        ends = self.fitted_.learned.target.to_units(*ends)
        return calibrated.intervals(ends, index=table.index, input_names=(*table.names, *table.extra))

    def made_by(self) -> list[tuple[str, str]]:
        """Return rows, seed and networks by name, for the page."""
        return made_by(self)

    def settings(self) -> list[tuple[str, str]]:
        """Return the arguments that were given, other than by default."""
        return settings_of(self)

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the networks predict for rows that ``read_rows`` returned, and their columns as numbers.

        The indices of columns with many categories are no numbers, and left out.
        """
        learned, rule = self.fitted_.learned, self.fitted_.rule
        inputs = learned.encoder.encode(table)
        numbers = inputs.shape[1] - len(learned.architecture.sizes)
        return learned.predict_encoded(inputs, rule.each_copy), inputs[:, :numbers]

    @property
    def certificate_(self) -> Certificate:
        """What is promised of the intervals."""
        return self.calibration_.certificate

    @property
    def calibration_(self) -> Calibrated:
        """The calibrated rule."""
        check_is_fitted(self, "fitted_")
        if self.fitted_.calibrated is None:
            raise NotFittedError(
                "This IntervalRegressor is trained but not calibrated: call calibrate(X, y) with rows from outside."
            )
        return self.fitted_.calibrated

    def as_network(self) -> TableNetwork:
        """Return the fitted model as one ``torch.nn.Module``, from rows of numbers to intervals in the units of y."""
        from guardband.learning.table_network import TableNetwork

        calibrated = self.calibration_
        names = tuple(map(str, getattr(self, "feature_names_in_", range(self.n_features_in_))))
        return TableNetwork(self.fitted_.learned, calibrated, names)

    # --------------------------------------------------------------------------------------- save

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file: weights as safetensors, all else as JSON, with a checksum."""
        from guardband.doors.model_file import save

        check_is_fitted(self, "fitted_")
        save(self, path)

    # ------------------------------------------------------------------------------------- checks

    def read_rows(self, X: Any, *, to_predict: bool = False) -> Table:
        """Return rows with the columns that the model was fitted on, as what they were then.

        Columns with names are found by them, in any order among others; arrays must have the same columns. Predictions
        do not need columns that are not learnt from: absent ones are empty if the rows are only ``to_predict``.
        """
        names, encoder = getattr(self, "feature_names_in_", None), self.fitted_.learned.encoder
        if names is not None and _get_feature_names(X) is not None:
            table = read_table(X, list(names), encoder.unlearnt(names) if to_predict else ())
        else:
            table = read_table(X)
            validate_data(self, X, skip_check_array=True, reset=False)
        return table.read_as(encoder.kinds) if isinstance(encoder, TableEncoder) else table

    @property
    def target_(self) -> Target:
        """The scale of the target."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.learned.target

    @property
    def belonging(self) -> Belonging:
        """How the model knows which rows belong together."""
        return Belonging(self.split_by, self.fitted_.repeat_rule if hasattr(self, "fitted_") else None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not callable(self.network)
        tags.input_tags.string = not callable(self.network)
        tags.input_tags.categorical = not callable(self.network)
        return tags


def _weights(sample_weight: Any, n_rows: int) -> Array:
    try:
        weight: Array = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64)
    except ValueError as error:
        raise ValueError(str(error)) from None  # what is wrong with weights is said in scikit-learn's words
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative.")
    return weight
