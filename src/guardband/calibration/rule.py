"""The contract of a rule: held-out predictions and outcomes in, intervals with a stated promise out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted, PredictedInterval
from guardband.bands.promise import NoPromise, Promise
from guardband.bands.risk import Risk
from guardband.calibration.summary import Array, Arrays, Summary
from guardband.exceptions import InsufficientCalibrationWarning

Ends = tuple[Any, Any, Any]
"""Lower ``(n, L)``, point ``(n,)`` and upper ``(n, L)``, of numpy or of torch."""


@dataclass(frozen=True)
class Remark:
    """What to warn of: by default, why an interval is ``infinite``, which may also be refused.

    ``why`` is a sentence, or a function that finds it if that takes long, as how many rows would do does. It says
    itself which intervals are infinite unless it ``is_of_all``.
    """

    why: str | Callable[[], str]
    category: type[Warning] = InsufficientCalibrationWarning
    infinite: bool = True
    is_of_all: bool = True

    def in_words(self) -> str:
        """Return the sentence."""
        return self.why if isinstance(self.why, str) else self.why()


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the calibration rows settled: named arrays that turn predictions into intervals, and what is promised.

    Parameters
    ----------
    arrays : dict of arrays
        What turns predictions into intervals.
    promise : Promise
        What is promised, with all its numbers.
    remarks : tuple of Remark, default ()
        What to warn of.
    """

    arrays: dict[str, Array]
    promise: Promise
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Rule(ABC):
    """Turns predictions into intervals in three steps.

    ``summarise`` keeps of a block of calibration rows what the rule needs, and summaries add up; ``calibrate`` finds
    from their sum a few arrays, which are all that a calibrated network carries; ``ends`` applies them to new rows.

    Parameters
    ----------
    method : str
        The name of the method.
    levels : Levels
        The confidence levels, as exact fractions.
    """

    takes: ClassVar[type[Predicted]]
    """What kind of prediction it needs."""
    each_copy: ClassVar[bool] = False
    """Whether it is to see every copy of a network; otherwise it sees their average."""
    target_names: ClassVar[tuple[str, ...]] = ()
    """The names of the targets, if there are several."""
    method: str
    levels: Levels

    @property
    def uses(self) -> frozenset[str]:
        """What it must know of a row besides its prediction: names of ``Context``."""
        return frozenset()

    @property
    def uses_of_new(self) -> frozenset[str]:
        """What it must know of a new row."""
        return self.uses

    @property
    def candidates(self) -> int | None:
        """How many candidates it takes; None if any number."""
        return None

    @abstractmethod
    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return what to keep of a block of rows.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        y : array of shape (n,)
            The true values.
        context : Context
            What else is known of the rows.
        """

    @abstractmethod
    def calibrate(self, summary: Summary) -> Calibration:
        """Return what all rows settle at each level.

        Parameters
        ----------
        summary : Summary
            What was kept of the calibration rows.
        """

    def calibrate_complete(self, summary: Summary) -> Calibration:
        """Return the same as ``calibrate``, with whatever rows like the calibration rows need.

        Parameters
        ----------
        summary : Summary
            What was kept of the calibration rows.
        """
        found = self.calibrate(summary)
        self.complete(found, summary, Context(**{name: summary.rows(name) for name in self.uses}))
        return found

    @abstractmethod
    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals of new rows; ``xp`` is numpy or torch, whichever the arrays are of.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        context : Context
            What is known of the new rows.
        arrays : dict of arrays
            What calibration found, by name.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """

    @property
    def possible(self) -> Levels | None:
        """The levels that can be had after calibration; None if all."""
        return self.levels

    @property
    def promised_risk(self) -> Risk | None:
        """The risk that it promises in place of a confidence level; None if it has levels."""
        return None

    def in_units(self, to_units: Callable[[Any, Any, Any], Ends]) -> Self:
        """Return the rule for predictions on another scale than the target's; most rules need not know.

        Parameters
        ----------
        to_units : function
            Brings ends to the unit of the target.
        """
        return self

    def at(self, levels: Levels) -> Self:
        """Return the rule for levels that are chosen after calibration.

        Parameters
        ----------
        levels : Levels
            The confidence levels, as exact fractions.
        """
        if self.possible is not None and not self.possible.include(levels):
            raise ValueError(
                f"{self.method} was calibrated for confidence_level={self.possible.confidence_level}, not for "
                f"{levels.confidence_level}. Name all levels when you calibrate."
            )
        return replace(self, levels=levels)

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Rule:
        """Return the rule with a promise for each group; raise if it has none.

        Parameters
        ----------
        names : tuple of str
            The groups, in words.
        by : str, default ""
            What makes the groups, in words.
        columns : int, default 1
            How many columns make groups: a row belongs to at most one group of each.
        """
        raise ValueError(
            f'method="{self.method}" has no promise for each group. Remove groups, or use "conf-nn", "conf-fw", "cqr" '
            'or "cqr-r".'
        )

    @property
    def group_columns(self) -> int:
        """How many columns make groups that have a promise of their own."""
        return 0

    @property
    def has_quick_levels(self) -> bool:
        """Whether intervals at many other levels cost little more than those at one."""
        return True

    def rows_for_a_group(self, groups: int) -> int:
        """Return how many calibration rows one of so many groups needs for finite intervals.

        Parameters
        ----------
        groups : int
            The number of groups.
        """
        return 1

    def without_groups(self) -> Rule:
        """Return the rule with one promise for all rows."""
        return self

    def for_weights(self, max_weight: float | None = None) -> Rule:
        """Return the rule for rows that count by their weights; raise if it has none.

        Parameters
        ----------
        max_weight : float, default None
            A bound on all weights, for a promise given the data.
        """
        raise ValueError(
            f'method="{self.method}" cannot use weights. Remove weights, or use "conf-nn", "conf-fw", "cqr" or "cqr-r".'
        )

    def complete(self, calibration: Calibration, summary: Summary, context: Context) -> None:
        """Add to a calibration whatever new rows need that was not looked for before.

        Parameters
        ----------
        calibration : Calibration
            What calibration found, whose arrays are added to.
        summary : Summary
            What was kept of the calibration rows.
        context : Context
            What is known of the new rows.
        """
        return

    def for_entities(self) -> Self | None:
        """Return the rule where rows of one entity may depend on each other; None: it takes one row of each."""
        return None

    def scores(self, predicted: Any, y: Array, context: Context) -> Array | None:
        """Return the score of each row by which the rule ranks them, ``(n,)``, or None if it does not rank.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        y : array of shape (n,)
            The true values.
        context : Context
            What else is known of the rows.
        """
        return None

    def calibration_scores(self, summary: Summary) -> Array | None:
        """Return the scores of the calibration rows, or None if the rule does not rank.

        Parameters
        ----------
        summary : Summary
            What was kept of the calibration rows.
        """
        return None

    def countable(self, block: Arrays) -> Arrays:
        """Return what is kept of some rows as it can be counted: each score under a name that begins with "score".

        Parameters
        ----------
        block : dict of arrays
            What the rule keeps of some rows.
        """
        return block

    def check(self, predicted: Predicted, context: Context, is_new: bool = False) -> None:
        """Raise if the rule cannot use what was predicted, or not what is known of the rows.

        The entity of a new row is never needed: it is a new one.

        Parameters
        ----------
        predicted : Predicted
            The predictions; each part has the shape (copies, candidates, rows).
        context : Context
            What else is known of the rows.
        is_new : bool, default False
            Whether the rows are new ones, whose entity nobody needs to know.
        """
        if not isinstance(predicted, self.takes):
            raise ValueError(f"{self.method} needs {self.takes.what}, found {predicted.what}. {self.takes.hint}")
        if predicted.copies > 1 and not self.each_copy:
            raise ValueError(f"{self.method} takes one prediction of each candidate, found {predicted.copies} copies.")
        if self.candidates not in (None, predicted.candidates):
            raise ValueError(f"{self.method} takes {self.candidates} candidate(s), found {predicted.candidates}.")
        uses = self.uses_of_new - {"entity"} if is_new else self.uses
        context.check(uses, len(predicted), self.method)


def picked_ends(lower: Any, point: Any, upper: Any, usable: Any, xp: Any) -> Ends:
    """Return the ends of one interval for each level, ``(L, n)`` each ``-> (n, L), (n,), (n, L)``.

    The point is that of the first level; the others are widened to contain it where they do not. What is not
    ``usable`` gives the whole line; a single side may be infinite.
    """
    point = point[0]
    usable = usable & xp.isfinite(point) & ~xp.isnan(lower) & ~xp.isnan(upper)
    lower = xp.where(usable, xp.minimum(lower, point), -xp.inf)
    upper = xp.where(usable, xp.maximum(upper, point), xp.inf)
    return lower.T, point, upper.T


def chosen_ends(predicted: PredictedInterval, chosen: Any, xp: Any, usable: Any = True) -> Ends:
    """Return the ends of the candidate that was chosen for each level; those not ``usable`` are the whole line."""
    lower, point, upper = (part[0][chosen] for part in predicted.parts)
    return picked_ends(lower, point, upper, predicted.finite(xp)[0][chosen] & usable, xp)


def promised_nothing(rule: Rule, summary: Summary, reason: str) -> NoPromise:
    """Return a promise of nothing, with the reason."""
    return NoPromise(
        confidence_level=rule.levels.floats,
        n_calibration=summary.n,
        whole_line=(False,) * len(rule.levels),
        reason=reason,
    )
