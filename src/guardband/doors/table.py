"""Door 1: a table, from rows to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, check_is_fitted, validate_data

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.calibration.calibrated import Calibrated, OnInsufficient
from guardband.calibration.pav import Average
from guardband.data.absurd import absurd, warn_of_absurd
from guardband.data.encoder import PlainNumbers, TableEncoder
from guardband.data.entities import (
    Entities,
    SplitBy,
    entities_from,
    entities_of_labels,
    refuse_seen,
)
from guardband.data.fingerprint import count_overlap, fingerprints, refuse_overlap
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule, repeats_in
from guardband.data.split import split_rows
from guardband.data.table import Table, as_array, read_table, take_rows
from guardband.data.target import read_target
from guardband.data.transforms import Transform
from guardband.data.unlike import Seen
from guardband.doors.fitted import Fitted, context_of
from guardband.doors.progress import FitProgress
from guardband.exceptions import (
    DependentRowsWarning,
    MissingTargetWarning,
    RepeatedRowsWarning,
    UnlikeRowsWarning,
    warn,
)
from guardband.learning.architecture import Builder
from guardband.learning.choice import sharpest
from guardband.learning.dependence import doubts_of
from guardband.learning.learn import learn
from guardband.learning.options import FitOptions
from guardband.learning.training_rows import TrainingRows
from guardband.methods.method import Guarantee, Method
from guardband.nn.loss import Point
from guardband.nn.ordering import Ordering
from guardband.training.recipe import Epochs

if TYPE_CHECKING:
    from guardband.learning.table_network import TableNetwork

Array = NDArray[np.float64]

PROMISED = ("method", "confidence_level", "alpha", "guarantee", "delta", "joint", "taus", "rule", "average")
"""What fit settles of the promise."""
PREPARED_OUTSIDE = (
    "D2 was split from the rows given to fit. If these rows also fitted a transformer before this model, or a search "
    "that chose its settings, the promise holds only after calibrate on rows from outside."
)


class IntervalRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
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
        options = FitOptions.of(self.get_params(deep=False))
        table = read_table(X).settled()
        validate_data(BaseEstimator(), X, skip_check_array=True)  # column names that cannot be kept are refused now
        weight = None if sample_weight is None else self._weights(sample_weight, table.n_rows)
        labels = self._labels(entities, table.n_rows)
        X, table, response, weight, labels = self._labelled(X, table, y, weight, labels)
        target = options.target.decided(response)
        if options.architecture.builder is not None:
            PlainNumbers().encode(table)
        random = check_random_state(self.random_state)
        together = self.entities_of(table, X, response, labels)
        d1, d2 = split_rows(table.n_rows, self.calibration_size, random, together)
        if weight is not None:
            d1 = d1[weight[d1] > 0]
            if len(d1) < 2:
                raise ValueError(f"At least 2 training rows must have a positive sample_weight, found {len(d1)}.")
        with FitProgress(self.verbose, options.effort.seconds) as progress:
            rows = TrainingRows.of(
                table.take(d1),
                response[d1],
                None if weight is None else weight[d1] / weight[d1].max(),
                int(random.randint(2**31 - 1)),
                options.architecture,
                target,
                d1,
                None if together is None else together.take(d1).number,
                self.keys,
            )
            architecture, recipe = options.architecture_for(len(d1)), options.recipe_for(len(d1))
            shape = architecture.for_table(rows.encoder)
            (learned,) = learn(
                [rows], options.specs, shape, recipe, options.effort, device=options.device, progress=progress
            )
        method, prints = options.method, fingerprints(table, response)
        if options.chooses_score and learned.left_out is not None:
            predicted, seen = learned.predict_left_out(rows.x)
            method = sharpest(options.request, predicted, learned.target.to_work(response[d1[rows.kept[seen]]]))
            learned = replace(learned, choices=f"{learned.choices}, the score {method.name}")
        one_each = np.arange(len(d1)) if together is None else together.take(d1).one_row_each(response[d1])
        looks = self.split_by is None and (together is None or together.rule is not None)
        levels = options.request.levels
        found = doubts_of(rows, learned, table.take(d1), response[d1], levels, one_each) if looks else ()
        found = tuple(doubt for doubt in found if len(d2) or doubt.kind == "cluster")  # who brings D2 chose its time
        for doubt in found:
            warn(doubt.sentence, DependentRowsWarning)
        alone = d1[one_each]
        fitted = Fitted(
            learned=learned,
            rule=method.rule(options.request),
            calibrated=None,
            training_prints=prints[d1],
            held_out_prints=prints[d2],
            calibration_prints=prints[d2],
            reference=Reference.learn(table.take(alone), response[alone]),
            params=self.get_params(deep=False),
            training_entities=None if together is None else together.take(d1).every,
            repeat_rule=None if together is None else together.rule,
            doubts=tuple(doubt.sentence for doubt in found),
            seen=Seen.learn(table.take(d1), self.keys),
        )
        if len(d2):
            wrong = np.flatnonzero(absurd(target.to_work(response[d2])))
            warn_of_absurd(response[d2], wrong, d2, trains=False)
            fitted = fitted.calibrated_on(
                table.take(d2),
                response[d2],
                prints[d2],
                self.on_insufficient,
                PREPARED_OUTSIDE,
                entities=None if together is None else together.take(d2),
            )
        validate_data(self, X, skip_check_array=True, reset=True)
        self.n_features_in_ = len(table.columns)
        self.n_iter_ = max(learned.epochs)
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
        table = self.read_rows(X)
        X, table, response, labels = self._labelled(X, table, y, self._labels(entities, table.n_rows))
        prints = fingerprints(table, response)
        refuse_overlap(prints, self.fitted_.training_prints, by_chance=self.fitted_.training_entities is None)
        again = count_overlap(prints, self.fitted_.held_out_prints)
        notes = (f"{again} of {table.n_rows} calibration rows were given to fit. {PREPARED_OUTSIDE}",) if again else ()
        together = self.entities_of(table, X, response, labels, self.fitted_.repeat_rule)
        if together is not None and self.fitted_.training_entities is not None:
            refuse_seen(together, self.fitted_.training_entities)
        wrong = np.flatnonzero(absurd(self.fitted_.learned.target.to_work(response)))
        warn_of_absurd(response, wrong, np.arange(len(response)), trains=False)
        self.fitted_ = self.fitted_.calibrated_on(
            table, response, prints, self.on_insufficient, *notes, entities=together
        )
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

    def read_target(self, y: Any, n_rows: int, may_miss: bool = False) -> Array:
        """Return the target of so many rows, ``(n,)``; what is no finite number is refused.

        With ``may_miss`` missing values are NaN.
        """
        if y is None:
            raise ValueError("IntervalRegressor requires y to be passed, but the target y is None.")
        array = as_array(y)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
            warn(
                "A column-vector y was passed when a 1d array was expected.",
                DataConversionWarning,
            )
        return read_target(array, n_rows, may_miss=may_miss)

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

    def _labelled(self, X: Any, table: Table, y: Any, *beside: Any) -> tuple[Any, ...]:
        """Return the rows whose target is known, with their targets and what else lies beside each row.

        Others are counted in a warning. ``table`` is what was read of ``X``.
        """
        response = self.read_target(y, table.n_rows, may_miss=True)
        known = np.flatnonzero(~np.isnan(response))
        missing = table.n_rows - len(known)
        if not missing:
            return X, table, response, *beside
        if not len(known):
            raise ValueError("The target y is missing in every row: pass rows whose target is known.")
        warn(
            f"{missing:,} of {table.n_rows:,} rows are left out because their target y is missing. Fill it in if you "
            "know it.",
            MissingTargetWarning,
        )
        beside = tuple(own.take(known) if isinstance(own, Entities) else take_rows(own, known) for own in beside)
        return take_rows(X, known), table.take(known), response[known], *beside

    def entities_of(
        self, table: Table, X: Any, y: Array, labels: Any = None, rule: RepeatRule | None = None
    ) -> Entities | None:
        """Return which rows belong together: as labels or ``split_by`` say, otherwise those that were repeated.

        ``rule`` says which rows are the same if that was found before.
        """
        if labels is not None:
            return self._labels(labels, table.n_rows)
        if self.split_by is not None:
            return entities_from(table, X, self.split_by) if callable(self.split_by) or self.keys else None
        if rule is not None:
            return rule.entities(table, y)
        repeats = repeats_in(table, y)
        if repeats is None:
            return None
        warn(repeats.in_words(), RepeatedRowsWarning)
        return repeats.entities

    def _labels(self, labels: Any, n_rows: int) -> Entities | None:
        """Return the entities that labels name."""
        if labels is None or isinstance(labels, Entities):
            return labels
        if self.split_by is not None:
            raise ValueError("split_by and entities both say which rows belong together: give one of them.")
        return entities_of_labels(labels, n_rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that ``split_by`` names."""
        own = self.split_by
        if own is None or callable(own):
            return ()
        names = [own] if isinstance(own, str) else list(own) if isinstance(own, list | tuple | np.ndarray) else [own]
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"split_by must be the name of a column, several names, or a function, found {own!r}.")
        return tuple(names)

    def _weights(self, sample_weight: Any, n_rows: int) -> Array:
        weight: Array = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64)
        if (weight < 0).any():
            raise ValueError("sample_weight must not be negative.")
        return weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not callable(self.network)
        tags.input_tags.string = not callable(self.network)
        tags.input_tags.categorical = not callable(self.network)
        return tags
