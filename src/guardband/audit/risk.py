"""A promised risk against labelled rows: their mean loss, and a test that holds over calibration rows and test rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, cast

from guardband.audit.evidence import Evidence
from guardband.audit.risk_test import RiskTest, risk_test
from guardband.audit.verdict import DOUBTFUL, MOST_MORE_ROWS, Verdict, VerdictKind, unusable
from guardband.bands.risk import DISTANCE
from guardband.bands.risk_promise import RiskPromise
from guardband.words import about, at_least, at_most, chance, number, plain

CLEAR_BREACH = 2
"""Rows are too few if they could not tell a mean loss of so many times the limit."""


@dataclass(frozen=True)
class RiskFinding:
    """The mean loss of ``n`` rows beside its limit, and the test.

    A mean of about ``breaking`` contradicts the promise; None if no mean of so many rows could. It is approximate,
    because rows with a larger mean would also widen what is to be expected.
    """

    n: int
    mean_loss: float
    limit: float
    cap: float
    loss: str
    breaking: float | None
    p_value: float
    verdict: VerdictKind

    @property
    def in_words(self) -> str:
        """The mean, in a sentence without its end."""
        what = "distance of {} from their intervals" if self.loss == DISTANCE else "loss of {}"
        return f"the mean {what.format(f'{self.n:,} rows')} is {number(self.mean_loss)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        own: dict[str, Any] = plain(asdict(self))
        return own


def judged_risk(
    evidence: Evidence, significance: float, used: Verdict | None = None
) -> tuple[RiskFinding, Verdict] | None:
    """Return the mean loss of the rows and the verdict on it, None if no risk is promised; ``used`` comes first."""
    if evidence.risk is None:
        return None
    promise, risk = cast(RiskPromise, evidence.certificate.promise), evidence.risk
    lower, upper = evidence.intervals.per_level()
    losses, n = risk.losses(evidence.y, lower[:, 0], upper[:, 0]), evidence.n
    total = float(losses.sum())
    test = risk_test(evidence, promise, total, significance)
    breaking = test.breaking if math.isfinite(test.breaking) else None
    numbers = (promise.limit, promise.cap, promise.loss, breaking, test.p_value)
    found = RiskFinding(n, total / n, *numbers, "consistent")
    verdict = used or _verdict(found, promise, test, significance, evidence.doubts)
    return RiskFinding(**asdict(found) | {"verdict": verdict.kind}), verdict


def _verdict(
    found: RiskFinding, promise: RiskPromise, test: RiskTest, significance: float, doubts: tuple[str, ...]
) -> Verdict:
    if promise.whole_line[0]:
        return Verdict("cannot judge", unusable(promise, 0, 1), "infinite")
    if found.p_value < significance:
        return Verdict(
            "broken",
            f"Promise broken: {found.in_words}. If the promise held, {at_least(1 - significance)} of all audits would "
            f"find less than about {_breaking(found)} ({chance(found.p_value)}). Calibrate on rows like those you will "
            "predict.",
        )
    if doubts:
        words = f"Cannot judge: {found.in_words}, but rows may depend on each other. {doubts[0]}"
        return Verdict("cannot judge", words, "dependent rows")
    return _too_few(found, promise, test) or Verdict(
        "consistent",
        f"Consistent with the promise: {found.in_words}. The promise is at most {at_most(found.limit)}, and a mean of "
        f"about {_breaking(found)} would have broken it.",
    )


def _too_few(found: RiskFinding, promise: RiskPromise, test: RiskTest) -> Verdict | None:
    """Return that rows are too few to tell a mean from the limit, if so it is, and how many more would tell."""
    clear = min(CLEAR_BREACH * promise.limit, (promise.limit + promise.cap) / 2)
    if found.mean_loss > promise.limit and found.p_value < DOUBTFUL:
        mean = found.mean_loss
    elif found.breaking is None or found.breaking > clear:
        mean = clear
    else:
        return None
    words = (
        f"Too few rows to tell: {found.in_words}. So few rows cannot tell a mean of {number(mean)} from "
        f"{number(promise.limit)}."
    )
    more = test.more_rows(mean)
    if more == math.inf:
        why = f"More test rows would not help, because the model has only {promise.counted}."
        return Verdict("too few rows", f"{words} {why} Calibrate on more rows.", "few calibration rows")
    if more is None:
        return Verdict("too few rows", f"{words} You need more than {MOST_MORE_ROWS:,} more rows.", "few test rows")
    return Verdict("too few rows", f"{words} You need about {about(int(more))} more rows.", "few test rows", int(more))


def _breaking(found: RiskFinding) -> str:
    return number(found.cap if found.breaking is None else found.breaking)
