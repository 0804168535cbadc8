"""Evidence: labelled rows with their intervals, from one pass of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.guarded import Guarded, need_entities
from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.law import Law
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted
from guardband.bands.promise import Side
from guardband.bands.risk import Risk
from guardband.bands.sides import reach
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.counted import CountedSummary
from guardband.calibration.rule import Rule
from guardband.calibration.summary import Summary
from guardband.data.entities import Entities
from guardband.data.fingerprint import Prints, Twins, count_overlap, fingerprints, overlap_with_sample
from guardband.data.labelled_rows import column_target
from guardband.data.reference import Reference
from guardband.data.table import Column, Table, numbers_from, take_rows
from guardband.data.target import Target
from guardband.data.times import side_column
from guardband.data.used_rows import UsedRows

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
ScoreAt = Callable[[NDArray[np.bool_], Array], Array | None]

GRID = tuple(Fraction(hundredths, 100) for hundredths in range(50, 100))
"""The levels of the calibration curve, besides those that are promised."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labelled rows, their intervals at the promised levels, and what is needed for other levels.

    ``scores`` are the conformity scores of these rows and ``calibration_scores`` those of the calibration rows, None
    where the rule is no rank. ``twins`` counts the rows that have an equal one among those that trained, and among
    those that calibrated; ``used_before`` the rows or entities that are among either, and ``used_by_chance`` how many
    of them may be chance. ``doubts`` says why rows of the model's table may depend on each other. ``moments`` says
    which columns hold dates, and ``row_numbers`` by which numbers the user knows the rows. ``risk`` is how losses are
    counted, if the promise is about them. If rows belong together these are one of each entity, ``drawn_from`` so many
    rows of entities of this name, and ``seen_entities`` counts those that trained or calibrated too. ``X`` are the rows
    as they were given.
    """

    table: Table
    y: Array
    response: str
    intervals: Intervals
    certificate: Certificate
    inputs: NDArray[np.float32]
    scores: Array | None
    calibration_scores: Array | None
    group: Column | None
    time: Column | None
    moments: frozenset[str]
    row_numbers: Rows
    reference: Reference | None
    twins: tuple[int, int]
    drawn_from: tuple[int, str] | None
    seen_entities: int
    _predicted: Predicted | None
    _context: Context
    _calibrated: Calibrated | None
    _target: Target
    risk: Risk | None = None
    used_before: int = 0
    used_by_chance: int = 0
    keys: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()
    X: Any = None

    @classmethod
    def of(
        cls,
        model: Guarded,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        time: Any = None,
        row_numbers: Rows | None = None,
        entities: Any = None,
        context: Context | None = None,
        weights: Any = None,
    ) -> Evidence:
        """Return the evidence of labelled rows; ``group`` and ``time`` are columns ``(n,)``, or names of some of X.

        Without ``time``, the only column of dates says when rows came.
        ``row_numbers`` are the numbers by which the user knows the rows, else they are counted from 1. Of rows that
        belong together, by ``entities``, by the model's ``split_by`` or because they are repeated, one is drawn.
        ``context`` is what the rule must know of the rows if the table does not say it, and ``weights`` are theirs if
        the model needs them.
        """
        calibrated, fitted = model.calibration_, model.fitted_
        table = model.read_rows(X) if weights is None else model.read_rows(X, weights=weights)
        table = table if context is None else replace(table, context=context)
        response = column_target(y, table.n_rows)
        columns = [_side("group", group, table.n_rows, X), _side("time", time, table.n_rows, X) or _only_date(table)]
        numbers = np.arange(1, table.n_rows + 1) if row_numbers is None else row_numbers
        need_entities(model, entities)
        belonging, given = model.belonging, table.n_rows
        together = belonging.entities(table, X, response, entities)
        if together is not None:
            rows = together.one_row_each(response)
            table, response, numbers, together = table.take(rows), response[rows], numbers[rows], together.take(rows)
            X = take_rows(X, rows)
            columns = [None if own is None else replace(own, values=own.values[rows]) for own in columns]
        predicted, inputs = model.outputs(X, table)
        context, target = table.context, model.target_
        ends = target.to_units(*calibrated.ends(predicted, context))
        prints = fingerprints(table, response)
        used = fitted.used_prints
        twins, used_before = found_among(prints, fitted, calibrated.summary)
        is_sample = isinstance(calibrated.summary, CountedSummary)
        seen, known = _seen(together, fitted, is_sample), fitted.training_entities
        dates = [c.name for c in (*table.columns, columns[1]) if c is not None and c.numbers_are == "date"]
        return cls(
            table=table,
            y=response,
            response=str(getattr(y, "name", None) or "the outcome"),
            intervals=calibrated.intervals(ends, index=table.index, input_names=table.names),
            certificate=calibrated.certificate,
            inputs=inputs,
            scores=scores_of(
                target,
                response,
                lambda rows, own: calibrated.rule.scores(predicted.rows(rows), own, context.rows(rows)),
            ),
            calibration_scores=calibrated.rule.calibration_scores(calibrated.summary),
            group=columns[0],
            time=columns[1],
            moments=frozenset(dates),
            row_numbers=numbers,
            reference=fitted.reference,
            twins=twins,
            drawn_from=None if together is None else (given, together.name),
            seen_entities=seen,
            _predicted=predicted,
            _context=context,
            _calibrated=calibrated,
            _target=target,
            risk=calibrated.rule.promised_risk,
            used_before=max(used_before, seen),
            used_by_chance=Twins.among(used, by_chance=together is None and known is None).most(len(prints)),
            doubts=fitted.doubts,
            keys=frozenset(belonging.keys),
            X=X,
        )

    @classmethod
    def of_intervals(
        cls,
        intervals: Intervals,
        y: Any,
        *,
        table: Table,
        inputs: NDArray[np.float32],
        prints: Prints,
        calibration_prints: Prints,
        group: Any = None,
        time: Any = None,
        context: Context | None = None,
        risk: Risk | None = None,
    ) -> Evidence:
        """Return the evidence of intervals with their certificate alone, whatever put them out.

        ``table`` shows the rows and ``inputs`` are numbers of them. ``prints`` are their fingerprints, to be compared
        with those of the calibration rows, ``context`` is what the rule knew of them, and ``risk`` how losses count.
        """
        assert intervals.certificate is not None
        response = column_target(y, table.n_rows)
        shared = count_overlap(prints, calibration_prints)
        return cls(
            table=table,
            y=response,
            response=str(getattr(y, "name", None) or "the outcome"),
            intervals=intervals,
            certificate=intervals.certificate,
            inputs=inputs,
            scores=None,
            calibration_scores=None,
            group=_side("group", group, table.n_rows),
            time=_side("time", time, table.n_rows),
            moments=frozenset(),
            row_numbers=np.arange(1, table.n_rows + 1),
            reference=None,
            twins=(0, shared),
            drawn_from=None,
            seen_entities=0,
            _predicted=None,
            _context=context or Context(),
            _calibrated=None,
            _target=Target(None, None, None),
            risk=risk,
            used_before=shared,
            used_by_chance=Twins.among(calibration_prints).most(len(prints)),
        )

    @property
    def rule(self) -> Rule | None:
        """The rule that made the intervals, None if nothing but them is known."""
        return None if self._calibrated is None else self._calibrated.rule

    @property
    def summary(self) -> Summary | None:
        """What the rule kept of the calibration rows, None if that is not known."""
        return None if self._calibrated is None else self._calibrated.summary

    @property
    def predicted(self) -> Predicted | None:
        """What was predicted of these rows, None if nothing but the intervals is known."""
        return self._predicted

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y)

    @property
    def n_given(self) -> int | None:
        """The number of rows that these were drawn from, if rows belong together."""
        return None if self.drawn_from is None else self.drawn_from[0]

    @property
    def headline(self) -> Intervals:
        """The intervals at the first of the promised levels."""
        lower, upper = self.intervals.per_level()
        level = self.intervals.confidence_level
        return Intervals(
            lower[:, 0], self.intervals.point, upper[:, 0], level[0] if isinstance(level, tuple) else level
        )

    @property
    def side(self) -> Side:
        """Which bound the promise is about, if intervals have only one."""
        return self.certificate.promise.side

    @property
    def reach(self) -> Array:
        """How far intervals reach, ``(n, L)``: their width, or the distance of their only bound from the prediction."""
        lower, upper = self.intervals.per_level()
        out: Array = reach(lower, self.intervals.point, upper, self.side)
        return out

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Which rows lie in their interval, ``(n, L)``, ends included."""
        return self.inside("both")

    def inside(self, side: Side) -> NDArray[np.bool_]:
        """Return which rows lie in their interval, or on the right side of one of its bounds, ``(n, L)``."""
        lower, upper = self.intervals.per_level()
        above, below = lower <= self.y[:, None], self.y[:, None] <= upper
        return above if side == "lower" else below if side == "upper" else above & below

    def members(self, group: int | None) -> NDArray[np.bool_]:
        """Return which rows belong to a group that has a promise of its own, ``(n,)``; all of them for None."""
        if group is None:
            return np.ones(self.n, dtype=bool)
        codes = self._context.group
        found: NDArray[np.bool_] = codes == group if codes.ndim == 1 else (codes == group).any(axis=1)
        return found

    def levels(self) -> tuple[tuple[Fraction, Law], ...]:
        """Return the levels of the calibration curve, rising, with the law of each; none where the rule does not rank.

        Levels whose interval would be the whole line are left out: there is nothing to see of them.
        """
        if self.calibration_scores is None or self._calibrated is None:
            return ()
        if not self._calibrated.rule.has_quick_levels or self._calibrated.rule.possible is not None:
            return ()
        rule = self._calibrated.rule
        every = Levels(tuple(sorted({*GRID, *rule.levels.values})), scalar=False)
        promise = rule.at(every).calibrate(self._calibrated.summary).promise
        found = zip(every.values, promise.expectations(), promise.some_infinite, strict=True)
        return tuple((level, expectation.expected) for level, expectation, whole in found if not whole)

    def ends(self, levels: Sequence[Fraction], rows: Rows | None = None) -> tuple[Array, Array]:
        """Return lower and upper ends at levels of the curve, ``(n, L)`` each, of all rows or some of them."""
        assert self._predicted is not None
        assert self._calibrated is not None
        every = rows is None
        predicted = self._predicted if every else self._predicted.rows(rows)
        context = self._context if every else self._context.rows(rows)
        ends = self._calibrated.at(list(levels), None).ends(predicted, context)
        lower, _, upper = self._target.to_units(*ends)
        return lower, upper


def found_among(prints: Prints, fitted: UsedRows, summary: Summary) -> tuple[tuple[int, int], int]:
    """Return how many rows are among those that trained, among those that calibrated, and among either."""
    training = count_overlap(prints, fitted.training_prints)
    if not isinstance(summary, CountedSummary):
        own = training, count_overlap(prints, fitted.calibration_prints)
        return own, count_overlap(prints, fitted.used_prints)
    # Of rows that were only counted there is a sample of fingerprints.
    own = training, overlap_with_sample(prints, fitted.calibration_prints)
    return own, max(own)


def scores_of(target: Target, y: Array, score_at: ScoreAt) -> Array | None:
    """Return the scores, infinite for a target that the model was told cannot be; None where the rule does not rank.

    ``score_at`` scores some of the rows, given which and their true values in work units.
    """
    if not target.whole:
        return _scores_at(target, y, score_at)
    # An interval with whole ends contains y exactly if it contains both whole numbers around y.
    below, above = (_scores_at(target, around(y), score_at) for around in (np.floor, np.ceil))
    return None if below is None or above is None else np.maximum(below, above)


def _scores_at(target: Target, y: Array, score_at: ScoreAt) -> Array | None:
    possible = target.possible(y)
    own = target.to_work(y[possible]) if possible.any() else y[possible]
    found = score_at(possible, own)
    if found is None:
        return None
    scores = np.full(len(y), np.inf)
    scores[possible] = found
    return scores


def _seen(together: Entities | None, fitted: UsedRows, is_sample: bool) -> int:
    """Return how many entities trained or calibrated too; of some that calibrated only the smallest are known."""
    if together is None:
        return 0
    known = [own for own in (fitted.training_entities, fitted.calibration_entities) if own is not None]
    if is_sample and fitted.calibration_entities is not None:
        every, sample = (own.view(np.uint64) for own in (together.every, known.pop()))
        trained = int(np.isin(together.every, known[0]).sum()) if known else 0
        return trained + overlap_with_sample(every, np.sort(sample))
    return int(np.isin(together.every, np.concatenate(known)).sum()) if known else 0


def _side(argument: str, values: Any, n_rows: int, X: Any = None) -> Column | None:
    return None if values is None else side_column(argument, values, n_rows, X)


def _only_date(table: Table) -> Column | None:
    """Return the only column of dates that differ, None if there are none or several."""
    dates = [column for column in table.columns if column.kind == "date"]
    return dates[0] if len(dates) == 1 and len(np.unique(numbers_from(dates[0], "date"))) > 1 else None
