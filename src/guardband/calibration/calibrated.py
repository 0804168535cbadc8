"""A rule together with what it found on the calibration rows: one way from blocks of rows, for every way in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level, Levels
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.summary import Array, Summary
from guardband.data.entities import Entities
from guardband.exceptions import InsufficientCalibrationError, warn

OnInsufficient = Literal["inf", "raise"]
TOO_FEW = "The model was calibrated on too few rows for this level. Calibrate it on more rows."
Block = tuple[Predicted, Array, Context]
"""Predictions of some calibration rows, their outcomes ``(n,)``, and what else is known of them."""


@dataclass(frozen=True)
class Unit:
    """What calibration counts if rows belong together: entities of this name, with so many rows in all."""

    entity: str
    n_rows: int


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibrated rule; the summary that it was found from lets other levels and model files start from it."""

    rule: Rule
    summary: Summary
    found: Calibration
    notes: tuple[str, ...]
    on_insufficient: OnInsufficient
    unit: Unit | None = None

    @classmethod
    def from_entities(
        cls,
        rule: Rule,
        block: Block,
        entities: Entities,
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
    ) -> Calibrated:
        """Return what a rule finds on rows that belong together.

        The rows of an entity share one weight if the rule has a way to do so; otherwise one of them, drawn at random,
        stands for all.
        """
        predicted, y, context = block
        unit, own = Unit(entities.name, len(y)), rule.for_entities()
        if own is None:
            rows = entities.one_row_each(y)
            own, block = rule, (predicted.rows(rows), y[rows], context.rows(rows))
        else:
            block = (predicted, y, replace(context, entity=entities.labels))
        return cls.from_blocks(own, [block], notes, on_insufficient, unit=unit)

    @classmethod
    def from_blocks(
        cls,
        rule: Rule,
        blocks: Iterable[Block],
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
        gather: Callable[[Summary | None], Iterable[Summary | None]] = lambda own: [own],
        unit: Unit | None = None,
    ) -> Calibrated:
        """Return what a rule finds on blocks of rows; ``gather`` adds the summaries of other processes to one's own."""

        def summaries() -> Iterator[Summary]:
            for predicted, y, context in blocks:
                rule.check(predicted, context)
                yield rule.summarise(predicted, y, context)

        total = _total(gather(_total(summaries())))
        if total is None:
            raise ValueError("There must be at least one calibration row, found none.")
        return cls.by(rule, total, notes, on_insufficient, unit)

    @classmethod
    def by(
        cls,
        rule: Rule,
        summary: Summary,
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
        unit: Unit | None = None,
        is_loaded: bool = False,
    ) -> Calibrated:
        """Return what the rule finds from a summary; an infinite interval is warned of, or refused.

        For a model that ``is_loaded`` nothing is said that takes long to find: its file may be a stranger's.
        """
        found = rule.calibrate(summary)
        if unit is not None:
            found = replace(found, promise=replace(found.promise, entity=unit.entity, n_rows=unit.n_rows))
        infinite = "The interval is the whole line." if any(found.promise.whole_line) else "A side of it is infinite."
        for remark in found.remarks:
            why = TOO_FEW if is_loaded and callable(remark.why) else remark.in_words()
            if remark.infinite and on_insufficient == "raise":
                raise InsufficientCalibrationError(why)
            warn(f"{why} {infinite}" if remark.infinite else why, remark.category)
        return cls(rule, summary, found, notes, on_insufficient, unit)

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return Certificate(self.rule.method, self.found.promise, self.rule.levels.scalar, self.notes)

    def at(self, confidence_level: Level | Sequence[Level] | None, alpha: Level | Sequence[Level] | None) -> Calibrated:
        """Return the same at other levels, if any are given that differ."""
        if confidence_level is None and alpha is None:
            return self
        levels = Levels.of(confidence_level, alpha)
        if levels == self.rule.levels:
            return self
        return Calibrated.by(self.rule.at(levels), self.summary, self.notes, self.on_insufficient, self.unit)

    def ends(self, predicted: Predicted, context: Context) -> Ends:
        """Return lower ``(n, L)``, point ``(n,)`` and upper ``(n, L)`` of new rows."""
        self.rule.check(predicted, context, is_new=True)
        return self.rule.ends(predicted, context, self.found.arrays)

    def intervals(self, ends: Ends, index: Any = None, input_names: tuple[str, ...] = ()) -> Intervals:
        """Return ends ``(n, L)`` as ``Intervals``, ``(n,)`` where there is one level."""
        (lower, point, upper), levels = ends, self.rule.levels
        if levels.scalar:
            lower, upper = lower[:, 0], upper[:, 0]
        return Intervals(lower, point, upper, levels.confidence_level, self.certificate, index, input_names)


def _total(summaries: Iterable[Summary | None]) -> Summary | None:
    total: Summary | None = None
    for own in summaries:
        if own is not None and own.n:
            total = own if total is None else total + own
    return total
