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
from guardband.calibration.joint import JointConformal
from guardband.calibration.rule import Rule
from guardband.calibration.several import SeveralRule
from guardband.calibration.sided import Sided
from guardband.calibration.summary import Array, Summary
from guardband.data.encoder import TableEncoder
from guardband.data.fingerprint import Prints, fingerprints
from guardband.data.kinds import Kind
from guardband.data.several_targets import SeveralTargets, key_of, named
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.data.whole_numbers import is_whole
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.exceptions import TargetWarning, warn
from guardband.learning.learned import Learned
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

    kinds: Mapping[str, Kind]
    """The columns that it needs."""
    rule: Rule
    """How it calibrates."""
    training_prints: Prints = NONE
    """Fingerprints of the rows that trained it."""
    by_chance: bool = True
    """Whether training rows are equal by chance alone."""

    @abstractmethod
    def summarised(self, X: Any, y: Array) -> Summarised:
        """Return what the model keeps of some rows.

        Parameters
        ----------
        X : table
            Some rows.
        y : array of shape (n,) or (n, q)
            Their true values, NaN where one of several targets is missing.
        """

    @abstractmethod
    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: tuple[bool, ...]) -> Any:
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
        """

    @property
    def needs_all_targets(self) -> bool:
        """Whether rows that lack one of several targets cannot calibrate."""
        return isinstance(self.rule, JointConformal)

    @property
    def groups(self) -> int:
        """How many groups have a promise of their own, 0 without groups."""
        rule = self.rule.rules[0] if isinstance(self.rule, Sided) else self.rule
        cut = rule.cut if isinstance(rule, Conformal) else None
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
    """

    def __init__(self, model: TableModel, names: Sequence[str]) -> None:
        fitted = model.fitted_
        need_held_out(fitted.rule, "calibrate on other rows")
        if model.belonging.names_entities or fitted.repeat_rule is not None:
            raise ValueError(
                "The model knows rows that belong together, which Ray cannot calibrate yet. Use calibrate."
            )
        if fitted.trained_until is not None:
            raise ValueError("The model was split by time, which Ray cannot calibrate yet. Use model.calibrate.")
        self.model, self.rule = copy(model), fitted.rule
        self.model.fitted_ = replace(fitted, calibrated=None, weighting=None, source=None, known=None, places=None)
        self.kinds = kinds_of_model(model, names)
        # In order, because every block of rows is looked for among them.
        self.training_prints, self.by_chance = np.sort(fitted.training_prints), fitted.training_entities is None

    def summarised(self, X: Any, y: Array) -> Summarised:
        """Return what the model keeps of some rows."""
        fitted = self.model.fitted_
        table, target = self.model.read_rows(X), fitted.learned.target
        predicted = fitted.predict(table)
        self.rule.check(predicted, table.context)
        summary = self.rule.summarise(predicted, target.to_work(y), table.context)
        return Summarised(summary, _prints(table, y), _are_whole(y))

    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: tuple[bool, ...]) -> Any:
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
            calibrated=_calibrated(self.rule, summary, notes, fitted.params["on_insufficient"], target.to_units),
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
    """

    def __init__(self, rule: BandCalibrator) -> None:
        self.own, self.rule = rule, rule.calibration_.rule
        if "weight" in self.rule.uses or "entity" in self.rule.uses:
            raise ValueError("Ray calibrates rules without weights and entities. Use calibrate.")
        self.kinds = dict.fromkeys(rule.columns.names, "number")
        if rule.grouping is not None:
            self.kinds = {column.name: column.kind for column in rule.grouping.columns} | self.kinds

    def summarised(self, X: Any, y: Array) -> Summarised:
        """Return what the rule keeps of some rows."""
        summary, table = self.own.summarised(X, y)
        return Summarised(summary, _prints(table, y), _are_whole(y))

    def finished(self, summary: Summary, notes: tuple[str, ...], prints: Prints, is_whole: tuple[bool, ...]) -> Any:
        """Return the calibrated rule."""
        before = self.own.calibration_
        return self.own.calibrated_by(_calibrated(self.rule, summary, notes, before.on_insufficient), prints)


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
    rule: Rule, summary: Summary, notes: tuple[str, ...], on_insufficient: Any, *to_units: Any
) -> Calibrated:
    """Return what the rule finds; a summary that needs the workers is replaced by what it was asked for."""
    units = {"to_units": to_units[0]} if to_units else {}
    out = Calibrated.from_blocks(rule, [], notes, on_insufficient, gather=lambda own: [summary], **units)
    return replace(out, summary=summary.settled()) if isinstance(summary, CountedSummary) else out
