"""A rule together with what it found on the calibration rows: one way from blocks of rows, for every way in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level, Levels
from guardband.bands.predicted import Context, Predicted
from guardband.bands.time_split import TimeSplit
from guardband.calibration.group_widths import Units, same_units, with_widths
from guardband.calibration.rule import Calibration, Ends, Rule
from guardband.calibration.summary import Array, Summary
from guardband.data.entities import Entities
from guardband.exceptions import InsufficientCalibrationError, warn

OnInsufficient = Literal["inf", "raise"]
TOO_FEW = "The model was calibrated on too few rows for this {}. Calibrate it on more rows."
Block = tuple[Predicted, Array, Context]
"""Predictions of some calibration rows, their outcomes ``(n,)``, and what else is known of them."""


@dataclass(frozen=True)
class Unit:
    """What calibration counts if rows belong together: entities of this name, with so many rows in all."""

    entity: str
    n_rows: int


@dataclass(frozen=True)
class Chosen:
    """That a candidate was chosen among several by its calibration rows, with one ``delta`` for all of them."""

    candidates: int
    delta: float

    @property
    def of_each(self) -> float:
        """The share of delta that each candidate has."""
        return self.delta / self.candidates


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibrated rule; the summary that it was found from lets other levels and model files start from it."""

    rule: Rule
    summary: Summary
    found: Calibration
    notes: tuple[str, ...]
    on_insufficient: OnInsufficient
    unit: Unit | None = None
    chosen: Chosen | None = None
    in_time: TimeSplit | None = None

    @classmethod
    def from_entities(
        cls,
        rule: Rule,
        block: Block,
        entities: Entities,
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
        to_units: Units = same_units,
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
        return cls.from_blocks(own, [block], notes, on_insufficient, unit=unit, to_units=to_units)

    @classmethod
    def from_blocks(
        cls,
        rule: Rule,
        blocks: Iterable[Block],
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
        gather: Callable[[Summary | None], Iterable[Summary | None]] | None = None,
        unit: Unit | None = None,
        to_units: Units = same_units,
    ) -> Calibrated:
        """Return what a rule finds on blocks of rows; ``gather`` adds the summaries of other processes to one's own.

        ``to_units`` brings ends to the user's units, in which widths of groups are said and losses are counted.
        """
        kept: list[tuple[Predicted, Context]] = []
        rule = rule.in_units(to_units)

        def summaries() -> Iterator[Summary]:
            for predicted, y, context in blocks:
                rule.check(predicted, context)
                if "group" in rule.uses and gather is None:
                    kept.append((predicted, context))
                yield rule.summarise(predicted, y, context)

        total = _total(summaries())
        if gather is not None:
            total = _total(gather(total))
        if total is None:
            raise ValueError("There are no calibration rows. Pass at least one.")
        total = total.joined()
        out = cls.by(rule, total, notes, on_insufficient, unit, has_own_rows=bool(kept))
        if not kept or not out.found.promise.is_parted:
            return out
        return replace(out, found=with_widths(out.found, rule, total, kept, to_units))

    @classmethod
    def by(
        cls,
        rule: Rule,
        summary: Summary,
        notes: tuple[str, ...] = (),
        on_insufficient: OnInsufficient = "inf",
        unit: Unit | None = None,
        is_loaded: bool = False,
        chosen: Chosen | None = None,
        has_own_rows: bool = False,
    ) -> Calibrated:
        """Return what the rule finds from a summary; an infinite interval is warned of, or refused.

        If the rule ``has_own_rows``, the calibration rows will get intervals too, so that all that they need is found.
        For a model that ``is_loaded`` nothing is said that takes long to find: its file may be a stranger's.
        """
        found = rule.calibrate_complete(summary) if has_own_rows else rule.calibrate(summary)
        if unit is not None:
            found = replace(found, promise=found.promise.of_entities(unit.entity, unit.n_rows))
        has = "are infinite" if any(found.promise.whole_line) else "have an infinite side"
        for remark in found.remarks:
            what = "level" if found.promise.is_of_coverage else "risk"
            why = TOO_FEW.format(what) if is_loaded and callable(remark.why) else remark.in_words()
            if remark.infinite and on_insufficient == "raise":
                raise InsufficientCalibrationError(why)
            warn(f"The intervals {has}. {why}" if remark.infinite and remark.is_of_all else why, remark.category)
        own = cls(rule, summary, found, notes, on_insufficient, unit)
        return own if chosen is None else own.chosen_by(chosen)

    def chosen_by(self, chosen: Chosen) -> Calibrated:
        """Return the same as one of several candidates, each of which has its share of delta."""
        promise = self.found.promise
        if promise.delta != chosen.of_each:
            raise ValueError("A candidate must be calibrated with its share of delta.")
        promise = promise.chosen_among(chosen.candidates, chosen.delta)
        return replace(self, found=replace(self.found, promise=promise), chosen=chosen)

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return Certificate(self.rule.method, self.found.promise, self.rule.levels.scalar, self.notes, self.in_time)

    def at(self, confidence_level: Level | Sequence[Level] | None, alpha: Level | Sequence[Level] | None) -> Calibrated:
        """Return the same at other levels, if any are given that differ."""
        if confidence_level is None and alpha is None:
            return self
        levels = Levels.of(confidence_level, alpha)
        if levels == self.rule.levels and self.rule.promised_risk is None:
            return self
        own = Calibrated.by(
            self.rule.at(levels), self.summary, self.notes, self.on_insufficient, self.unit, chosen=self.chosen
        )
        return replace(own, in_time=self.in_time)

    def ends(self, predicted: Predicted, context: Context) -> Ends:
        """Return lower ``(n, L)``, point ``(n,)`` and upper ``(n, L)`` of new rows."""
        self.rule.check(predicted, context, is_new=True)
        self.rule.complete(self.found, self.summary, context)
        return self.rule.ends(predicted, context, self.found.arrays)

    def intervals(self, ends: Ends, index: Any = None, input_names: tuple[str, ...] = ()) -> Intervals:
        """Return ends ``(n, L)`` as ``Intervals``, ``(n,)`` where there is one level; ``Boxes`` of several targets."""
        if self.rule.target_names:
            from guardband.calibration.target_calibrated import boxes_of

            return cast(Intervals, boxes_of(self, ends, index, input_names))
        (lower, point, upper), levels = ends, self.rule.levels
        if levels.scalar:
            lower, upper = lower[:, 0], upper[:, 0]
        certificate = self.certificate
        return Intervals(lower, point, upper, certificate.confidence_level, certificate, index, input_names)


def _total(summaries: Iterable[Summary | None]) -> Summary | None:
    total: Summary | None = None
    for own in summaries:
        if own is not None and own.n:
            total = own if total is None else total + own
    return total
