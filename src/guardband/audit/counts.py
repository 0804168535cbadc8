"""The verdict on counts of rows, which may come from one table or be the sum of many.

What is counted of labelled rows adds up: how many there are of each part of the promise, how many of them fell inside,
and how wide their intervals are together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from guardband.audit.evidence import Evidence
from guardband.audit.verdict import (
    Counted,
    Verdict,
    VerdictKind,
    verdict_on,
    verdict_on_all,
    verdict_on_parts,
)
from guardband.bands.promise import Part, Promise, Side
from guardband.words import plain

Counts = NDArray[np.int64]
Array = NDArray[np.float64]
Key = tuple[int | None, Side]


@dataclass(frozen=True)
class LevelFinding:
    """One promised level: how many rows are covered, what was to be expected, and the exact test.

    ``low`` to ``high`` is the range to expect of the count, each tail at the significance; fewer than ``least`` break
    the promise, None where nothing is promised. ``share_promised`` is what is promised of all new rows, None where it
    is on average. Widths are those of intervals, or the distance of the only bound from the prediction.
    """

    level: float
    n: int
    covered: int
    low: int
    high: int
    least: int | None
    p_value: float
    verdict: VerdictKind
    share_promised: float | None
    whole_line: bool
    mean_width: float
    median_width: float
    name: str = ""
    """The group that it is about, in words; none for all rows."""
    side: Side = "both"
    """Whether rows inside their intervals were counted, or those on the right side of one bound."""
    group: int | None = None
    """The number of the group; none for all rows."""

    @property
    def share(self) -> float:
        """The share of rows that are covered."""
        return self.covered / self.n

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        own: dict[str, Any] = plain(asdict(self) | {"share": self.share})
        return own


class Countable(Protocol):
    """Rows, or what was counted of them."""

    def count(self, part: Part) -> tuple[int, Counts]:
        """Return how many rows a part of the promise is about, and how many of them fell inside at each level."""

    def widths(self, part: Part, i: int) -> tuple[float, float]:
        """Return the mean and the median width at a level; NaN for a median that was not counted."""


@dataclass(frozen=True)
class Rows:
    """Rows with their intervals."""

    evidence: Evidence

    def count(self, part: Part) -> tuple[int, Counts]:
        """Return how many rows a part of the promise is about, and how many of them fell inside at each level."""
        rows = self.evidence.members(part.group)
        return int(rows.sum()), self.evidence.inside(part.side)[rows].sum(axis=0)

    def widths(self, part: Part, i: int) -> tuple[float, float]:
        """Return the mean and the median width at a level."""
        widths = self.evidence.reach[self.evidence.members(part.group), i]
        return float(widths.mean()), float(np.median(widths))


@dataclass(frozen=True, eq=False)
class Tally:
    """What was counted of rows that are gone: tallies of parts of them add up.

    Parameters
    ----------
    n : int
        The number of rows.
    members : dict of int
        The number of rows of each part of the promise, by its group and its side.
    inside : dict of arrays of shape (L,)
        How many of them fell inside.
    reached : dict of arrays of shape (L,)
        How wide their intervals are together.
    used : int
        How many rows trained or calibrated the model.
    """

    n: int
    members: Mapping[Key, int]
    inside: Mapping[Key, Counts]
    reached: Mapping[Key, Array]
    used: int

    @classmethod
    def of(cls, evidence: Evidence) -> Tally:
        """Return what is counted of some rows."""
        promise = evidence.certificate.promise
        parts = {_key(part): part for part in (*promise.statements(), Part(promise, side=promise.side))}
        members = {key: evidence.members(part.group) for key, part in parts.items()}
        return cls(
            evidence.n,
            {key: int(rows.sum()) for key, rows in members.items()},
            {key: evidence.inside(parts[key].side)[rows].sum(axis=0) for key, rows in members.items()},
            {key: evidence.reach[rows].sum(axis=0) for key, rows in members.items()},
            evidence.used_before,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.n + other.n,
            {key: own + other.members[key] for key, own in self.members.items()},
            {key: own + other.inside[key] for key, own in self.inside.items()},
            {key: own + other.reached[key] for key, own in self.reached.items()},
            self.used + other.used,
        )

    def count(self, part: Part) -> tuple[int, Counts]:
        """Return how many rows a part of the promise is about, and how many of them fell inside at each level."""
        return self.members[_key(part)], self.inside[_key(part)]

    def widths(self, part: Part, i: int) -> tuple[float, float]:
        """Return the mean width at a level; the median is not known."""
        key = _key(part)
        return float(self.reached[key][i] / self.members[key]), float("nan")


@dataclass(frozen=True)
class Judged:
    """The verdict, its p-value, each level, each part that has a promise of its own, and how many tests there were."""

    verdict: Verdict
    p_value: float
    levels: tuple[LevelFinding, ...]
    parts: tuple[LevelFinding, ...]
    among: int


def judged(
    promise: Promise, rows: Countable, used: Verdict | None, doubts: tuple[str, ...], significance: float
) -> Judged:
    """Return the verdict on what was counted; ``used`` is one that stands already, ``doubts`` is what keeps from one.

    The test is one-sided. With L promised levels each is tested at ``significance / L``.
    """
    expectations, parts = promise.expectations(), promise.statements()
    among = len(expectations) * len(parts)
    counts = [counted for part in parts for counted in _counts(rows, part, significance / among, among)]
    verdicts = [used or verdict_on(counted, doubts) for counted in counts]
    found = tuple(_finding(rows, *own) for own in zip(counts, verdicts, strict=True))
    verdict = used or (verdict_on_parts(counts, verdicts) if promise.is_parted else verdict_on_all(verdicts))
    p_value = min(1.0, among * min((own.p_value for own in found), default=1.0))
    if not promise.is_parted:
        return Judged(verdict, p_value, found, (), among)
    whole = Part(promise, side=promise.side)
    overall = _counts(rows, whole, significance / len(expectations), len(expectations))
    return Judged(verdict, p_value, tuple(_finding(rows, own, verdict) for own in overall), found, among)


def _key(part: Part) -> Key:
    return part.group, part.side


def _counts(rows: Countable, part: Part, significance: float, among: int) -> list[Counted]:
    """Return at each level how many rows are inside that a part of the promise is about; nothing without such rows."""
    n, inside = rows.count(part)
    expected = part.promise.expectations() if n else ()
    return [Counted(part, i, own, int(inside[i]), n, significance, among) for i, own in enumerate(expected)]


def _finding(rows: Countable, counted: Counted, verdict: Verdict) -> LevelFinding:
    i, expectation = counted.i, counted.expectation
    mean, median = rows.widths(counted.part, i)
    low, high = counted.expected
    return LevelFinding(
        level=expectation.level,
        n=counted.n,
        covered=counted.covered,
        low=low,
        high=high,
        least=expectation.least(counted.n, counted.significance) if counted.promise.binding else None,
        p_value=counted.p_value,
        verdict=verdict.kind,
        share_promised=expectation.share if counted.promise.binding else None,
        whole_line=counted.promise.whole_line[i],
        mean_width=mean,
        median_width=median,
        name=counted.part.name,
        side=counted.part.side,
        group=counted.part.group,
    )
