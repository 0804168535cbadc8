"""Predictions from anywhere, calibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.predicted import Context, Predicted
from guardband.bands.promise import Side
from guardband.bands.risk import Risk
from guardband.calibration.calibrated import Calibrated, OnInsufficient
from guardband.calibration.cross import CalibrationKind, crossed
from guardband.calibration.pav import Average
from guardband.calibration.rule import Rule
from guardband.data.entities import Labels
from guardband.data.fingerprint import Prints
from guardband.data.grouping import BINS, Grouping, SmallGroups
from guardband.doors.band_columns import KINDS, BandColumns, brought, by_target, with_axes
from guardband.doors.band_options import BandOptions
from guardband.doors.band_rows import FittedBands, LoadedRows
from guardband.doors.bounds_in_order import Crossing
from guardband.doors.fit_bands import fit_arrays, fit_columns
from guardband.doors.judged_bands import JudgedBands
from guardband.doors.weights import Weighting
from guardband.learning.several import Targets
from guardband.methods.method import Guarantee, Method


class BandCalibrator(JudgedBands):
    """Turns predictions of any model into intervals with a guarantee.

    ``fit`` takes predictions of calibration rows with their true values, and ``transform`` new predictions. A
    prediction is a lower bound, a point and an upper bound, ``(n,)`` each. Without a point it is halfway between the
    bounds. A point alone does for ``method="conf-fw"``. For pav the arrays are ``(K, n)`` with one row per entry of
    ``taus``; for high-q one row per candidate. neg-ll and bayes take a Gaussian, by ``fit_predicted``.

    Parameters
    ----------
    method : str or Method, default "conf-nn"
        How intervals are made. "conf-nn" scales the bounds about the point, "cqr" moves them, "conf-fw" gives all
        rows one width.
    confidence_level : float or sequence of float, default None
        The share of new rows that must fall inside, 0.9 unless given. Several levels give several intervals.
    alpha : float or sequence of float, default None
        One minus the confidence level, in its place.
    guarantee : {"marginal", "pac"} or Cut, default "marginal"
        "marginal" promises the level on average over calibration sets. "pac" promises it for this calibration set,
        except with probability ``delta``. Choose "pac" if you calibrate once and rely on the result.
    delta : float, default None
        How often a "pac" promise may fail over calibration sets, 0.1 unless given.
    joint : bool, default False
        Whether a "pac" promise holds for all levels at once.
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
    taus : sequence of float, default None
        For pav: the level of each row of the arrays.
    rule : {"fixed-sequence", "nested", "paper"}, default None
        For pav: how one of the intervals is chosen.
    average : {"corollary", "sharp"}, default None
        For pav: ask for average coverage, by this bound.
    on_insufficient : {"inf", "raise"}, default "inf"
        With too few calibration rows intervals are infinite, with a warning. "raise" raises an error instead.
    crossing : {"raise", "sort"}, default "raise"
        What to do if lower > point or point > upper: refuse, or put them in order. Holds for new rows too.
    calibration : {"split", "cv+", "cv-minmax"}, default "split"
        "split" takes predictions of rows that no training has seen. "cv+" and "cv-minmax" take those of training rows,
        each by the model that was trained without the row's fold; pass ``folds`` to ``fit``. New rows then have a
        prediction by the model of each fold, ``(K, n)``, in the order of the sorted labels of folds.
    small_groups : {"inf", "pool"}, default "inf"
        What becomes of groups with too few calibration rows. "inf" gives them infinite intervals and a warning. "pool"
        gives all groups with few training rows one promise together; pass ``training_groups`` to ``fit``.
    missing_groups : bool, default False
        Whether rows whose group is missing are a group too. Otherwise they belong to none.
    group_bins : int, default 5
        How many ranges a group of many different numbers is divided into, by the training rows.
    targets : {"joint", "each"}, default None
        How several targets share the promise. All arrays are then ``(n, q)``, with a column for each target, and
        ``transform`` returns ``Boxes``. "joint" promises that all targets lie inside at once. "each" gives each target
        a promise of its own. None means one target.
    scales : sequence of float, default None
        With ``targets="joint"`` one positive number for each target: its scores are divided by it before the targets
        are compared. Learn them from rows that do not calibrate, for example as typical errors. None means 1 for each,
        which suits "conf-nn" and "cqr-r"; "cqr" and "conf-fw" need scales if the targets have different units.

    Examples
    --------
    >>> import numpy as np
    >>> rule = BandCalibrator("conf-nn", confidence_level=0.9)
    >>> rng = np.random.default_rng(0)
    >>> held_out = rng.standard_normal(999)
    >>> rule.fit(np.full(999, -1.0), np.zeros(999), np.ones(999), held_out).certificate.rank
    900
    >>> bands = rule.transform([-1.0], [0.0], [1.0])
    >>> bool(bands.lower[0] < -1.5), bool(bands.upper[0] > 1.5)
    (True, True)
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
        side: Side = "both",
        tails: Sequence[Level] | None = None,
        risk: Risk | None = None,
        taus: Sequence[float] | None = None,
        rule: PavRule | None = None,
        average: Average | None = None,
        on_insufficient: OnInsufficient = "inf",
        crossing: Crossing = "raise",
        calibration: CalibrationKind = "split",
        small_groups: SmallGroups = "inf",
        missing_groups: bool = False,
        group_bins: int = BINS,
        targets: Targets | None = None,
        scales: Sequence[float] | None = None,
    ) -> None:
        self.arguments = {
            "method": method,
            "confidence_level": confidence_level,
            "alpha": alpha,
            "guarantee": guarantee,
            "delta": delta,
            "joint": joint,
            "side": side,
            "tails": tails,
            "risk": risk,
            "taus": taus,
            "rule": rule,
            "average": average,
            "on_insufficient": on_insufficient,
            "crossing": crossing,
            "calibration": calibration,
            "small_groups": small_groups,
            "missing_groups": missing_groups,
            "group_bins": group_bins,
            "targets": targets,
            "scales": scales,
        }
        self._options = BandOptions.of(self.arguments)
        self.arguments |= {"method": self._options.method, "scales": self._options.scales}
        self._fitted: FittedBands | None = None

    def fit(
        self,
        lower: ArrayLike | None,
        point: ArrayLike | None,
        upper: ArrayLike | None,
        y: ArrayLike,
        *,
        context: Context | None = None,
        entities: ArrayLike | None = None,
        folds: ArrayLike | None = None,
        groups: Any = None,
        training_groups: Any = None,
        weights: ArrayLike | None = None,
        max_weight: float | None = None,
    ) -> BandCalibrator:
        """Calibrate on predictions and true values of rows that no training has seen.

        ``save``, ``audit`` and ``report`` look at these arrays again: do not change them before.

        Parameters
        ----------
        lower : array of shape (n,) or (K, n), or None
            The lower bounds of the calibration rows. None for a prediction alone, or if ``side="upper"``.
        point : array of shape (n,) or (K, n), or None
            Their predictions. None means halfway between the bounds.
        upper : array of shape (n,) or (K, n), or None
            Their upper bounds. None for a prediction alone, or if ``side="lower"``.
        y : array of shape (n,), or of shape (n, q) for several targets
            Their true values. Of several targets some may be missing in a row.
        context : Context, default None
            What else is known of the rows, for a guarantee of your own that uses it.
        entities : array of shape (n,), default None
            What each row belongs to, such as a patient. The promise is then for a new row of a new one.
        folds : array of shape (n,), default None
            The fold of each row, for ``calibration="cv+"`` or ``"cv-minmax"``. The prediction of a row must come from
            the model that was trained without its fold. Draw folds at random, and train all models by one procedure.
        groups : array of shape (n,) or (n, J), default None
            The group of each row, such as its district. Each group then has a promise of its own. Several columns make
            groups that overlap: every value of each is one. Of several columns of True and False each is one group.
        training_groups : array of shape (n1,) or (n1, J), default None
            The groups of the training rows. They fix which groups there are, the ranges of numbers, and which groups
            are pooled.
        weights : array of shape (n,), default None
            How much likelier each row is among the rows to predict than among the calibration rows, up to a factor.
            Use them if the rows to predict come from another population. ``transform`` then needs weights too.
        max_weight : float, default None
            A bound on the weight of any row. ``guarantee="pac"`` needs it, and new rows then need no weights.
        """
        form, predicted = brought(lower, point, upper, self._options.request.side)
        predicted = predicted if self._options.targets is None else by_target(predicted)
        self._fitted = fit_arrays(
            self._options,
            form,
            with_axes(predicted),
            y,
            context=context,
            entities=entities,
            folds=folds,
            groups=groups,
            training_groups=training_groups,
            weights=weights,
            max_weight=max_weight,
        )
        return self

    def fit_predicted(
        self,
        predicted: Predicted,
        y: ArrayLike,
        *,
        context: Context | None = None,
        entities: ArrayLike | None = None,
        folds: ArrayLike | None = None,
        groups: Any = None,
        training_groups: Any = None,
        weights: ArrayLike | None = None,
        max_weight: float | None = None,
    ) -> BandCalibrator:
        """Calibrate on predictions of any kind, such as a ``PredictedGaussian``: each part ``(n,)`` or ``(K, n)``.

        Parameters
        ----------
        predicted : Predicted
            The predictions of the calibration rows; each part has the shape (n,) or (K, n).
        y : array of shape (n,)
            The true values.
        context : Context, default None
            What else is known of the rows, such as their group. Only for a guarantee of your own that uses it.
        entities : array of shape (n,), default None
            A label for each row, equal for rows that belong together, such as those of one patient. The promise is
            then for a new patient.
        folds : array of shape (n,), default None
            The fold of each row, as for ``fit``.
        groups : array of shape (n,) or (n, J), default None
            The group of each row, as for ``fit``.
        training_groups : array of shape (n1,) or (n1, J), default None
            The groups of the training rows, as for ``fit``.
        weights : array of shape (n,), default None
            How much likelier each row is among the rows to predict, as for ``fit``.
        max_weight : float, default None
            A bound on the weight of any row, as for ``fit``.
        """
        self._fitted = fit_arrays(
            self._options,
            KINDS.get(type(predicted)),
            with_axes(predicted),
            y,
            context=context,
            entities=entities,
            folds=folds,
            groups=groups,
            training_groups=training_groups,
            weights=weights,
            max_weight=max_weight,
        )
        return self

    def fit_table(
        self,
        X: Any,
        y: Any,
        columns: BandColumns,
        *,
        entities: Any = None,
        split_by: Sequence[str] | None = None,
        groups: str | Sequence[str] | Grouping | None = None,
        training: Any = None,
        weights: str | None = None,
        max_weight: float | None = None,
    ) -> BandCalibrator:
        """Calibrate on a table whose columns hold predictions; a missing or infinite value in them is refused.

        Parameters
        ----------
        X : table
            Calibration rows, in a table with columns of predictions.
        y : array of shape (n,)
            Their true values.
        columns : BandColumns
            Which columns hold lower bound, prediction and upper bound.
        entities : array of shape (n,), default None
            A label for each row, equal for rows that belong together, such as those of one patient. The promise is
            then for a new patient.
        split_by : sequence of str, default None
            The columns that ``entities`` were made of, to find them in other tables.
        groups : str, sequence of str or Grouping, default None
            The columns that make groups. Each group then has a promise of its own. The ``grouping`` of another rule
            keeps its groups.
        training : table, default None
            The training rows, with the columns of ``groups``. They fix which groups there are.
        weights : str, default None
            The column that holds the weight of each row. Other tables must have it too, unless the guarantee is "pac".
        max_weight : float, default None
            A bound on the weight of any row. ``guarantee="pac"`` needs it.
        """
        self._fitted = fit_columns(
            self._options,
            X,
            y,
            columns,
            entities=entities,
            split_by=split_by,
            groups=groups,
            training=training,
            weights=weights,
            max_weight=max_weight,
        )
        return self

    def transform(
        self,
        lower: ArrayLike | None,
        point: ArrayLike | None,
        upper: ArrayLike | None,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        context: Context | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
    ) -> Intervals:
        """Return the intervals of new predictions, at other levels if asked for.

        Parameters
        ----------
        lower : array of shape (n,) or (K, n), or None
            The lower bounds of new rows. None for a prediction alone.
        point : array of shape (n,) or (K, n), or None
            Their predictions. None means halfway between the bounds.
        upper : array of shape (n,) or (K, n), or None
            Their upper bounds. None for a prediction alone.
        confidence_level : float or sequence of float, default None
            Another confidence level, or several. None means the level given when the calibrator was made.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        context : Context, default None
            What is known of the new rows, for a guarantee of your own that uses it.
        groups : array of shape (n,) or (n, J), default None
            The group of each row, if ``fit`` was given groups. A group that is not known there gets infinite
            intervals, or those of the pooled groups.
        weights : array of shape (n,), default None
            The weight of each row, if ``fit`` was given weights and the guarantee is "marginal".
        """
        predicted = brought(lower, point, upper, self._options.request.side)[1]
        predicted = predicted if self._options.targets is None else by_target(predicted)
        levels = {"confidence_level": confidence_level, "alpha": alpha}
        return self.transform_predicted(predicted, **levels, context=context, groups=groups, weights=weights)

    def transform_predicted(
        self,
        predicted: Predicted,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        context: Context | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
    ) -> Intervals:
        """Return the intervals of new predictions of the kind that ``fit_predicted`` was given.

        Parameters
        ----------
        predicted : Predicted
            The predictions of new rows, of the kind given to ``fit_predicted``.
        confidence_level : float or sequence of float, default None
            Another confidence level, or several. None means the level given when the calibrator was made.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        context : Context, default None
            What is known of the new rows, for a guarantee of your own that uses it.
        groups : array of shape (n,) or (n, J), default None
            The group of each row, if ``fit_predicted`` was given groups.
        weights : array of shape (n,), default None
            The weight of each row, if ``fit_predicted`` was given weights and the guarantee is "marginal".
        """
        calibrated = self.calibration_.at(confidence_level, alpha)
        predicted = self._as_fitted(with_axes(predicted))
        known = self._known_of(groups, len(predicted), context, weights)
        return calibrated.intervals(calibrated.ends(self._options.ordered(predicted), known))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rule to one file; ``gb.load(path)`` and the command line read it.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from guardband.doors.model_file import save

        save(self, path)

    @classmethod
    def restored(
        cls,
        arguments: Mapping[str, Any],
        known: LoadedRows,
        like: Predicted,
        calibrate: Callable[[Rule], Calibrated],
        grouping: Grouping | None = None,
        weighting: Weighting | None = None,
    ) -> BandCalibrator:
        """Return a rule from a file; ``like`` is a prediction of one row, ``calibrate`` restores the calibration.

        Parameters
        ----------
        arguments : dict
            The arguments of the constructor.
        known : object
            What the file keeps of the calibration rows.
        like : Predicted
            A prediction of one row, of the kind given to ``fit``.
        calibrate : function
            Returns the calibration of a rule.
        grouping : object, default None
            The groups that have a promise of their own.
        weighting : object, default None
            Where the weights of rows come from.
        """
        made = cls(**arguments)
        options = made._options
        options.ordered(like)  # which refuses another number of candidates than the method takes
        rule = options.rule_for(known.columns.targets, grouping, weighting)
        if options.calibration != "split":
            rule = crossed(rule, options.calibration, like.candidates)
        made._fitted = FittedBands(calibrate(rule), like.candidates, known, grouping, weighting)
        return made

    def weighed_by(self, weighting: Weighting | None) -> BandCalibrator:
        """Return the same rule for rows that stand alone, and whose weights come from elsewhere.

        It is to be calibrated again.

        Parameters
        ----------
        weighting : Weighting or None
            Where the weights of rows come from, None if all count alike.
        """
        rule = self._options.rule_for(self.columns.targets, self.grouping, weighting)
        return self.calibrates_by(rule, weighting)

    def calibrates_by(self, rule: Rule, weighting: Weighting | None) -> BandCalibrator:
        """Return the same with another rule. It is to be calibrated again.

        Parameters
        ----------
        rule : Rule
            The rule.
        weighting : Weighting or None
            Where the weights of rows come from, None if all count alike.
        """
        return self._with(calibrated=replace(self.calibration_, rule=rule), weighting=weighting)

    def calibrated_by(
        self,
        calibrated: Calibrated,
        prints: Prints,
        entities: Labels | None = None,
        split_by: Sequence[str] | None = None,
    ) -> BandCalibrator:
        """Return the same rule with the calibration of other rows, of which there are fingerprints.

        Parameters
        ----------
        calibrated : Calibrated
            The calibration.
        prints : array of shape (n,)
            The fingerprints of its rows, perhaps none.
        entities : array of shape (K,), default None
            What the rows belong to, each once. None if they stand alone.
        split_by : sequence of str, default None
            The columns that say so.
        """
        repeat_rule = self.fitted_.repeat_rule if entities is not None and not split_by else None
        used = replace(self.fitted_, calibration_prints=prints, calibration_entities=entities, repeat_rule=repeat_rule)
        return self._with(calibrated=calibrated, rows=LoadedRows(self.columns, used, split_by))

    def _with(self, **changes: Any) -> BandCalibrator:
        out = copy(self)
        out._fitted = replace(self._found, **changes)
        return out

    def _repr_html_(self) -> str:
        from guardband.doors.shown import band_calibrator_html

        certificate = None if self._fitted is None else self.certificate
        return band_calibrator_html(certificate, self._options.method.name, self._options.request)
