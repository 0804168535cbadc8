"""What a calibration on Ray asks of a model: to summarise some rows on a worker, and to be made of all summaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary
from guardband.calibration.cross import need_held_out
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rejection_cut import RejectionCut
from guardband.calibration.rule import Rule
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Array, Summary
from guardband.data.encoder import TableEncoder
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.kinds import Kind
from guardband.data.whole_numbers import is_whole
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.doors.weights import Weighting, weighted, with_weights
from guardband.exceptions import TargetWarning, warn
from guardband.learning.learned import Learned
from guardband.words import listed, number

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
    is_whole : bool
        Whether all true values are whole numbers.
    """

    summary: Summary
    prints: Prints
    is_whole: bool


class Asked(ABC):
    """A model as a calibration sees it. It goes to every worker."""

    kinds: Mapping[str, Kind]
    """The columns that it needs."""
    rule: Rule
    """How it calibrates."""
    training_prints: Prints = NONE
    """Fingerprints of the rows that trained it."""
    by_chance: bool = True
    """Whether training rows are equal by chance alone."""
    weighting: Weighting | None = None
    """Where the weights of rows come from, if they have any."""

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

    @abstractmethod
    def summarised(self, X: Any, y: Array, weights: Array | None = None) -> Summarised:
        """Return what the model keeps of some rows.

        Parameters
        ----------
        X : table
            Some rows.
        y : array of shape (n,)
            Their true values.
        weights : array of shape (n,), default None
            Their weights, if they have any.
        """

    @abstractmethod
    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: bool) -> Any:
        """Return the calibrated model.

        Parameters
        ----------
        summary : Summary
            What was kept of all rows.
        notes : tuple of str
            What is to be said of them.
        prints : array of shape (n,)
            Their fingerprints, perhaps none.
        is_whole : bool
            Whether all true values are whole numbers.
        """

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
        return isinstance(self.rule, Conformal | Sided)


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
    """

    def __init__(self, model: TableModel, names: Sequence[str], weighting: Weighting | None = None) -> None:
        fitted = model.fitted_
        need_held_out(fitted.rule, "calibrate on other rows")
        if model.belonging.names_entities or fitted.repeat_rule is not None:
            raise ValueError(
                "The model knows rows that belong together, which Ray cannot calibrate yet. Use calibrate."
            )
        if fitted.trained_until is not None:
            raise ValueError("The model was split by time, which Ray cannot calibrate yet. Use model.calibrate.")
        if fitted.rule.target_names or not isinstance(fitted.learned, Learned):
            raise ValueError("Ray calibrates models of one target. Use model.calibrate for several.")
        self.model, self.rule, self.weighting = copy(model), weighted(fitted.rule, weighting), weighting
        self.model.fitted_ = replace(fitted, calibrated=None, weighting=None, source=None, known=None, places=None)
        self.kinds = with_weight_column(kinds_of_model(model, names), weighting, names)
        # In order, because every block of rows is looked for among them.
        self.training_prints, self.by_chance = np.sort(fitted.training_prints), fitted.training_entities is None

    def summarised(self, X: Any, y: Array, weights: Array | None = None) -> Summarised:
        """Return what the model keeps of some rows."""
        fitted = self.model.fitted_
        table, target = self.model.read_rows(X), fitted.learned.target
        predicted, context = fitted.predict(table), with_weights(table.context, weights)
        self.rule.check(predicted, context)
        summary = self.rule.summarise(predicted, target.to_work(y), context)
        return Summarised(summary, fingerprints(table, y), bool(is_whole(y).all()))

    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: bool) -> Any:
        """Return the calibrated model."""
        fitted = self.model.fitted_
        learned, target = fitted.learned, fitted.learned.target
        assert isinstance(learned, Learned)
        if target.whole and not is_whole:
            if target.integer:
                raise ValueError("With integer=True every target must be a whole number. Correct the target.")
            warn(
                "The targets given to fit are whole numbers, but not all of these are. guardband no longer rounds "
                "intervals to whole numbers. Fit with integer=False (--no-integer) to avoid this.",
                TargetWarning,
            )
            target = replace(target, whole=False)
        notes = (*notes, *target.notes, *fitted.doubts)
        out = copy(self.model)
        out.fitted_ = replace(
            fitted,
            learned=replace(learned, target=target),
            calibrated=_calibrated(self.rule, summary, notes, fitted.params["on_insufficient"], target.to_units),
            weighting=self.weighting,
            calibration_prints=prints,
            calibration_entities=None,
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
    """

    def __init__(self, rule: BandCalibrator, names: Sequence[str], weighting: Weighting | None = None) -> None:
        if rule.calibration_.rule.target_names:
            raise ValueError("Ray calibrates rules of one target. Use calibrate for several.")
        self.weighting = rule.weighting if weighting is None else weighting
        self.own = rule.weighed_by(self.weighting)
        self.rule = self.own.calibration_.rule
        if "entity" in self.rule.uses:
            raise ValueError("Ray calibrates rules of one target, without entities. Use calibrate.")
        kinds: dict[str, Kind] = dict.fromkeys(rule.columns.names, "number")
        if rule.grouping is not None:
            kinds = {column.name: column.kind for column in rule.grouping.columns} | kinds
        self.kinds = with_weight_column(kinds, self.weighting, names)

    def summarised(self, X: Any, y: Array, weights: Array | None = None) -> Summarised:
        """Return what the rule keeps of some rows."""
        summary, table = self.own.summarised(X, y, weights)
        return Summarised(summary, fingerprints(table, y), True)

    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: bool) -> Any:
        """Return the calibrated rule."""
        before = self.own.calibration_
        return self.own.calibrated_by(_calibrated(self.rule, summary, notes, before.on_insufficient), prints)


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


def with_weight_column(kinds: Mapping[str, Kind], weighting: Weighting | None, names: Sequence[str]) -> dict[str, Kind]:
    """Return the columns that a model needs together with the column of weights, if there is one.

    Parameters
    ----------
    kinds : dict of str to Kind
        The columns that it needs otherwise, and what each is.
    weighting : Weighting or None
        Where the weights of rows come from, None if all count alike.
    names : sequence of str
        The columns that there are.
    """
    if weighting is None or weighting.function is not None or weighting.estimate is not None:
        return dict(kinds)
    column = weighting.column
    if column is None:
        raise ValueError("The weights of this model are numbers from Python. Name their column with weights=...")
    if column not in names:
        raise ValueError(f"There is no column {column!r} of weights. The columns are {listed(names, 10)}. Name one.")
    return {column: "number", **kinds}


def weighting_of_new(model: TableModel | BandCalibrator) -> Weighting | None:
    """Return where the weights of new rows come from, None if a calibrated model needs none."""
    weighting = model.fitted_.weighting if isinstance(model, TableModel) else model.weighting
    return weighting if "weight" in model.calibration_.rule.uses_of_new else None


def weights_of(weighting: Weighting, X: Any, n: int, place: str) -> Array:
    """Return the weights of some rows; what is no weight is refused with the place where it stands.

    Parameters
    ----------
    weighting : Weighting
        Where the weights of rows come from.
    X : table
        The rows.
    n : int
        How many they are.
    place : str
        Where they are, in words.
    """
    weights = weighting.of_rows(X, n)
    odd = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(odd):
        found = "a missing weight" if np.isnan(weights[odd[0]]) else f"the weight {number(float(weights[odd[0]]))}"
        raise ValueError(
            f"Weights must be 0 or positive numbers, and there is {found} in {place}. Correct it, or remove the row."
        )
    return weights


def _calibrated(
    rule: Rule, summary: Summary, notes: tuple[str, ...], on_insufficient: Any, *to_units: Any
) -> Calibrated:
    """Return what the rule finds; a summary that needs the workers is replaced by what it was asked for."""
    units = {"to_units": to_units[0]} if to_units else {}
    out = Calibrated.from_blocks(rule, [], notes, on_insufficient, gather=lambda own: [summary], **units)
    return replace(out, summary=summary.settled()) if isinstance(summary, CountedSummary) else out
