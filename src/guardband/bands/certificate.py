"""Certificate: what is promised of an interval, under which assumption, with which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from guardband.bands import (  # noqa: F401  their kinds are known once they are loaded
    cross_promise,
    distribution_promise,
    each_promise,
    kept_promise,
    long_run_promise,
    parted_promise,
    pav_promise,
    rank_promise,
    recent_promise,
    risk_promise,
    weighted_promise,
)
from guardband.bands.group_line import GroupLine
from guardband.bands.promise import DELTA, Part, Promise
from guardband.bands.time_split import DOUBTFUL, TimeSplit

T = TypeVar("T")


@dataclass(frozen=True)
class Certificate:
    """The promise that comes with a set of intervals, as the user sees it.

    With several levels, whatever depends on the level is a tuple in their order; with one (``scalar``) it is that
    level's entry. ``promise`` holds all numbers, those of its own kind too.

    Parameters
    ----------
    method : str
        The name of the method.
    promise : Promise
        What is promised, with all its numbers.
    scalar : bool
        Whether one level was asked for, not a sequence.
    notes : tuple of str, default ()
        Remarks to print at the end.
    in_time : TimeSplit, default None
        When the rows came, if the calibration rows are later than the training rows. None for any other split.
    """

    method: str
    promise: Promise
    scalar: bool
    notes: tuple[str, ...] = ()
    in_time: TimeSplit | None = None

    @property
    def kind(self) -> str:
        """Which promise: ``"marginal"``, ``"pac"``, ``"pav"``, ``"risk"``, ``"long-run"``, ``"none"``, or your own."""
        return self.promise.guarantee

    @property
    def confidence_level(self) -> float | tuple[float, ...] | None:
        """The level that was asked for, or the levels; None if a risk was asked for."""
        return self._unpacked(self.promise.confidence_level) if self.promise.is_of_coverage else None

    @property
    def risk(self) -> dict[str, Any] | None:
        """What is promised of the mean loss of new rows: ``limit``, ``cap`` and ``loss``, and ``bound``.

        For the calibration rows at hand, the mean loss of new rows is at most ``bound``, with probability 1 - delta
        (delta is 0.1 if the promise is on average). None if a confidence level is promised.
        """
        return self.promise.risk_entries()

    @property
    def n_calibration(self) -> int:
        """The number of calibration rows."""
        return self.promise.n_calibration

    @property
    def rank(self) -> int | tuple[int, ...] | None:
        """How many calibration rows the interval had to contain; more than there are where it is infinite."""
        return None if self.promise.rank is None else self._unpacked(self.promise.rank)

    @property
    def delta(self) -> float | None:
        """How often, over calibration rows, the promise may fail; None for one on average."""
        return self.promise.delta

    @property
    def whole_line(self) -> bool | tuple[bool, ...]:
        """Whether the interval is infinite on both sides, for whatever reason."""
        return self._unpacked(self.promise.whole_line)

    @property
    def assumption(self) -> str:
        """What must hold of the rows for the promise to hold; a split by time makes it doubtful."""
        own = self.promise.assumption
        return own if self.in_time is None or not self.promise.binding else f"{own}, {DOUBTFUL}"

    @property
    def expected_coverage(self) -> float | tuple[float, ...]:
        """What coverage, averaged over the draw of the calibration rows, is at least."""
        return self._unpacked(self.promise.expected_coverage())

    def coverage_bound(self, delta: float | None = None) -> float | tuple[float, ...]:
        """Return what coverage given the data is at least, with probability at least 1 - delta.

        The probability is over the draw of the calibration rows; delta is the promise's own, or 0.1, unless given.

        Parameters
        ----------
        delta : float, default None
            How often the bound may fail over possible calibration sets. None means the promise's own, or 0.1.
        """
        if delta is None:
            delta = DELTA if self.delta is None else self.delta
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, found {delta}.")
        return self._unpacked(self.promise.coverage_bound(delta))

    @property
    def groups(self) -> tuple[GroupLine, ...]:
        """A line for each group that has a promise of its own, none without groups."""
        parts = [part for part in self.promise.statements() if part.group is not None]
        delta = (DELTA if self.delta is None else self.delta) / max(1, len(parts))
        return tuple(self._line(part, delta) for part in parts)

    def _line(self, part: Part, delta: float) -> GroupLine:
        own, each = part.promise, self._unpacked
        return GroupLine(
            name=part.name,
            n_calibration=own.n_calibration,
            rank=each(own.rank or ()),
            coverage_bound=each(own.coverage_bound(delta)) if own.is_bound_known else None,
            mean_width=None if part.width is None else each(part.width),
            cost=None if part.cost is None else each(part.cost),
            side=part.side,
        )

    def with_notes(self, *notes: str) -> Certificate:
        """Return the same certificate with further remarks.

        Parameters
        ----------
        *notes : str
            Remarks to add.
        """
        return replace(self, notes=self.notes + notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate, with the numbers that follow from it, for JSON."""
        binding = self.promise.binding and self.promise.is_of_coverage
        names = ("kind", "method", "confidence_level", "n_calibration", "rank", "delta", "whole_line", "assumption")
        return (
            {name: getattr(self, name) for name in names}
            | {
                "expected_coverage": self.expected_coverage if binding else None,
                "coverage_bound": self.coverage_bound() if binding else None,
                "promise": self.promise.to_dict(),
                "notes": self.notes,
            }
            | ({} if self.in_time is None else {"in_time": asdict(self.in_time)})
            | ({} if self.risk is None else {"risk": self.risk})
        )

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Certificate:
        """Return the certificate that ``to_dict`` described.

        Parameters
        ----------
        entries : dict
            What ``to_dict`` returned.
        """
        scalar = not isinstance(entries["confidence_level"], list | tuple)
        in_time = TimeSplit(**entries["in_time"]) if entries.get("in_time") else None
        return cls(entries["method"], Promise.from_dict(entries["promise"]), scalar, tuple(entries["notes"]), in_time)

    def __str__(self) -> str:
        lines, binding = self.promise.lines(self.method), self.promise.binding
        if self.in_time is not None and binding:
            lines.append(self.in_time.in_words())
        return "\n".join([*lines, *(f"Note: {note}" for note in (self.notes if binding else ()))])

    def __repr__(self) -> str:
        first = self.promise.lines(self.method)[0]
        return f"{first} ({self.method}, {self.promise.counted}. Print it for more.)"

    def _repr_html_(self) -> str:
        from guardband.bands.certificate_card import certificate_card

        return certificate_card(self)

    def _unpacked(self, per_level: tuple[T, ...]) -> T | tuple[T, ...]:
        return per_level[0] if self.scalar else per_level
