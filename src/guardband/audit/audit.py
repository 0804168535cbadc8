"""The audit: what do labelled rows say of the promise?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.drift import Drift, drift_of
from guardband.audit.evidence import Evidence
from guardband.audit.families import families_of, searched_region
from guardband.audit.risk import RiskFinding, judged_risk
from guardband.audit.strata import Family, Stratum
from guardband.audit.verdict import (
    NEW_ROWS,
    Counted,
    Reason,
    Verdict,
    VerdictKind,
    used_before,
    verdict_on,
    verdict_on_all,
    verdict_on_parts,
)
from guardband.bands.promise import Part, Side
from guardband.bands.sides import reach
from guardband.words import plain

Array = NDArray[np.float64]

CHANCE_MARKS = "Chance alone marks a group now and then, most of all if there are many tables."
GROUPS_INFORM = f"The promise is about all rows together. Groups are shown for information. {CHANCE_MARKS}"
OTHERS_INFORM = (
    'Only the groups under "Promise for each group" have a promise of their own. The groups here are shown for '
    f"information. {CHANCE_MARKS}"
)


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


@dataclass(frozen=True, eq=False)
class Curve:
    """Coverage and width over a grid of levels, for rules that cut at a rank: ``(L,)`` each."""

    levels: tuple[float, ...]
    covered: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    mean_width: tuple[float, ...]
    median_width: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the curve for JSON."""
        own: dict[str, Any] = plain(asdict(self))
        return own


@dataclass(frozen=True, eq=False)
class Audit:
    """What labelled rows say of the promise.

    ``verdict`` is one of four words, ``sentence`` says why, and ``reason`` is that as a word. If rows are too few,
    ``more_rows`` is how many further ones would tell. With several levels ``p_value`` is the smallest times their
    number, and the first level is the headline. ``families`` holds coverage by group, width, size, time and column;
    ``region`` is where coverage looked lowest on a quarter of the rows, counted on the others. ``parts`` are the
    groups or sides that have a promise of their own, at each level. ``risk`` is the mean loss, if the promise is about
    it: rows are then counted for information only.
    """

    verdict: VerdictKind
    sentence: str
    p_value: float
    significance: float
    levels: tuple[LevelFinding, ...]
    families: tuple[Family, ...]
    region: Stratum | None
    drift: Drift
    curve: Curve | None
    notes: tuple[str, ...]
    reason: Reason = "count"
    more_rows: int | None = None
    parts: tuple[LevelFinding, ...] = ()
    risk: RiskFinding | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.levels[0].n

    @property
    def has_groups(self) -> bool:
        """Whether groups have a promise of their own."""
        return any(part.group is not None for part in self.parts)

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        from guardband.audit.audit_card import audit_card

        return audit_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "reason": self.reason,
            "more_rows": self.more_rows,
            "p_value": self.p_value,
            "significance": self.significance,
            "n": self.n,
            "levels": [level.to_dict() for level in self.levels],
            "parts": [part.to_dict() for part in self.parts],
            "risk": None if self.risk is None else self.risk.to_dict(),
            "families": [family.to_dict() for family in self.families],
            "groups_inform": OTHERS_INFORM if self.has_groups else GROUPS_INFORM,
            "searched_region": None if self.region is None else self.region.to_dict(),
            "drift": self.drift.to_dict(),
            "curve": None if self.curve is None else self.curve.to_dict(),
            "notes": list(self.notes),
        }


def audit(evidence: Evidence, significance: float = 0.01) -> Audit:
    """Return what the rows say: the promise is broken only if the exact test of overall coverage is significant.

    The test is one-sided. With L promised levels each is tested at ``significance / L``.
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    promise = evidence.certificate.promise
    expectations = promise.expectations()
    parts = promise.statements()
    among = len(expectations) * len(parts)
    counts = [counted for part in parts for counted in _counts(evidence, part, significance / among, among)]
    used = used_before(evidence)
    verdicts = [used or verdict_on(counted, evidence.doubts) for counted in counts]
    found = tuple(_finding(evidence, *own) for own in zip(counts, verdicts, strict=True))
    levels = found
    verdict = used or (verdict_on_parts(counts, verdicts) if promise.is_parted else verdict_on_all(verdicts))
    p_value = min(1.0, among * min((own.p_value for own in found), default=1.0))
    risk = judged_risk(evidence, significance, used)
    if risk is not None:
        verdict, p_value = risk[1], risk[0].p_value
        levels = tuple(_finding(evidence, own, verdict) for own in counts)
    if promise.is_parted:
        whole = Part(promise, side=promise.side)
        overall = _counts(evidence, whole, significance / len(expectations), len(expectations))
        levels = tuple(_finding(evidence, own, verdict) for own in overall)
    law = expectations[0].expected
    return Audit(
        verdict=verdict.kind,
        sentence=verdict.sentence,
        p_value=p_value,
        significance=significance,
        levels=levels,
        families=families_of(evidence, law, significance),
        region=searched_region(evidence, law, significance),
        drift=drift_of(
            evidence.reference,
            evidence.table,
            evidence.y,
            evidence.scores,
            evidence.calibration_scores,
            significance,
            evidence.keys,
        ),
        curve=_curve(evidence, significance / among),
        notes=_notes(evidence),
        reason=verdict.reason,
        more_rows=verdict.more_rows,
        parts=found if promise.is_parted else (),
        risk=None if risk is None else risk[0],
    )


def _counts(evidence: Evidence, part: Part, significance: float, among: int) -> list[Counted]:
    """Return at each level how many rows are inside that a part of the promise is about; nothing without such rows."""
    rows = evidence.members(part.group)
    n, inside = int(rows.sum()), evidence.inside(part.side)
    expected = part.promise.expectations() if n else ()
    return [Counted(part, i, own, int(inside[rows, i].sum()), n, significance, among) for i, own in enumerate(expected)]


def _finding(evidence: Evidence, counted: Counted, verdict: Verdict) -> LevelFinding:
    i, expectation = counted.i, counted.expectation
    widths = evidence.reach[evidence.members(counted.part.group), i]
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
        mean_width=float(widths.mean()),
        median_width=float(np.median(widths)),
        name=counted.part.name,
        side=counted.part.side,
        group=counted.part.group,
    )


def _curve(evidence: Evidence, tail: float) -> Curve | None:
    ranked = evidence.levels()
    if not ranked:
        return None
    n = evidence.n
    covered, means, medians = [], [], []
    for level, _ in ranked:  # one level at a time: all at once would not fit in memory for many rows
        lower, upper = (ends[:, 0] for ends in evidence.ends([level]))
        covered.append(int(((lower <= evidence.y) & (evidence.y <= upper)).sum()))
        widths = reach(lower, evidence.intervals.point, upper, evidence.side)
        means.append(float(widths.mean()))
        medians.append(float(np.median(widths)))
    bands = [law.band(n, tail) for _, law in ranked]
    return Curve(
        tuple(float(level) for level, _ in ranked),
        tuple(covered),
        tuple(low for low, _ in bands),
        tuple(high for _, high in bands),
        tuple(means),
        tuple(medians),
    )


def _notes(evidence: Evidence) -> tuple[str, ...]:
    drawn: tuple[str, ...] = ()
    if evidence.drawn_from is not None:
        given, name = evidence.drawn_from
        drawn = (f"One row of each {name} was drawn at random: {evidence.n:,} of {given:,} rows.",)
    what_to_do = "A few equal rows are normal and do no harm." if used_before(evidence) is None else NEW_ROWS
    return drawn + tuple(
        f"{count:,} of {evidence.n:,} rows {'equals a row' if count == 1 else 'equal rows'} that {what}. {what_to_do}"
        for count, what in zip(evidence.twins, ("trained the model", "calibrated it"), strict=True)
        if count
    )
