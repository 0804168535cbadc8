"""Door 1: a table, from rows to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.promise import Side
from guardband.bands.risk import Risk
from guardband.calibration.calibrated import OnInsufficient
from guardband.calibration.cross import FOLDS, CalibrationKind, need_held_out
from guardband.calibration.pav import Average
from guardband.data.entities import SplitBy
from guardband.data.grouping import BINS, GroupsBy, SmallGroups
from guardband.data.labelled_rows import Belonging
from guardband.data.table import Table, read_table
from guardband.data.transforms import Transform
from guardband.doors.about import settings_of
from guardband.doors.cross_checks import HELD_OUT
from guardband.doors.fit_table import calibrate_table, fit_table, refuse_another_promise
from guardband.doors.for_target import for_target, with_source
from guardband.doors.judged import refuse_several
from guardband.doors.shown import PromiseBelowDiagram
from guardband.doors.table_model import TableModel
from guardband.learning.architecture import Builder
from guardband.learning.learn import Trainer
from guardband.learning.several import Targets
from guardband.methods.method import Guarantee, Method
from guardband.nn.loss import Point
from guardband.nn.ordering import Ordering
from guardband.training.job import Job
from guardband.training.recipe import Epochs


class IntervalRegressor(PromiseBelowDiagram, TableModel, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A network for tables whose prediction intervals come with a guarantee.

    ``fit`` trains on some of its rows and calibrates on the others. With ``calibration_size=None`` all rows train, and
    you call ``calibrate`` with further rows.

    Parameters
    ----------
    method : str or Method, default "auto"
        How intervals are made. "conf-nn" scales the network's intervals until they contain enough calibration rows.
        "cqr" and "cqr-r" move the bounds outward. "auto" takes whichever of these three does best on the training
        rows, and "conf-nn" if the network cannot compare them: it needs ``network="tabular"`` and ``epochs="early"``.
        "pav" chooses one of several networks. "conf-fw" gives all rows one width.
        "high-q", "neg-ll", "bayes" and "qreg-un" promise nothing and are there for comparison.
    confidence_level : float or sequence of float, default None
        The share of new rows that should fall inside their intervals, or several such shares. None means 0.9. Raise it
        if a miss is expensive; intervals become wider.
    alpha : float or sequence of float, default None
        One minus ``confidence_level``, for code that counts misses. Give one of the two.
    guarantee : {"marginal", "pac"} or Cut, default "marginal"
        "marginal" promises the level on average over possible calibration sets. "pac" promises it with confidence
        1 - ``delta`` for the calibration set you have; intervals are a little wider. pav has a promise of its own, and
        "pac" asks it for the level itself. A ``Cut`` brings a guarantee of your own.
    delta : float, default None
        How often a "pac" guarantee may fail over possible calibration sets. None means 0.1. Lower it if you need more
        confidence.
    joint : bool, default False
        Whether a "pac" guarantee holds for all levels at once. Set it if you choose a level after looking at the
        intervals.
    side : {"both", "lower", "upper"}, default "both"
        Which bound the promise is about. "upper" promises that true values lie at or below their upper bounds; lower
        bounds are then infinite. Choose it if only one kind of miss matters.
    tails : tuple of two floats, default None
        The share of new rows that may lie below their intervals and the share that may lie above, such as
        ``(0.02, 0.08)``. Each has a promise of its own. Give it in place of a confidence level.
    risk : Risk, default None
        The mean loss that new rows may have, such as ``gb.Risk(limit=5, cap=100)``: new values then lie at most 5
        outside their intervals in the mean, and a single one counts at most 100. Give it in place of a confidence level
        if you care how far values lie outside, not how many do.
    distribution : bool, default False
        Whether the network learns 23 quantiles besides its bounds. Set it if you use ``predict_quantiles``,
        ``predict_distribution``, ``predict_probability`` or ``select``: they work without it, and are sharper with it.
    targets : {"joint", "each"}, default None
        How several targets share the promise, if ``y`` has a column for each. "joint" promises that all of them lie
        inside at once. "each" gives each target a promise of its own, and narrower intervals. None means one target.
    tau : float, default None
        The level at which conf-nn, cqr and cqr-r train their network. None means alpha, the smallest if there are
        several. Rarely worth a change.
    taus : sequence of float, default None
        The levels of the networks that pav chooses from. None means ten values from alpha / 10 to alpha. Add smaller
        values if pav finds no network that is wide enough.
    rule : {"fixed-sequence", "nested", "paper"}, default None
        How pav chooses among its networks. None means "fixed-sequence". "paper" is the rule of the paper, with a weaker
        bound.
    average : {"sharp", "corollary"}, default None
        Ask pav for the level on average over calibration sets, by the exact bound ("sharp") or by the paper's
        ("corollary"). None keeps pav's own promise.
    on_insufficient : {"inf", "raise"}, default "inf"
        What happens with too few calibration rows. "inf" gives infinite intervals and a warning, "raise" an error. Use
        "raise" in programs that nobody watches.
    calibration_size : float, int or None, default 0.25
        The share or the number of rows that ``fit`` keeps for calibration. More rows make coverage more predictable and
        leave fewer rows for training. None if you call ``calibrate`` yourself.
    calibration : {"split", "cv+", "cv-minmax"}, default "split"
        How rows calibrate. "split" holds some out. "cv+" trains on all rows, and every row also calibrates, by
        cross-validation. Use it for tables of a few hundred rows: it predicts better, and coverage varies less. But
        less is proved: up to about twice as many misses as asked for. "cv-minmax" is wider, with a better bound.
    folds : int, default 8
        The number of folds of "cv+" and "cv-minmax". More folds train on more rows, and take longer.
    split_by : str, sequence of str or function, default None
        The columns that name what rows belong to, such as a patient or a customer; or a function of the table that
        returns a label for each row. Rows that belong together stay together in every split, and the promise is for a
        new patient. Columns of text that are named here are not learnt from, because new rows have new values. None
        looks for repeated rows and warns of columns that act as such keys. An empty list says that rows stand alone.
    split_by_time : str or bool, default False
        The column that says when each row came: dates, or numbers that grow with time. The earliest rows then train
        and the latest calibrate, and the certificate says so. Rows of the same time stay on one side. The network
        also learns from the column. True if no column of ``X`` says it, and you pass ``time`` to ``fit``. Use it if
        you predict what comes next. Within the training rows, early stopping still draws rows at random.
    groups : str, sequence of str or function, default None
        The column whose values each have a promise of their own, such as a district. Several columns make groups that
        overlap: every value of each is one. A function of the table returns a label for each row, or several columns
        of labels; of several columns of True and False each is one group. "auto" looks on the training rows for groups
        that one promise for all rows would treat unequally.
    small_groups : {"inf", "pool"}, default "inf"
        What becomes of groups with too few calibration rows. "inf" gives them infinite intervals and a warning that
        says how many rows they need. "pool" gives all groups with few training rows one promise together.
    missing_groups : bool, default False
        Whether rows whose group is missing are a group too. Otherwise they belong to none, and their intervals are
        infinite unless another column gives them a group.
    group_bins : int, default 5
        How many ranges a column of numbers is divided into if it makes groups, by the training rows. A column with at
        most 30 different numbers is not divided: each number is a group.
    network : {"tabular", "plain", "paper"} or function, default "tabular"
        "tabular" suits most tables: it embeds numbers and averages several copies, each stopped early on rows it did
        not train on. "plain" is one fully connected network with weight decay and early stopping. "paper" follows the
        paper. A function takes the number of columns and returns a module of your own that ends in
        ``gb.nn.TripleHead``; it gets the columns as numbers and the target standardised.
    preset : {"fast", "default", "best"} or float, default "default"
        How much work "tabular" does: 2 or 3 small copies of the network, 8 or 16 copies, or 24. A number is a time
        limit for ``fit`` in seconds: training ends in time for calibration. Use "fast" to try things out, "best" for
        the narrowest intervals.
    distill : bool, default False
        Whether one small network replaces all copies in the end. It learns from the training rows to predict what
        their average predicts. With preset="best", fitting takes about three times as long, predictions are about 18
        times as fast, and ONNX graphs 20 times smaller. Set it if you predict often or on small machines.
    hidden : sequence of int, default None
        The widths of the hidden layers. None chooses them by network and number of rows.
    activation : {"relu", "gelu", "silu", "mish", "elu", "tanh"}, default None
        The activation after each hidden layer. None means "silu" for "tabular" and "relu" otherwise.
    dropout : float, default None
        The share of hidden units that are dropped in training. None means 0, or 0.03 for "tabular" if rows are few.
        Raise it if the network overfits.
    ordering : {"softplus", "relu"}, default None
        How lower bound, prediction and upper bound are kept in order. None means "softplus", and "relu" for "paper".
    power : {1, 2}, default 1
        The power of the loss. 1 learns quantiles; 2 squares all terms, as in the paper's second form, and learns
        expectiles.
    point : {"median", "mean"}, default "median"
        What the prediction estimates. Use "mean" if sums of predictions must be right on average.
    epochs : int, "early" or "cv", default None
        How long to train: a number of epochs, until a held-out part of the training rows stops improving ("early"), or
        as long as cross-validation says ("cv"). None means "early", and "cv" for "paper".
    max_epochs : int, default 200
        The most epochs that "early" and "cv" try. Raise it if training still improves at the end.
    patience : int, default None
        How many epochs "early" and "cv" go on after the best one. None chooses by the number of rows.
    batch_size : int, default None
        How many rows make one training step. None chooses by the number of rows.
    learning_rate : float, default None
        The step size of the optimiser. None means 0.003 or 0.005 for "tabular", by rows and preset, and 0.01 otherwise.
        Lower it if training diverges.
    weight_decay : float, default None
        How strongly large weights are penalised. None means 0.001 for "plain" and 0 otherwise. Raise it if the network
        overfits.
    target_transform : {"log", "log1p", "asinh", "sqrt"}, pair of functions, or sequence of these, default None
        The scale on which guardband learns y. Intervals come back in the units of y. Use "log" for positive targets
        that vary by factors, "log1p" if some are zero, "asinh" if some are negative, "sqrt" for counts. A pair
        ``(forward, inverse)`` must be increasing and take numpy arrays. With several targets a list gives each its own,
        also for ``y_min``, ``y_max`` and ``integer``.
    y_min : float, default None
        The smallest value that y can have. No interval goes below it. Set it for targets such as prices.
    y_max : float, default None
        The largest value that y can have. No interval goes above it. Set it for targets such as percentages.
    integer : bool, default None
        Whether y is always a whole number. If it is, intervals and predictions are whole numbers too. None means: if
        all values of y given to ``fit`` are whole numbers. Use False if other values can occur later.
    device : str, default "auto"
        Where to compute: "cpu", "cuda" or any other name that torch knows. "auto" takes a GPU if there is one.
    random_state : int, RandomState or None, default None
        The seed of the split and of training. The same seed gives the same result on the same machine.
    verbose : bool or None, default None
        Whether to show progress. None shows it in a terminal, for fits of more than a second.
    """

    def __init__(
        self,
        method: str | Method = "auto",
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        guarantee: Guarantee = "marginal",
        delta: float | None = None,
        joint: bool = False,
        side: Side = "both",
        tails: Sequence[Level] | None = None,
        risk: Risk | None = None,
        distribution: bool = False,
        targets: Targets | None = None,
        tau: float | None = None,
        taus: Sequence[float] | None = None,
        rule: PavRule | None = None,
        average: Average | None = None,
        on_insufficient: OnInsufficient = "inf",
        calibration_size: float | int | None = HELD_OUT,
        calibration: CalibrationKind = "split",
        folds: int = FOLDS,
        split_by: SplitBy | None = None,
        split_by_time: str | bool = False,
        groups: GroupsBy | None = None,
        small_groups: SmallGroups = "inf",
        missing_groups: bool = False,
        group_bins: int = BINS,
        network: str | Builder = "tabular",
        preset: str | float = "default",
        distill: bool = False,
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
        self.side = side
        self.tails = tails
        self.risk = risk
        self.distribution = distribution
        self.targets = targets
        self.tau = tau
        self.taus = taus
        self.rule = rule
        self.average = average
        self.on_insufficient = on_insufficient
        self.calibration_size = calibration_size
        self.calibration = calibration
        self.folds = folds
        self.split_by = split_by
        self.split_by_time = split_by_time
        self.groups = groups
        self.small_groups = small_groups
        self.missing_groups = missing_groups
        self.group_bins = group_bins
        self.network = network
        self.preset = preset
        self.distill = distill
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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, entities: Any = None, time: Any = None
    ) -> IntervalRegressor:
        """Train the network and, unless ``calibration_size`` is None, calibrate it on rows kept from training.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as numpy, pandas, polars, Arrow or tensors. All of them decide what a column is, numbers or
            categories.
        y : array of shape (n,), or of shape (n, q) for several targets
            Their targets. Rows whose target is missing are left out. Of several targets some may be missing in a row.
        sample_weight : array of shape (n,), default None
            How much each row counts in training. The guarantee treats all rows alike.
        entities : array of shape (n,), default None
            A label for each row, equal for rows that belong together. Use it in place of ``split_by`` if no column
            holds the label.
        time : array of shape (n,) or str, default None
            When each row came, or the name of a column of ``X``. With ``split_by_time=True`` the split is by it.
            Otherwise guardband warns if later rows are covered less often than rows drawn at random.
        """
        return self._fit(X, y, sample_weight, entities, time)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        entities: Any = None,
        time: Any = None,
        trainer: Trainer = Job.train,
    ) -> IntervalRegressor:
        """Fit; the ``trainer`` says where networks are trained."""
        params = self.get_params(deep=False)
        fitted, given = fit_table(params, X, y, sample_weight, entities, time, trainer)
        validate_data(self, given.X, skip_check_array=True, reset=True)
        self.n_features_in_ = len(given.table.columns)
        self.n_iter_ = max(fitted.learned.epochs)
        self.fitted_ = fitted
        return self

    def calibrate(
        self, X: Any, y: Any, *, entities: Any = None, weights: Any = None, max_weight: float | None = None
    ) -> IntervalRegressor:
        """Calibrate on rows that did not train the network. This replaces any earlier calibration.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Calibration rows, with the columns given to ``fit``.
        y : array of shape (n,), or of shape (n, q) for several targets
            Their targets. Rows whose target is missing are left out.
        entities : array of shape (n,), default None
            A label for each row, equal for rows that belong together. Use it in place of ``split_by`` if no column
            holds the label.
        weights : array of shape (n,) or function, default None
            How much likelier each row is among the rows to predict than among the calibration rows, up to a factor; or
            a function of the rows that returns this. Use it if the rows to predict come from another population whose
            weights you know. If you do not know them, use ``for_target``.
        max_weight : float, default None
            A bound on the weight of any row. ``guarantee="pac"`` needs it, and new rows then need no weights.
        """
        check_is_fitted(self, "fitted_")
        need_held_out(self.fitted_.rule, "calibrate on other rows")
        params = self.get_params(deep=False)
        refuse_another_promise(params, self.fitted_)
        self.fitted_ = calibrate_table(
            self.fitted_,
            params,
            self.belonging,
            X,
            self._read(X),
            y,
            entities=entities,
            weights=weights,
            max_weight=max_weight,
        )
        return self

    def conformalize(
        self, X: Any, y: Any, *, entities: Any = None, weights: Any = None, max_weight: float | None = None
    ) -> IntervalRegressor:
        """Calibrate: another name for ``calibrate``.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Calibration rows, with the columns given to ``fit``.
        y : array of shape (n,)
            The true values.
        entities : array of shape (n,), default None
            A label for each row, equal for rows that belong together.
        weights : array of shape (n,) or function, default None
            How much likelier each row is among the rows to predict, as for ``calibrate``.
        max_weight : float, default None
            A bound on the weight of any row, as for ``calibrate``.
        """
        return self.calibrate(X, y, entities=entities, weights=weights, max_weight=max_weight)

    def for_target(self, X_target: Any, *, source: Any = None) -> IntervalRegressor:
        """Return this model for the population of other rows, whose true values nobody needs to know.

        guardband estimates how much likelier each row is in that population than among the training rows. The
        calibration rows then count by these weights. Because weights are estimated, the promise is no longer exact: the
        certificate says so, and how many rows the weights leave.

        Parameters
        ----------
        X_target : table or array of shape (n, d)
            Rows like those that you will predict, with the columns given to ``fit``. A few hundred rows are enough for
            large differences, and more give better weights.
        source : table or array of shape (n1, d), default None
            The training rows again, for a model from a file: a file does not hold them. Call ``calibrate`` with the
            calibration rows before.

        Returns
        -------
        IntervalRegressor
            A model of its own with the same networks. This one does not change.

        Raises
        ------
        InsufficientCalibrationError
            If the weights leave too few calibration rows for the confidence level.
        ValueError
            If the guarantee is not "marginal", if there are groups or entities, or if most rows of ``X_target`` are
            unlike anything that was calibrated.
        """
        before = self.calibration_
        need_held_out(before.rule, "use for_target")
        refuse_several(len(before.rule.target_names), "for_target")
        known = with_source(self.fitted_.known, None if source is None else self._read(source, to_predict=True))
        target = self._read(X_target, to_predict=True)
        to_units = self.fitted_.learned.target.to_units
        calibrated, weighting = for_target(known, self.fitted_.rule, target, before, to_units)
        out = copy(self)
        out.fitted_ = replace(self.fitted_, calibrated=calibrated, weighting=weighting)
        return out

    def settings(self) -> list[tuple[str, str]]:
        """Return the arguments that were given, other than by default."""
        return settings_of(self.fitted_, type(self)())

    # --------------------------------------------------------------------------------------- save

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file: weights as safetensors, all else as JSON, with a checksum.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from guardband.doors.model_file import save

        check_is_fitted(self, "fitted_")
        save(self, path)

    @classmethod
    def restored(cls, model: TableModel) -> IntervalRegressor:
        """Return a model that can also be calibrated, from one that can only predict.

        Parameters
        ----------
        model : TableModel
            A model from a file.
        """
        out = cls(**model.fitted_.params)
        out.__dict__.update(vars(model))
        return out

    # ------------------------------------------------------------------------------------- checks

    def _columns(self, X: Any, to_predict: bool) -> Table:
        """Return the columns that the model was fitted on; those without names are checked as scikit-learn does."""
        if hasattr(self, "feature_names_in_") and _get_feature_names(X) is not None:
            return super()._columns(X, to_predict)
        table = read_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return table

    def _need_fitted(self) -> None:
        check_is_fitted(self, "fitted_")

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
