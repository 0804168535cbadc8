"""The audit: what do labelled rows say of the promise?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.counts import LevelFinding, Rows, judged
from guardband.audit.drift import Drift, drift_of
from guardband.audit.evidence import Evidence
from guardband.audit.families import families_of, searched_region
from guardband.audit.risk import RiskFinding, judged_risk
from guardband.audit.strata import Family, Stratum
from guardband.audit.verdict import (
    NEW_ROWS,
    Reason,
    VerdictKind,
    used_before,
)
from guardband.bands.sides import reach
from guardband.words import plain

Array = NDArray[np.float64]

CHANCE_MARKS = "Chance alone marks a group now and then, most of all if there are many tables."
GROUPS_INFORM = f"The promise is about all rows together. Groups are shown for information. {CHANCE_MARKS}"
OTHERS_INFORM = (
    'Only the groups under "Promise for each group" have a promise of their own. The groups here are shown for '
    f"information. {CHANCE_MARKS}"
)


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
    promise, used = evidence.certificate.promise, used_before(evidence)
    found = judged(promise, Rows(evidence), used, evidence.doubts, significance)
    verdict, p_value, levels = found.verdict, found.p_value, found.levels
    risk = judged_risk(evidence, significance, used)
    if risk is not None:
        verdict, p_value = risk[1], risk[0].p_value
        levels = tuple(replace(own, verdict=verdict.kind) for own in levels)
    law = promise.expectations()[0].expected
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
        curve=_curve(evidence, significance / found.among),
        notes=_notes(evidence),
        reason=verdict.reason,
        more_rows=verdict.more_rows,
        parts=found.parts,
        risk=None if risk is None else risk[0],
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
