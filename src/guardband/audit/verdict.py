"""The verdict: what labelled rows say of a promise, in one of four words and in a sentence. It is decided here alone.

A promise is broken only if the exact test refutes it. What was not refuted is not proved: rows are consistent with the
promise only if they could have shown a clear breach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from guardband.audit.evidence import Evidence
from guardband.bands.law import Expectation
from guardband.bands.promise import DISTINCT_ROW, Promise
from guardband.planning import marginal_rows, pac_rows
from guardband.words import about, apart, at_least, chance, level_name, percent

VerdictKind = Literal["consistent", "broken", "too few rows", "cannot judge"]

DECIDES_FIRST: tuple[VerdictKind, ...] = ("broken", "cannot judge", "too few rows", "consistent")
DOUBTFUL = 0.1
"""A share below the promise is in doubt if chance gives one as low with less probability than this."""
CLEAR_BREACH = 0.10
"""Rows are too few if they could not tell a coverage that lies this far below the promise."""
MOST_MORE_ROWS = 100_000
NEW_ROWS = "Use rows that are new to the model."


@dataclass(frozen=True)
class Verdict:
    """One of four words, and the sentence that says why."""

    kind: VerdictKind
    sentence: str


@dataclass(frozen=True)
class Counted:
    """How many of ``n`` rows fell inside at one of ``among`` levels; the level is tested at ``significance``."""

    promise: Promise
    i: int
    expectation: Expectation
    covered: int
    n: int
    significance: float
    among: int

    @property
    def share(self) -> float:
        """The share of rows that fell inside."""
        return self.covered / self.n

    @property
    def p_value(self) -> float:
        """The p-value of the exact test."""
        return self.expectation.p_value(self.covered, self.n)

    @property
    def promised(self) -> float:
        """The share that is promised: the level, or what follows for all new rows."""
        share = self.expectation.share
        return self.expectation.level if share is None else share

    @property
    def expected(self) -> tuple[int, int]:
        """The least and the largest count to expect, each tail at the significance of the test."""
        return self.expectation.expected.band(self.n, self.significance)

    @property
    def in_words(self) -> str:
        """The count, in a sentence without its end."""
        name = level_name(self.expectation.level)
        return f"{self.covered:,} of {self.n:,} rows ({percent(self.share)}) fell inside their {name} intervals"


def used_before(evidence: Evidence) -> Verdict | None:
    """Return that rows which trained or calibrated the model cannot judge it, if more are among them than by chance."""
    if evidence.used_before <= evidence.used_by_chance:
        return None
    name = None if evidence.drawn_from is None else evidence.drawn_from[1]
    what = "rows" if name is None else "different rows" if name == DISTINCT_ROW else f"entities ({name})"
    return Verdict(
        "cannot judge",
        f"Cannot judge: {evidence.used_before:,} of {evidence.n:,} {what} are among those that trained or calibrated "
        f"the model. {NEW_ROWS}",
    )


def verdict_on(counted: Counted, doubts: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict on one level; ``doubts`` says why rows may depend on each other."""
    if counted.promise.binding and counted.p_value < counted.significance:
        return Verdict("broken", _broken(counted))
    unable = _unable(counted, doubts)
    if unable is not None:
        return Verdict("cannot judge", unable)
    too_few = _too_few(counted)
    if too_few is not None:
        return Verdict("too few rows", too_few)
    return Verdict("consistent", f"Consistent with the promise: {counted.in_words}. {_expected(counted)}")


def verdict_on_all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several levels together: the first of those that weigh most."""
    return min(verdicts, key=lambda own: DECIDES_FIRST.index(own.kind))


def _broken(counted: Counted) -> str:
    least = counted.expectation.least(counted.n, counted.significance)
    return (
        f"Promise broken: only {counted.in_words}. If the promise held, {at_least(1 - counted.significance)} of all "
        f"audits would find at least {least:,} inside ({chance(counted.p_value)}). Calibrate on rows like those you "
        "will predict."
    )


def _unable(counted: Counted, doubts: tuple[str, ...]) -> str | None:
    """Return why nothing can be said of a promise that is not broken, if so it is."""
    promise, name = counted.promise, level_name(counted.expectation.level)
    if promise.whole_line[counted.i]:
        return _unusable(counted)
    if not promise.binding:
        low, high = counted.expected
        return (
            f"Cannot judge: nothing is promised. {counted.in_words}. "
            f"With a coverage of exactly {name}, {low:,} to {high:,} would be usual. "
            'For a promise, use method="conf-nn" or "pav".'
        )
    if doubts:
        return f"Cannot judge: {counted.in_words}, but rows may depend on each other. {doubts[0]}"
    return None


def _unusable(counted: Counted) -> str:
    promise, level = counted.promise, counted.expectation.level
    of_several = f" {level_name(level)}" if counted.among > 1 else ""
    n, rows = promise.n_calibration, promise.counted
    needed = _rows_needed(promise, level)
    if promise.rank is None or promise.rank[counted.i] <= n:
        why = "they are infinite. Train again, or choose another method."
    elif needed is None or needed <= n:
        why = f"{rows} are too few for this level. Calibrate on more rows."
    else:
        why = f"{rows}, and this level needs {needed:,}. Calibrate on more rows."
    return f"No usable{of_several} intervals: {why}"


def _rows_needed(promise: Promise, level: float) -> int | None:
    """Return the fewest calibration rows for a finite interval, None where that depends on more than the level."""
    if getattr(promise, "joint", False):
        return None
    return marginal_rows(level) if promise.delta is None else pac_rows(level, promise.delta)


def _too_few(counted: Counted) -> str | None:
    """Return that rows are too few to tell a share from the promise, if so it is, and how many more would tell."""
    least = counted.expectation.least(counted.n, counted.significance)
    breach = round(counted.promised - CLEAR_BREACH, 10)
    if counted.share < counted.promised and counted.p_value < DOUBTFUL / counted.among:
        share = counted.share
    elif least / counted.n < breach:
        share = breach
    else:
        return None
    return (
        f"Too few rows to tell {apart(share, counted.promised)} from {at_least(counted.promised)}: "
        f"{counted.covered:,} of {counted.n:,} fell inside. {_more(counted, share)}"
    )


def _more(counted: Counted, share: float) -> str:
    if share >= counted.expectation.least_share(counted.significance):
        few = counted.promise.counted
        return f"More of them would not help, because the model has only {few}. Calibrate on more rows."
    rows = rows_that_tell(counted.expectation, share, counted.n, counted.significance)
    if rows is None:
        return f"More than {MOST_MORE_ROWS:,} more would be needed."
    return f"About {about(rows - counted.n)} more would."


def rows_that_tell(expectation: Expectation, share: float, n: int, significance: float) -> int | None:
    """Return how many rows in all would break the promise if this share of them fell inside, more than n.

    None stands for more than ``MOST_MORE_ROWS`` further ones.
    """

    def tell(m: int) -> bool:
        return expectation.least(m, significance) > share * m

    low, high = n, n + 1
    while not tell(high):
        if high - n >= MOST_MORE_ROWS:
            return None
        low, high = high, n + min(2 * (high - n), MOST_MORE_ROWS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tell(middle) else (middle, high)
    return high


def _expected(counted: Counted) -> str:
    low, high = counted.expected
    if counted.covered > high:
        return f"Only {low:,} to {high:,} were expected: the intervals are wider than needed."
    if counted.expectation.share is None:
        return f"{low:,} to {high:,} were expected."
    least = counted.expectation.least(counted.n, counted.significance)
    return (
        f"The promise is at least {at_least(counted.promised)} of all new rows. "
        f"Fewer than {least:,} inside would have broken it."
    )
