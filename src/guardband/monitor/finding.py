"""What a monitor has found, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from guardband.bands.promise import Side
from guardband.monitor.coverage_interval import CONFIDENCE, Coverage
from guardband.monitor.inputs import LowCell, MovedColumn
from guardband.words import as_moment, level_name, number, percent, plain

INSIDE = {
    "both": "fell inside their intervals",
    "lower": "lay at or above their lower bounds",
    "upper": "lay at or below their upper bounds",
}
MOST_COLUMNS = 5
LARGEST = 1e6
"""Evidence beyond this is not told in digits."""


@dataclass(frozen=True)
class StatementFinding:
    """One statement of the promise: its rows, its misses, and the evidence against it.

    Parameters
    ----------
    name : str
        The group in words, empty for all rows.
    side : {"both", "lower", "upper"}
        Whether it is about intervals or about one bound.
    level : float
        The confidence level.
    rows, misses : int
        How many rows there were, and how many of them lay outside.
    evidence : float
        The evidence against this statement alone.
    """

    name: str
    side: Side
    level: float
    rows: int
    misses: int
    evidence: float


@dataclass(frozen=True)
class Finding:
    """All that a monitor says at one moment.

    ``watched`` is the statement that raised the alarm, or that has the most evidence against it. ``coverage`` is that
    of all rows, and after an alarm that of ``watched`` since the change. ``changed`` is "inputs", "outcomes" or "" if
    that is not known; ``since`` is the row after which the change began, and ``since_time`` its time in words, as
    nearly as the history knows it.
    """

    rows: int
    waiting: int
    alarm: bool
    alarm_row: int | None
    evidence: float
    highest: float
    limit: float
    false_alarm: float
    significance: float
    side: Side
    watched: StatementFinding
    coverage: Coverage
    coverage_of_all: Coverage
    since: int | None
    since_time: str
    changed: str
    columns: tuple[MovedColumn, ...]
    cells: tuple[LowCell, ...]
    statements: tuple[StatementFinding, ...]
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What rows say of the promise, in one sentence."""
        if not self.rows:
            return "No rows yet: nothing can be said of the promise."
        if self.alarm:
            return f"Alarm at row {self.alarm_row:,}: more rows fall outside than the promise allows."
        return f"No alarm: {_count(self.coverage_of_all, self.side, self._at(self.statements[0]))}."

    def lines(self) -> list[str]:
        """Return everything in sentences."""
        out = [self.sentence]
        if not self.rows:
            return out
        if self.alarm:
            begun = f"at about row {self.since:,}" if self.since else "before the first row, or soon after it"
            out.append(f"Since: the change began {begun}{f', {self.since_time}' if self.since_time else ''}.")
            own = self.watched
            of = (f" with {own.name}" if own.name else "") + self._at(own)
            out.append(f"Now: {_count(self.coverage, own.side, of)} since then. {_interval(self.coverage)}")
            out.append(f"What changed: {self._what_changed()}")
        else:
            out.append(f"Coverage: {_interval(self.coverage_of_all)}")
            if self.columns:
                out.append(f"Inputs: {_columns(self.columns)}. The promise is not contradicted so far.")
        out += [f"Lowest: {_cell(own)}" for own in self.cells if self.alarm]
        out += [
            f"Group: {own.name}{_bound(own.side)}{self._at(own)}: {own.rows - own.misses:,} of {own.rows:,} rows "
            f"inside, evidence {_evidence(own.evidence)}."
            for own in self._worst()
        ]
        out.append(
            f"Evidence: {_evidence(self.evidence)} now, {_evidence(self.highest)} at most so far. The alarm needs "
            f"{self.limit:,.0f}. {self._false_alarms()}"
        )
        if self.alarm:
            out.append("What to do: calibrate on rows since the change, and monitor the new model from the start.")
        if self.waiting:
            out.append(f"Waiting: {self.waiting:,} rows have no true value yet.")
        return [*out, *(f"Note: {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        own: dict[str, Any] = plain(asdict(self) | {"sentence": self.sentence})
        return own

    def _what_changed(self) -> str:
        if self.changed == "inputs":
            return f"the inputs. {_columns(self.columns)}. The true values for given inputs may have changed too."
        if self.changed == "outcomes":
            seen = f"No column was seen to change in {self.coverage.rows:,} rows."
            return f"probably the true values for given inputs. {seen}"
        return "unknown, because the monitor sees no columns. Pass X= with the rows."

    def _at(self, own: StatementFinding) -> str:
        """Return the level of a statement in words, nothing if all have the same."""
        return f" at {level_name(own.level)}" if len({each.level for each in self.statements}) > 1 else ""

    def _false_alarms(self) -> str:
        unlucky = self.false_alarm - self.significance
        why = f", of which {level_name(unlucky)} is for unlucky calibration sets" if unlucky > 0 else ""
        return (
            f"If the promise holds, the chance that an alarm is ever raised is at most {level_name(self.false_alarm)}"
            f"{why}, however often you look."
        )

    def _worst(self) -> list[StatementFinding]:
        """Return the groups with the most evidence."""
        named = [own for own in self.statements if own.name and own.evidence > 1]
        return sorted(named, key=lambda own: -own.evidence)[:3]


def when(time: float, time_is: str) -> str:
    """Return a time in words, nothing if there is none."""
    if math.isnan(time):
        return ""
    return as_moment(time) if time_is == "date" else number(time)


def _count(own: Coverage, side: Side, of: str = "") -> str:
    inside = round(own.share * own.rows)
    return f"{inside:,} of {own.rows:,} rows{of} ({percent(own.share)}) {INSIDE[side]}"


def _interval(own: Coverage) -> str:
    return (
        f"The true coverage lies between {percent(own.low)} and {percent(own.high)}, with {level_name(CONFIDENCE)} "
        "confidence at every look."
    )


def _evidence(value: float) -> str:
    return f"more than {LARGEST:,.0f}" if value > LARGEST else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _columns(moved: tuple[MovedColumn, ...]) -> str:
    shown = ", ".join(f"{own.name!r} ({own.detail})" for own in moved[:MOST_COLUMNS])
    more = len(moved) - MOST_COLUMNS
    return f"These columns have changed: {shown}{f' and {more:,} more' if more > 0 else ''}"


def _cell(own: LowCell) -> str:
    return f"{own.column} {own.name}: {own.rows - own.misses:,} of {own.rows:,} rows inside."


def _bound(side: Side) -> str:
    return "" if side == "both" else f" ({side} bounds)"
