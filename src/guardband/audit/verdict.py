"""The verdict: what labelled rows say of a promise, in one of four words and in a sentence. It is decided here alone.

A promise is broken only if the exact test refutes it. What was not refuted is not proved: rows are consistent with the
promise only if they could have shown a clear breach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from guardband.audit.evidence import Evidence
from guardband.bands.law import Expectation
from guardband.bands.promise import DISTINCT_ROW, Part, Promise
from guardband.planning import marginal_rows, pac_rows
from guardband.words import about, apart, at_least, chance, level_name, listed, percent

VerdictKind = Literal["consistent", "broken", "too few rows", "cannot judge"]
Reason = Literal[
    "count", "few test rows", "few calibration rows", "infinite", "no promise", "used rows", "dependent rows", "no law"
]
"""What a verdict follows from: how many rows fell inside, or what keeps that number from saying anything."""

DECIDES_FIRST: tuple[VerdictKind, ...] = ("broken", "cannot judge", "too few rows", "consistent")
DOUBTFUL = 0.1
"""A share below the promise is in doubt if chance gives one as low with less probability than this."""
CLEAR_BREACH = 0.10
"""Rows are too few if they could not tell a coverage that lies this far below the promise."""
MOST_MORE_ROWS = 100_000
NEW_ROWS = "Use rows that are new to the model."
FELL = {
    "both": "fell inside their {} intervals",
    "lower": "were at or above their {} lower bounds",
    "upper": "were at or below their {} upper bounds",
}
"""What was counted, by the side of an interval that it is about."""


@dataclass(frozen=True)
class Verdict:
    """One of four words, the sentence that says why, and the reason as a word.

    ``more_rows`` says how many further rows would tell, where that is known.
    """

    kind: VerdictKind
    sentence: str
    reason: Reason = "count"
    more_rows: int | None = None


@dataclass(frozen=True)
class Counted:
    """How many of ``n`` rows of a part of the promise fell inside at a level, one of ``among`` such counts.

    Each is tested at ``significance``.
    """

    part: Part
    i: int
    expectation: Expectation
    covered: int
    n: int
    significance: float
    among: int

    @property
    def promise(self) -> Promise:
        """What is promised of these rows."""
        return self.part.promise

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
        where = f" with {self.part.name}" if self.part.name else ""
        count = f"{self.covered:,} of {self.n:,} rows{where} ({percent(self.share)})"
        targets = self.promise.all_targets
        fell = f"had {targets} inside their {{}} intervals" if targets else FELL[self.part.side]
        return f"{count} {fell.format(level_name(self.expectation.level))}"


def used_before(evidence: Evidence) -> Verdict | None:
    """Return that rows which trained or calibrated the model cannot judge it, if more are among them than by chance."""
    name = None if evidence.drawn_from is None else evidence.drawn_from[1]
    return used_rows(evidence.used_before, evidence.n, evidence.used_by_chance, name)


def used_rows(used: int, n: int, by_chance: int, name: str | None = None) -> Verdict | None:
    """Return the same from counts; ``name`` is what rows belong to, if they belong together."""
    if used <= by_chance:
        return None
    what = "rows" if name is None else "different rows" if name == DISTINCT_ROW else f"entities ({name})"
    return Verdict(
        "cannot judge",
        f"Cannot judge: {used:,} of {n:,} {what} are among those that trained or calibrated the model. {NEW_ROWS}",
        "used rows",
    )


def verdict_on(counted: Counted, doubts: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict on one level; ``doubts`` says why rows may depend on each other."""
    if counted.promise.binding and counted.p_value < counted.significance:
        return Verdict("broken", _broken(counted))
    unable = _unable(counted, doubts)
    if unable is not None:
        return unable
    too_few = _too_few(counted)
    if too_few is not None:
        return too_few
    return Verdict("consistent", f"Consistent with the promise: {counted.in_words}. {_expected(counted)}")


def verdict_on_all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several levels together: the first of those that weigh most."""
    return min(verdicts, key=lambda own: DECIDES_FIRST.index(own.kind))


def verdict_on_parts(counts: Sequence[Counted], verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a promise of several parts: it is broken if one of them is."""
    pairs = sorted(zip(counts, verdicts, strict=True), key=lambda pair: pair[0].p_value)
    if not pairs:
        return Verdict(
            "cannot judge",
            "Cannot judge: no row belongs to a group that has a promise. Use rows of the groups in the certificate.",
            "few test rows",
        )
    by_kind = {kind: [pair for pair in pairs if pair[1].kind == kind] for kind in DECIDES_FIRST}
    broken, fine, few = by_kind["broken"], by_kind["consistent"], by_kind["too few rows"]
    if len(pairs) == 1:
        return pairs[0][1]
    if broken:
        others = _named([pair for pair in broken[1:] if pair[0].part != broken[0][0].part])
        return replace(broken[0][1], sentence=broken[0][1].sentence + (f" Broken too: {others}." if others else ""))
    if all(verdict.reason == "infinite" for verdict in verdicts):
        return max(pairs, key=lambda pair: pair[0].promise.n_calibration)[1]
    told = {own.part for own, _ in fine} - {own.part for own, _ in few}
    if 2 * len(told) < len({own.part for own, _ in (*fine, *few)}) or not fine:
        return verdict_on_all(verdict for _, verdict in (few or pairs))
    if len(fine) == len(pairs) and all(counted.part.group is None for counted, _ in pairs):
        return Verdict("consistent", f"Consistent with the promise: {', and '.join(own.in_words for own in counts)}.")
    sides = {counted.part.side for counted, _ in pairs}
    parts = "groups" if len(sides) == 1 and all(counted.part.name for counted, _ in pairs) else "parts"
    doubtful, whole = ({own.part for own, _ in some} for some in ([pair for pair in pairs if pair not in fine], pairs))
    words = (
        f"Consistent with the promise: {len(whole - doubtful):,} of {len(whole):,} {parts} have as many rows inside as "
        "expected"
    )
    few_or_infinite = ((few, "too few rows to tell"), (by_kind["cannot judge"], "infinite intervals"))
    rest = [f"{_have(own)} {what}: {_named(own)}" for own, what in few_or_infinite if own]
    return Verdict("consistent", ". ".join([words, *rest]) + ".")


def _have(pairs: Sequence[tuple[Counted, Verdict]]) -> str:
    count = len({counted.part for counted, _ in pairs})
    return f"{count:,} {'has' if count == 1 else 'have'}"


def _named(pairs: Sequence[tuple[Counted, Verdict]]) -> str:
    names = list(dict.fromkeys(_part_named(counted.part) for counted, _ in pairs))
    return listed(names) if any(counted.part.name for counted, _ in pairs) else " and ".join(names)


def _part_named(part: Part) -> str:
    """Return the group or the bounds that a part is about."""
    bounds = "" if part.side == "both" else f"{part.side} bounds"
    return f"{part.name} ({bounds})" if part.name and bounds else part.name or bounds


def _broken(counted: Counted) -> str:
    least = counted.expectation.least(counted.n, counted.significance)
    return (
        f"Promise broken: only {counted.in_words}. If the promise held, {at_least(1 - counted.significance)} of all "
        f"audits would find at least {least:,} inside ({chance(counted.p_value)}). Calibrate on rows like those you "
        "will predict."
    )


def _unable(counted: Counted, doubts: tuple[str, ...]) -> Verdict | None:
    """Return why nothing can be said of a promise that is not broken, if so it is."""
    promise, name = counted.promise, level_name(counted.expectation.level)
    if promise.whole_line[counted.i]:
        return Verdict("cannot judge", unusable(promise, counted.i, counted.among, counted.part.name), "infinite")
    if not promise.binding:
        low, high = counted.expected
        return Verdict(
            "cannot judge",
            f"Cannot judge: nothing is promised. {counted.in_words}. "
            f"With a coverage of exactly {name}, {low:,} to {high:,} would be usual. "
            'For a promise, use method="conf-nn" or "pav".',
            "no promise",
        )
    if not promise.is_testable:
        words = f"Cannot judge: {counted.in_words}. {promise.why_untestable()}"
        return Verdict("cannot judge", words, "no law")
    if doubts:
        words = f"Cannot judge: {counted.in_words}, but rows may depend on each other. {doubts[0]}"
        return Verdict("cannot judge", words, "dependent rows")
    return None


def unusable(promise: Promise, i: int, among: int, group: str = "") -> str:
    """Return why the intervals of one of ``among`` levels are infinite, in a group if there is one, and what to do."""
    if promise.is_parted:  # the part that lacks the fewest rows
        part = max(promise.statements(), key=lambda own: own.promise.n_calibration)
        promise, group = part.promise, part.name
    level = promise.confidence_level[i]
    of_several = f" {level_name(level)}" if among > 1 else ""
    n, rows = promise.n_calibration, promise.counted + (f" with {group}" if group else "")
    needed = rows_needed(promise, level)
    if promise.why_infinite(i):
        why = promise.why_infinite(i)
    elif promise.rank is None or promise.rank[i] <= n:
        why = "they are infinite. Train again, or choose another method."
    elif needed is None or needed <= n:
        why = f"{rows} are too few for this level. Calibrate on more rows."
    else:
        why = f"{rows}, and this level needs {needed:,}. Calibrate on more rows."
    return f"No usable{of_several} intervals: {why}"


def rows_needed(promise: Promise, level: float) -> int | None:
    """Return the fewest calibration rows for a finite interval, None where that depends on more than the level.

    Of bounds that have a promise each, the one that needs more rows counts, at its own level.
    """
    known = promise.least_rows()
    if known is not None:
        return known
    parts = promise.statements()
    if promise.is_parted and all(own.group is None for own in parts):
        at = promise.confidence_level.index(level)
        each = [rows_needed(own.promise, own.promise.confidence_level[at]) for own in parts]
        return None if None in each else max(count for count in each if count is not None)
    if getattr(promise, "joint", False):
        return None
    return marginal_rows(level) if promise.delta is None else pac_rows(level, promise.delta)


def _too_few(counted: Counted) -> Verdict | None:
    """Return that rows are too few to tell a share from the promise, if so it is, and how many more would tell."""
    least = counted.expectation.least(counted.n, counted.significance)
    breach = round(counted.promised - CLEAR_BREACH, 10)
    if counted.share < counted.promised and counted.p_value < DOUBTFUL / counted.among:
        share = counted.share
    elif least / counted.n < breach:
        share = breach
    else:
        return None
    where = f" with {counted.part.name}" if counted.part.name else ""
    targets = counted.promise.all_targets
    fell = f"had {targets} inside" if targets else "fell inside"
    words = (
        f"Too few rows to tell: {counted.covered:,} of {counted.n:,} rows{where} {fell}. They cannot tell a "
        f"coverage of {apart(share, counted.promised)} from {at_least(counted.promised)}."
    )
    if share >= counted.expectation.least_share(counted.significance):
        why = f"More test rows would not help, because the model has only {counted.promise.counted}."
        return Verdict("too few rows", f"{words} {why} Calibrate on more rows.", "few calibration rows")
    rows = rows_that_tell(counted.expectation, share, counted.n, counted.significance)
    if rows is None:
        return Verdict("too few rows", f"{words} You need more than {MOST_MORE_ROWS:,} more rows.", "few test rows")
    more = rows - counted.n
    return Verdict("too few rows", f"{words} You need about {about(more)} more rows.", "few test rows", more)


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
    if counted.expectation.share is None and high == counted.n:
        return f"At least {low:,} were expected."
    if counted.expectation.share is None:
        return f"{low:,} to {high:,} were expected."
    least = counted.expectation.least(counted.n, counted.significance)
    return (
        f"The promise is at least {at_least(counted.promised)} of all new rows. "
        f"Fewer than {least:,} inside would have broken it."
    )
