"""What a calibration on Ray asks of a model: to summarise some rows on a worker, and to be made of all summaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.bands.predicted import Context
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary
from guardband.calibration.cross import need_held_out
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.joint import JointConformal
from guardband.calibration.rejection_cut import RejectionCut
from guardband.calibration.rule import Rule
from guardband.calibration.several import SeveralRule
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Array, Summary
from guardband.data.encoder import TableEncoder
from guardband.data.entities import Labels
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.kinds import Kind
from guardband.data.several_targets import SeveralTargets, key_of, named
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.data.whole_numbers import is_whole
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.doors.weights import Weighting, weighted, with_weights
from guardband.exceptions import TargetWarning, warn
from guardband.learning.learned import Learned
from guardband.ray.belonging import Belongs, Together
from guardband.ray.weighing import weights_of, with_weight_column
from guardband.words import listed

NONE: Prints = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Summarised:
    """What a model keeps of some rows.

    Parameters
    ----------
    summary : Summary
        What its rule keeps.
    prints : array of shape (n,)
        Their fingerprints.
    is_whole : tuple of bool
        Whether all true values of each target are whole numbers.
    """

    summary: Summary
    prints: Prints
    is_whole: tuple[bool, ...]


class Asked(ABC):
    """A model as a calibration sees it. It goes to every worker."""

    kinds: Mapping[str, Any]
    """The columns that it needs, and what each is; None as it comes."""
    rule: Rule
    """How it calibrates."""
    training_prints: Prints = NONE
    """Fingerprints of the rows that trained it."""
    by_chance: bool = True
    """Whether training rows are equal by chance alone."""
    weighting: Weighting | None = None
    """Where the weights of rows come from, if they have any."""
    belonging: Belongs | None = None
    """What rows belong to, None if they stand alone."""
    training_entities: Labels | None = None
    """What the training rows belong to."""

    def weights(self, X: Any, n: int, place: str) -> Array | None:
        """Return the weights of some rows, None if all count alike.

        Parameters
        ----------
        X : table
            Some rows.
        n : int
            How many they are.
        place : str
            Where they are, in words.
        """
        return None if self.weighting is None else weights_of(self.weighting, X, n, place)

    def labels(self, table: Table, X: Any, y: Array, place: str) -> Labels | None:
        """Return what some rows belong to, None if they stand alone.

        Parameters
        ----------
        table : Table
            The rows as the model reads them.
        X : table
            The rows.
        y : array of shape (n,)
            Their true values.
        place : str
            Where they are, in words.
        """
        return None if self.belonging is None else self.belonging.labels(table, X, y, place)

    @abstractmethod
    def summarised(self, X: Any, y: Array, place: str) -> Summarised:
        """Return what the model keeps of some rows.

        Parameters
        ----------
        X : table
            Some rows.
        y : array of shape (n,) or (n, q)
            Their true values, NaN where one of several targets is missing.
        place : str
            Where they are, in words.
        """

    @abstractmethod
    def finished(
        self,
        summary: Summary,
        notes: tuple[str, ...],
        prints: Prints,
        is_whole: tuple[bool, ...],
        together: Together | None = None,
    ) -> Any:
        """Return the calibrated model.

        Parameters
        ----------
        summary : Summary
            What was kept of all rows.
        notes : tuple of str
            What is to be said of them.
        prints : array of shape (n,)
            Their fingerprints, perhaps none.
        is_whole : tuple of bool
            Whether all true values of each target are whole numbers.
        together : Together, default None
            What the rows belong to, None if they stand alone.
        """

    def _set_rule(self, rule: Rule, weighting: Weighting | None, belonging: Belongs | None) -> None:
        """Keep how rows with these weights, or of these entities, are calibrated."""
        if belonging is not None and belonging.rule is None and weighting is not None:
            raise ValueError(
                "Weights are for rows that stand alone, and these belong together. Remove weights, or entities and "
                "split_by."
            )
        shared = None if belonging is None else weighted(rule, weighting).for_entities()
        self.rule = weighted(rule, weighting) if shared is None else shared
        self.weighting, self.belonging = weighting, belonging
        if belonging is not None and shared is None and not self.can_count:
            raise ValueError(
                f"method={self.rule.method!r} takes one row of each {belonging.name}, which Ray cannot do yet. Use "
                "calibrate on one machine."
            )

    @property
    def draws(self) -> bool:
        """Whether one row of each entity stands for all of its rows."""
        return self.belonging is not None and "entity" not in self.rule.uses

    def _summarised(
        self, predicted: Any, y: Array, context: Context, weights: Array | None, labels: Labels | None
    ) -> Summary:
        """Return what the rule keeps of some rows, with what they belong to."""
        context = with_weights(context, weights)
        if labels is not None and not self.draws:
            context = replace(context, entity=labels)
        self.rule.check(predicted, context)
        out = self.rule.summarise(predicted, y, context)
        if not self.draws:
            return out
        assert labels is not None
        return replace(out, blocks=({**out.blocks[0], "entity": labels, "y": y},))

    @property
    def needs_all_targets(self) -> bool:
        """Whether rows that lack one of several targets cannot calibrate."""
        return isinstance(self.rule, JointConformal)

    @property
    def groups(self) -> int:
        """How many groups have a promise of their own, 0 without groups."""
        rule = self.rule.rules[0] if isinstance(self.rule, Sided) else self.rule
        cut = rule.cut if isinstance(rule, Conformal) else None
        cut = cut.base if isinstance(cut, RejectionCut) else cut
        return len(cut.names) if isinstance(cut, GroupedCut) else 0

    @property
    def can_count(self) -> bool:
        """Whether counts of its scores are enough."""
        return isinstance(self.rule, Conformal | Sided | SeveralRule)


class TableAsked(Asked):
    """A fitted model of tables.

    Parameters
    ----------
    model : TableModel
        The model. Its own calibration is not looked at.
    names : sequence of str
        The columns that there are.
    weighting : Weighting, default None
        Where the weights of rows come from, if they have any.
    split_by : str or sequence of str, default None
        The columns that say what rows belong to, if the model does not know.
    """

    def __init__(
        self,
        model: TableModel,
        names: Sequence[str],
        weighting: Weighting | None = None,
        split_by: str | Sequence[str] | None = None,
    ) -> None:
        fitted = model.fitted_
        need_held_out(fitted.rule, "calibrate on other rows")
        if fitted.trained_until is not None:
            raise ValueError("The model was split by time, which Ray cannot calibrate yet. Use model.calibrate.")
        self.model = copy(model)
        self._set_rule(fitted.rule, weighting, Belongs.of(model.belonging, fitted.has_labels, split_by, names))
        self.model.fitted_ = replace(fitted, calibrated=None, weighting=None, source=None, known=None, places=None)
        kinds = with_weight_column(kinds_of_model(model, names), weighting, names)
        self.kinds = kinds if self.belonging is None else self.belonging.with_columns(kinds)
        self.training_entities = fitted.training_entities
        # In order, because every block of rows is looked for among them.
        self.training_prints, self.by_chance = np.sort(fitted.training_prints), fitted.training_entities is None

    def summarised(self, X: Any, y: Array, place: str) -> Summarised:
        """Return what the model keeps of some rows."""
        fitted = self.model.fitted_
        table, target = self.model.read_rows(X), fitted.learned.target
        weights, labels = self.weights(X, len(y), place), self.labels(table, X, y, place)
        summary = self._summarised(fitted.predict(table), target.to_work(y), table.context, weights, labels)
        return Summarised(summary, _prints(table, y), _are_whole(y))

    def finished(
        self,
        summary: Summary,
        notes: tuple[str, ...],
        prints: Prints,
        is_whole: tuple[bool, ...],
        together: Together | None = None,
    ) -> Any:
        """Return the calibrated model."""
        fitted = self.model.fitted_
        learned, target = fitted.learned, fitted.learned.target
        assert isinstance(learned, Learned)
        if isinstance(target, SeveralTargets):
            each = list(target.each)
            for j, name in enumerate(target.names):
                with named(name):
                    each[j] = _decided_again(each[j], is_whole[j])
            _need_rows_of_each(self.rule, summary)
            target = replace(target, each=tuple(each))
        else:
            target = _decided_again(target, *is_whole)
        notes = (*notes, *target.notes, *fitted.doubts)
        out = copy(self.model)
        out.fitted_ = replace(
            fitted,
            learned=replace(learned, target=target),
            calibrated=_calibrated(
                self.rule, summary, notes, fitted.params["on_insufficient"], together, target.to_units
            ),
            weighting=self.weighting,
            calibration_prints=prints,
            calibration_entities=None if together is None else together.labels,
        )
        return out


class RuleAsked(Asked):
    """A rule for predictions in columns.

    Parameters
    ----------
    rule : BandCalibrator
        The rule, calibrated on some first rows: from them it knows its columns and groups.
    names : sequence of str
        The columns that there are.
    weighting : Weighting, default None
        Where the weights of rows come from. None means that the rule knows, if they have any.
    split_by : str or sequence of str, default None
        The columns that say what rows belong to, if the rule does not know.
    """

    def __init__(
        self,
        rule: BandCalibrator,
        names: Sequence[str],
        weighting: Weighting | None = None,
        split_by: str | Sequence[str] | None = None,
    ) -> None:
        weighting = rule.weighting if weighting is None else weighting
        known = rule.fitted_
        belonging = Belongs.of(rule.belonging, known.has_labels, split_by, names, are_apart=True)
        self._set_rule(rule.weighed_by(None).calibration_.rule, weighting, belonging)
        self.own = rule.calibrates_by(self.rule, weighting)
        kinds: dict[str, Any] = dict.fromkeys(rule.columns.names, "number")
        if rule.grouping is not None:
            kinds = {column.name: column.kind for column in rule.grouping.columns} | kinds
        kinds = with_weight_column(kinds, weighting, names)
        self.kinds = kinds if self.belonging is None else self.belonging.with_columns(kinds)

    def summarised(self, X: Any, y: Array, place: str) -> Summarised:
        """Return what the rule keeps of some rows."""
        predicted, context, table = self.own.read_labelled(X)
        weights, labels = self.weights(X, len(y), place), self.labels(table, X, y, place)
        summary = self._summarised(predicted, y, context, weights, labels)
        return Summarised(summary, _prints(table, y), _are_whole(y))

    def finished(
        self,
        summary: Summary,
        notes: tuple[str, ...],
        prints: Prints,
        is_whole: tuple[bool, ...],
        together: Together | None = None,
    ) -> Any:
        """Return the calibrated rule."""
        before = self.own.calibration_
        calibrated = _calibrated(self.rule, summary, notes, before.on_insufficient, together)
        if together is None:
            return self.own.calibrated_by(calibrated, prints)
        assert self.belonging is not None
        return self.own.calibrated_by(calibrated, prints, together.labels, self.belonging.apart)


def _prints(table: Table, y: Array) -> Prints:
    return fingerprints(table, y if y.ndim == 1 else key_of(y))


def _are_whole(y: Array) -> tuple[bool, ...]:
    """Return of each target whether all known values are whole numbers."""
    return tuple(bool((is_whole(own) | np.isnan(own)).all()) for own in np.atleast_2d(y.T))


def _decided_again(target: Target, is_whole: bool) -> Target:
    """Return the target for these rows: without whole numbers if only those given to fit were all whole."""
    if not target.whole or is_whole:
        return target
    if target.integer:
        raise ValueError("With integer=True every target must be a whole number. Correct the target.")
    warn(
        "The targets given to fit are whole numbers, but not all of these are. guardband no longer rounds "
        "intervals to whole numbers. Fit with integer=False (--no-integer) to avoid this.",
        TargetWarning,
    )
    return replace(target, whole=False)


def _need_rows_of_each(rule: Rule, summary: Summary) -> None:
    assert isinstance(rule, SeveralRule)
    for j, name in enumerate(rule.targets):
        if not rule.target_summary(j, summary).n:
            raise ValueError(f"The target {name!r} is missing in every row. Fill it in, or leave it out.")


def kinds_of_model(model: TableModel, names: Sequence[str]) -> dict[str, Kind]:
    """Return the columns that a model needs, and what each is; columns that are not there are an error.

    Parameters
    ----------
    model : TableModel
        The model.
    names : sequence of str
        The columns that there are.
    """
    own = list(getattr(model, "feature_names_in_", []))
    if not own:
        raise ValueError("The model was fitted on columns without names. Fit it on a table with names.")
    encoder, grouping = model.fitted_.learned.encoder, model.fitted_.grouping
    plain: Sequence[Kind] = ["number"] * len(own)
    kinds = encoder.kinds if isinstance(encoder, TableEncoder) else plain
    needed = () if grouping is None else grouping.column_names
    may_lack = {name for name in encoder.unlearnt(own) if name not in needed}
    missing = [name for name in own if name not in names and name not in may_lack]
    if missing:
        raise ValueError(
            f"The data lack {len(missing)} of the model's {len(own)} columns: {listed(missing, 10)}. Add them, or fit "
            "a model without them."
        )
    return {name: kind for name, kind in zip(own, kinds, strict=True) if name in names}


def _calibrated(
    rule: Rule,
    summary: Summary,
    notes: tuple[str, ...],
    on_insufficient: Any,
    together: Together | None,
    *to_units: Any,
) -> Calibrated:
    """Return what the rule finds; a summary that needs the workers is replaced by what it was asked for."""
    more: dict[str, Any] = {"to_units": to_units[0]} if to_units else {}
    if together is not None:
        more["unit"] = together.unit
    out = Calibrated.from_blocks(rule, [], notes, on_insufficient, gather=lambda own: [summary], **more)
    return replace(out, summary=summary.settled()) if isinstance(summary, CountedSummary) else out
