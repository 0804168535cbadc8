"""Predictions from anywhere, calibrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.predicted import Context, Predicted, PredictedInterval
from guardband.bands.predicted_several import PredictedSeveral
from guardband.bands.promise import Side
from guardband.bands.risk import Risk
from guardband.calibration.calibrated import Block, Calibrated, OnInsufficient
from guardband.calibration.cross import BROUGHT, FEWEST_FOLDS, CalibrationKind, check_kind, crossed, refusal
from guardband.calibration.pav import Average
from guardband.calibration.rule import Rule
from guardband.data.entities import Entities, Labels, entities_of_labels
from guardband.data.fingerprint import Prints
from guardband.data.group_labels import columns_of_labels, different_labels
from guardband.data.grouping import BINS, Codes, Grouping, SmallGroups, group_names, named_columns
from guardband.data.row_numbers import known_as
from guardband.data.table import Table
from guardband.data.target import read_target
from guardband.doors.band_columns import KINDS, BandColumns, Form, brought, by_target, with_axes
from guardband.doors.band_rows import SORT, BandRows, KnownRows, LoadedRows
from guardband.doors.fold_labels import fold_numbers, refuse_folds
from guardband.doors.groups import GroupOptions, grouped
from guardband.doors.several_bands import known_rows, labelled_rows
from guardband.doors.weights import Weighting, refuse_entities, weighted
from guardband.learning.several import Targets, check_targets, several_rule
from guardband.methods.method import Guarantee, Method, Request
from guardband.methods.registry import method_named
from guardband.words import rows_named

if TYPE_CHECKING:
    from guardband.audit.audit import Audit

Array = NDArray[np.float64]

ROWS_AT_A_TIME = 2**15
SWAP = 'Swap the arguments, or pass crossing="sort".'


class BandCalibrator(BandRows):
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
        crossing: Literal["raise", "sort"] = "raise",
        calibration: CalibrationKind = "split",
        small_groups: SmallGroups = "inf",
        missing_groups: bool = False,
        group_bins: int = BINS,
        targets: Targets | None = None,
        scales: Sequence[float] | None = None,
    ) -> None:
        if crossing not in ("raise", "sort"):
            raise ValueError(f"crossing must be 'raise' or 'sort', found {crossing!r}.")
        options = {
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
        }
        self._request = Request.of(**options)
        self._method = method_named(method)
        self._method.check(self._request)
        self._rule = self._method.rule(self._request)
        check_kind(calibration)
        if calibration != "split":
            crossed(self._rule, calibration, FEWEST_FOLDS)  # refuses what cannot be
            if targets is not None:
                raise ValueError(refusal(calibration, "several targets"))
        check_targets(targets, self._request, self._method)
        if scales is not None and targets != "joint":
            raise ValueError('scales are for targets="joint". Remove scales, or set targets="joint".')
        self._targets, self._scales = targets, None if scales is None else tuple(map(float, scales))
        self._crossing, self._calibration = crossing, calibration
        how = {"small_groups": small_groups, "missing_groups": missing_groups, "group_bins": group_bins}
        self._group_options, self._grouping, self._weighting = GroupOptions.of(how), None, None
        self.arguments = {"method": self._method, **options, "crossing": crossing, "calibration": calibration, **how}
        self.arguments |= {"targets": targets, "scales": self._scales}
        self._calibrated: Calibrated | None = None
        self._candidates = 0
        self._known: KnownRows | LoadedRows | None = None

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
        form, predicted = brought(lower, point, upper, self._request.side)
        if self._calibration != "split":
            idle = {"training_groups": training_groups, "weights": weights, "max_weight": max_weight}
            self._refuse_idle(entities=entities, groups=groups, context=context, **idle)
            return self._fit_crossed(form, with_axes(predicted), y, folds)
        refuse_folds(folds)
        predicted = predicted if self._targets is None else by_target(predicted)
        found = self._learn_groups(groups, training_groups, len(predicted))
        weighting = Weighting.of(weights, max_weight)
        context = self._with_weights(context, weighting, None, weights, len(with_axes(predicted)))
        return self._fit(form, with_axes(predicted), y, context, entities, found, weighting=weighting)

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
        axes = with_axes(predicted)
        if self._calibration != "split":
            idle = {"training_groups": training_groups, "weights": weights, "max_weight": max_weight}
            self._refuse_idle(entities=entities, groups=groups, context=context, **idle)
            return self._fit_crossed(KINDS.get(type(predicted)), axes, y, folds)
        refuse_folds(folds)
        found = self._learn_groups(groups, training_groups, len(axes))
        weighting = Weighting.of(weights, max_weight)
        context = self._with_weights(context, weighting, None, weights, len(axes))
        return self._fit(KINDS.get(type(predicted)), axes, y, context, entities, found, weighting=weighting)

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
        if self._calibration != "split":
            raise ValueError(refusal(self._calibration, "a table of predictions, which has no folds"))
        matrix, found = columns.numbers_in(X), None
        if isinstance(groups, Grouping):
            found = groups, groups.of(named_columns(X, groups.column_names))
        elif groups is not None:
            names, first = group_names(groups), X if training is None else training
            own = named_columns(first, names)
            learnt = self._group_options.learn(
                self._rule, own, tuple(names), len(matrix), are_training_rows=training is not None
            )
            found = learnt, learnt.of(named_columns(X, names))
        weighting = Weighting.of(weights, max_weight)
        context = self._with_weights(None, weighting, X, weights, len(matrix))
        predicted = columns.predicted(matrix)
        return self._fit(columns.form, predicted, y, context, entities, found, columns, split_by, weighting)

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
        predicted = brought(lower, point, upper, self._request.side)[1]
        predicted = predicted if self._targets is None else by_target(predicted)
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
        return calibrated.intervals(calibrated.ends(self._ordered(predicted), known))

    def audit(
        self,
        lower: ArrayLike | None,
        point: ArrayLike | None,
        upper: ArrayLike | None,
        y: ArrayLike,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        significance: float = 0.01,
    ) -> Audit:
        """Return what new predictions with known true values say of the promise.

        Parameters
        ----------
        lower : array of shape (n,) or (K, n), or None
            The lower bounds of test rows, as ``fit`` takes them. Test rows did not calibrate the rule.
        point : array of shape (n,) or (K, n), or None
            Their predictions.
        upper : array of shape (n,) or (K, n), or None
            Their upper bounds.
        y : array of shape (n,)
            Their true values.
        group : array of shape (n,), default None
            Coverage is shown for each of these values.
        time : array of shape (n,), default None
            Rows are put in this order to show coverage over time.
        entities : array of shape (n,), default None
            What each row belongs to, if ``fit`` was told so.
        groups : array of shape (n,) or (n, J), default None
            The group of each row that has a promise of its own, if ``fit`` was given groups.
        weights : array of shape (n,), default None
            The weight of each row, if ``fit`` was given weights and the guarantee is "marginal".
        significance : float, default 0.01
            How often rows that keep the promise may be called broken.
        """
        from guardband.audit.several import audit_of

        sides = {"group": group, "time": time, "entities": entities, "groups": groups, "weights": weights}
        return audit_of(self._evidence(lower, point, upper, y, **sides), significance)

    def report(
        self,
        path: str | PathLike[str],
        lower: ArrayLike | None = None,
        point: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        significance: float = 0.01,
        title: str = "",
        author: str = "",
        unit: str = "",
    ) -> Path:
        """Write the page of the rule and return its path; with predictions and true values it shows their audit.

        Parameters
        ----------
        path : str or path
            The HTML file to write.
        lower : array of shape (n,) or (K, n), default None
            The lower bounds of test rows, as ``fit`` takes them. Without test rows the page shows the promise
            alone.
        point : array of shape (n,) or (K, n), default None
            Their predictions.
        upper : array of shape (n,) or (K, n), default None
            Their upper bounds.
        y : array of shape (n,), default None
            Their true values.
        group : array of shape (n,), default None
            A group for each row. Coverage is shown for each group.
        time : array of shape (n,), default None
            The time of each row, to look for changes over time.
        entities : array of shape (n,), default None
            What each row belongs to, if you gave ``entities`` to ``fit``.
        groups : array of shape (n,) or (n, J), default None
            The group of each row that has a promise of its own, if you gave ``groups`` to ``fit``.
        weights : array of shape (n,), default None
            The weight of each row, if you gave ``weights`` to ``fit`` and the guarantee is "marginal".
        significance : float, default 0.01
            How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
        title : str, default ""
            The heading of the page. Without one, the page names the confidence level and the target.
        author : str, default ""
            Who made the page. It stands beside the date.
        unit : str, default ""
            The unit of the target, such as "EUR". It stands behind predictions, interval ends and widths.
        """
        from guardband.report.document import document
        from guardband.report.heading import Heading
        from guardband.report.page import write_report

        evidence = None
        if y is not None or not lower is point is upper is None:
            sides = {"group": group, "time": time, "entities": entities, "groups": groups, "weights": weights}
            evidence = self._evidence(lower, point, upper, y, **sides)
        return write_report(document(self, evidence, significance, Heading(title, author, unit)), Path(path))

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
        made._ordered(like)  # which refuses another number of candidates than the method takes
        one = made._several(known.columns.targets) if known.columns.targets else made._rule
        rule = weighted(grouped(one, grouping), weighting)
        if made._calibration != "split":
            rule = crossed(rule, made._calibration, like.candidates)
        made._calibrated, made._candidates = calibrate(rule), like.candidates
        made._known, made._grouping, made._weighting = known, grouping, weighting
        return made

    def weighed_by(self, weighting: Weighting | None) -> BandCalibrator:
        """Return the same rule for rows that stand alone, and whose weights come from elsewhere.

        It is to be calibrated again.

        Parameters
        ----------
        weighting : Weighting or None
            Where the weights of rows come from, None if all count alike.
        """
        one = self._rule if self._targets is None else self._several(self.columns.targets)
        return self.calibrates_by(weighted(grouped(one, self._grouping), weighting), weighting)

    def calibrates_by(self, rule: Rule, weighting: Weighting | None) -> BandCalibrator:
        """Return the same with another rule. It is to be calibrated again.

        Parameters
        ----------
        rule : Rule
            The rule.
        weighting : Weighting or None
            Where the weights of rows come from, None if all count alike.
        """
        out = copy(self)
        out._calibrated, out._weighting = replace(self.calibration_, rule=rule), weighting
        return out

    def read_labelled(self, X: Any) -> tuple[Predicted, Context, Table]:
        """Return the predictions in another table, the groups of its rows, and the rows as the rule knows them.

        Parameters
        ----------
        X : table
            Some rows, with the columns of predictions and of groups.
        """
        columns = self.columns
        matrix, codes = columns.numbers_in(X), None
        if self._grouping is not None:
            codes = self._grouping.of(named_columns(X, self._grouping.column_names))
        predicted = self._ordered(columns.predicted(matrix), 0, SORT)
        return predicted, _with_group(None, codes), columns.table(matrix)

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
        out = copy(self)
        out._calibrated, out._known = calibrated, LoadedRows(self.columns, used, split_by)
        return out

    def _repr_html_(self) -> str:
        from guardband.doors.shown import band_calibrator_html

        certificate = None if self._calibrated is None else self.certificate
        return band_calibrator_html(certificate, self._method.name, self._request)

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self.calibration_.certificate

    @property
    def calibration_(self) -> Calibrated:
        """The calibrated rule."""
        if self._calibrated is None:
            from sklearn.exceptions import NotFittedError  # loading scikit-learn takes as long as loading torch

            raise NotFittedError("This BandCalibrator is not calibrated yet: call fit first.")
        return self._calibrated

    def _fit(
        self,
        form: Form | None,
        predicted: Predicted,
        y: ArrayLike,
        context: Context | None,
        entities: Any,
        groups: tuple[Grouping, Codes] | None,
        columns: BandColumns | None = None,
        split_by: Sequence[str] | None = None,
        weighting: Weighting | None = None,
    ) -> BandCalibrator:
        grouping, codes = groups or (None, None)
        rule, context = self._rule, _with_group(context, codes)
        notes: tuple[str, ...] = ()
        if self._targets is None:
            response = read_target(y, len(predicted))
        else:
            rows, response, names, notes = known_rows(y, len(predicted), self._targets, columns)
            predicted, context, rule = predicted.rows(rows), context.rows(rows), self._several(names)
            entities = None if entities is None else labelled_rows(entities, rows)
        rule = weighted(grouped(rule, grouping), weighting)
        context.check(rule.uses, len(predicted), rule.method)
        on_insufficient, together = self._request.on_insufficient, None
        hint = SWAP if columns is None else SORT
        if entities is None:
            blocks = self._blocks(predicted, response, context, hint)
            calibrated = Calibrated.from_blocks(rule, blocks, notes, on_insufficient)
        else:
            together = entities if isinstance(entities, Entities) else entities_of_labels(entities, len(response))
            refuse_entities(together, weighting)
            block = (self._ordered(predicted, 0, hint), response, context)
            calibrated = Calibrated.from_entities(rule, block, together, notes, on_insufficient)
        if form is not None and columns is None:
            columns = BandColumns.default(form, predicted.candidates, rule.target_names)
        self._calibrated, self._candidates = calibrated, predicted.candidates
        self._grouping, self._weighting = grouping, weighting
        self._known = KnownRows(columns, predicted, response, together, split_by)
        return self

    def _fit_crossed(self, form: Form | None, predicted: Predicted, y: ArrayLike, folds: Any) -> BandCalibrator:
        """Calibrate on each row's prediction by the model of its fold; columns are those of new rows, of all models."""
        response = read_target(y, len(predicted))
        number, count = fold_numbers(folds, len(response), self._calibration)
        rule = crossed(self._rule, self._calibration, count)
        blocks = self._blocks(predicted, response, Context(fold=number), SWAP)
        self._calibrated = Calibrated.from_blocks(rule, blocks, (BROUGHT,), self._request.on_insufficient)
        self._candidates, self._grouping, self._weighting = count, None, None
        columns = None if form is None else BandColumns.default(form, count)
        every = predicted.map(lambda part: np.broadcast_to(part, (1, count, part.shape[-1])))
        self._known = KnownRows(columns, every, response)
        return self

    def _refuse_idle(self, **given: Any) -> None:
        for name, value in given.items():
            if value is not None:
                raise ValueError(refusal(self._calibration, name))

    def _several(self, names: tuple[str, ...]) -> Rule:
        """Return the rule of several targets."""
        return several_rule(self._method, self._request, self._targets, names, self._scales or ())

    def _learn_groups(self, groups: Any, training: Any, n: int) -> tuple[Grouping, Codes] | None:
        """Return the groups that labels name, of training rows if there are any, and those of the n rows."""
        if groups is None:
            if training is not None:
                raise ValueError("training_groups says nothing of the calibration rows. Pass groups= too.")
            return None
        first = different_labels(groups, n) if training is None else columns_of_labels(training, len(training))
        learnt = self._group_options.learn(self._rule, first, None, n, are_training_rows=training is not None)
        return learnt, learnt.of_labels(groups, n)

    def _with_weights(
        self, context: Context | None, weighting: Weighting | None, X: Any, weights: Any, n: int
    ) -> Context:
        """Return what is known of n calibration rows, with their weights."""
        own = context or Context()
        return own if weighting is None else replace(own, weight=weighting.of_calibration(X, n, weights))

    def _blocks(self, predicted: Predicted, y: Array, context: Context, hint: str) -> Iterator[Block]:
        """Give a part at a time, which stays in the cache: only the scores of all rows are in memory."""
        for start in range(0, len(y), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            yield self._ordered(predicted.rows(rows), start, hint), y[rows], context.rows(rows)

    def _ordered(self, predicted: Predicted, first_row: int = 0, hint: str = SWAP) -> Predicted:
        """Return the candidates in the order that the rule expects."""
        if isinstance(predicted, PredictedSeveral):
            return PredictedSeveral(tuple(self._ordered(own, first_row, hint) for own in predicted.targets))
        order = self._method.order(self._request, predicted.candidates if self._calibration == "split" else 1)
        if self._calibration == "split" and order != list(range(len(order))):
            predicted = predicted.map(lambda part: part[:, order])
        if self._crossing == "sort" and isinstance(predicted, PredictedInterval):
            bands = np.stack(predicted.parts)
            return PredictedInterval(*np.where(np.isnan(bands).any(0), bands, np.sort(bands, axis=0)))
        refuse_faults(predicted, first_row, hint)
        return predicted

    def _as_fitted(self, predicted: Predicted) -> Predicted:
        if predicted.candidates != self._candidates:
            raise ValueError(f"Expected {self._candidates} band(s), as fit was given, found {predicted.candidates}.")
        return predicted


def _with_group(context: Context | None, codes: Codes | None) -> Context:
    context = context or Context()
    return context if codes is None else replace(context, group=codes)


def refuse_faults(predicted: Predicted, first_row: int = 0, hint: str | None = None) -> None:
    """Raise if rows hold what no prediction can be: bounds that cross, or a deviation that is not positive."""
    faults, rule = predicted.faults()
    rows = np.flatnonzero(faults) + first_row
    if len(rows):
        mend = hint if hint and isinstance(predicted, PredictedInterval) else predicted.hint
        raise ValueError(
            f"{rule} must hold in every row, found {len(rows)} where it does not ({rows_named(known_as(rows))}). {mend}"
        )
