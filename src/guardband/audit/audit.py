"""The audit: is the promise kept on labelled rows?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.drift import Drift, drift_of
from guardband.audit.evidence import Evidence
from guardband.audit.families import families_of, worst_slab
from guardband.audit.strata import Family, Stratum
from guardband.bands.law import Expectation
from guardband.data.fingerprint import MOST_OVERLAP
from guardband.words import chance, level_name, percent, plain

Array = NDArray[np.float64]

GROUPS_INFORM = (
    "Groups inform and do not break the promise, which is about all rows together. Each is tested at the audit's "
    "significance divided by the number of groups looked at, so that chance alone rarely marks one."
)


@dataclass(frozen=True)
class LevelFinding:
    """One promised level: how many rows are covered, what was to be expected, and the exact test.

    ``low`` to ``high`` is the 99% band of the count; fewer than ``least`` break the promise. ``kept`` is None where
    nothing is promised; ``share_promised`` is what is promised of all new rows, None where it is on average.
    """

    level: float
    n: int
    covered: int
    low: int
    high: int
    least: int
    p_value: float
    kept: bool | None
    share_promised: float | None
    whole_line: bool
    mean_width: float
    median_width: float

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

    ``kept`` is None where nothing is promised. With several levels ``p_value`` is the smallest times their number,
    and the first level is the headline. ``families`` holds coverage by group, width, size, time and column.
    """

    kept: bool | None
    p_value: float
    verdict: str
    significance: float
    levels: tuple[LevelFinding, ...]
    families: tuple[Family, ...]
    slab: Stratum | None
    drift: Drift
    curve: Curve | None
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.levels[0].n

    def to_dict(self) -> dict[str, Any]:
        """Return the audit for JSON."""
        return {
            "kept": self.kept,
            "p_value": self.p_value,
            "verdict": self.verdict,
            "significance": self.significance,
            "n": self.n,
            "levels": [level.to_dict() for level in self.levels],
            "families": [family.to_dict() for family in self.families],
            "groups_inform": GROUPS_INFORM,
            "worst_slab": None if self.slab is None else self.slab.to_dict(),
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
    each = significance / len(expectations)
    levels = tuple(_finding(evidence, i, expectation, each) for i, expectation in enumerate(expectations))
    kept = all(level.kept for level in levels) if promise.binding else None
    law = expectations[0].expected
    return Audit(
        kept=kept,
        p_value=min(1.0, len(levels) * min(level.p_value for level in levels)),
        verdict=_verdict(levels, significance),
        significance=significance,
        levels=levels,
        families=families_of(evidence, law, significance),
        slab=worst_slab(evidence, law, significance),
        drift=drift_of(
            evidence.reference,
            evidence.table,
            evidence.y,
            evidence.scores,
            evidence.calibration_scores,
            significance,
        ),
        curve=_curve(evidence),
        notes=_notes(evidence),
    )


def _finding(evidence: Evidence, i: int, expectation: Expectation, significance: float) -> LevelFinding:
    n, covered = evidence.n, int(evidence.covered[:, i].sum())
    lower, upper = evidence.intervals.per_level()
    widths = upper[:, i] - lower[:, i]
    p = expectation.p_value(covered, n)
    promised = evidence.certificate.promise.binding
    return LevelFinding(
        expectation.level,
        n,
        covered,
        *expectation.expected.band(n),
        expectation.least(n, significance),
        p,
        p >= significance if promised else None,
        expectation.share if promised else None,
        expectation.share == 1.0,
        float(widths.mean()),
        float(np.median(widths)),
    )


def _verdict(levels: tuple[LevelFinding, ...], significance: float) -> str:
    broken = [level for level in levels if level.kept is False]
    own = broken[0] if broken else levels[0]
    name = level_name(own.level)
    counted = f"{own.covered:,} of {own.n:,} rows ({percent(own.share)}) fell inside their {name} intervals"
    band = f"{own.low:,} to {own.high:,}"
    if own.kept is None:
        return f"Nothing was promised: {counted}; at exactly {name} coverage {band} would be usual."
    if own.kept is False:
        fair = level_name(1 - significance / len(levels))
        return (
            f"Promise broken: only {counted}; a kept promise leaves at least {own.least:,} inside in {fair} of all "
            f"audits ({chance(own.p_value)})."
        )
    if own.whole_line:
        return f"Promise kept, but for nothing: the {name} intervals are the whole line, which contains every outcome."
    if own.share_promised is not None:
        share = level_name(math.floor(1e4 * own.share_promised) / 1e4)
        return (
            f"Promise kept: {counted}, where at least {share} of all new rows were promised, for all but a few "
            f"calibration sets; fewer than {own.least:,} would have broken it."
        )
    if own.covered > own.high:
        return f"Promise kept: {counted}; that is more than the {band} to be expected, so they are wider than need be."
    return f"Promise kept: {counted}; {band} were to be expected."


def _curve(evidence: Evidence) -> Curve | None:
    ranked = evidence.levels()
    if not ranked:
        return None
    n = evidence.n
    covered, means, medians = [], [], []
    for level, _ in ranked:  # one level at a time: all at once would not fit in memory for many rows
        lower, upper = (ends[:, 0] for ends in evidence.ends([level]))
        covered.append(int(((lower <= evidence.y) & (evidence.y <= upper)).sum()))
        means.append(float((upper - lower).mean()))
        medians.append(float(np.median(upper - lower)))
    bands = [law.band(n) for _, law in ranked]
    return Curve(
        tuple(float(level) for level, _ in ranked),
        tuple(covered),
        tuple(low for low, _ in bands),
        tuple(high for _, high in bands),
        tuple(means),
        tuple(medians),
    )


def _notes(evidence: Evidence) -> tuple[str, ...]:
    out = []
    for count, what in zip(evidence.twins, ("trained the network", "calibrated it"), strict=True):
        if count:
            much = count > MOST_OVERLAP * evidence.n
            out.append(
                f"{count:,} of {evidence.n:,} rows equal rows that {what}. "
                + (
                    "So many make the audit worthless if they are the same rows: audit rows that are new."
                    if much
                    else "Chance twins do no harm; rows that were used before prove nothing."
                )
            )
    return tuple(out)
