"""Certificate: what is promised of an interval, under which assumption, with which numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from guardband.bands.ranks import average_coverage, coverage_bound, simultaneous_bound

Kind = Literal["marginal", "pac", "pav", "none"]
PavAim = Literal["selection", "pac", "average"]

EXCHANGEABLE = "calibration rows and new rows are exchangeable"
IDENTICAL = "calibration rows and new rows are independent and identically distributed"


@dataclass(frozen=True)
class Certificate:
    """The promise that comes with a set of intervals.

    With several levels, whatever depends on the level is a tuple in their order. ``rank`` is the number of
    calibration rows that the interval was asked to contain; it exceeds ``n_calibration`` where the interval
    is the whole line. For pav, ``tau`` is the chosen level of the network (0 is the whole line), ``covered``
    its count on the calibration rows, ``candidates`` the size of the grid and ``aim`` what ``rank`` was set for.
    ``whole_line`` tells that the interval is the whole line, for whatever reason, and ``joint`` that the promise
    holds for all levels at once. Of kind ``none``, nothing is promised, ``reason`` says why, and there is no rank.
    """

    kind: Kind
    method: str
    confidence_level: float | tuple[float, ...]
    n_calibration: int
    rank: int | tuple[int, ...] | None
    delta: float | None = None
    rule: str | None = None
    aim: PavAim = "selection"
    candidates: int = 1
    tau: float | tuple[float, ...] | None = None
    covered: int | tuple[int, ...] | None = None
    whole_line: bool | tuple[bool, ...] = False
    joint: bool = False
    chosen_after: bool = False
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of_nothing(
        cls, method: str, confidence_level: float | tuple[float, ...], n_calibration: int, reason: str
    ) -> Certificate:
        """Return a certificate that promises nothing, with the reason."""
        return cls("none", method, confidence_level, n_calibration, None, reason=reason)

    @property
    def assumption(self) -> str:
        """What must hold of the rows for the promise to hold."""
        if self.kind == "none":
            return "none, since nothing is promised"
        return EXCHANGEABLE if self.kind == "marginal" else IDENTICAL

    @property
    def expected_coverage(self) -> float | tuple[float, ...]:
        """What coverage, averaged over the draw of the calibration rows, is at least."""
        n, chosen_among = self.n_calibration, self.candidates if self.rule == "paper" else 1
        return self._per_level(lambda k, _: average_coverage(k, n, chosen_among))

    def coverage_bound(self, delta: float | None = None) -> float | tuple[float, ...]:
        """Return what coverage given the data is at least, with probability at least 1 - delta.

        The probability is over the draw of the calibration rows. For a rank fixed beforehand this is the
        delta-quantile of Beta(rank, n + 1 - rank), and 1 for the whole line; for the paper's pav rule the
        Clopper-Pearson bound of the chosen network at delta / K; for a level that was chosen after
        calibration a bound that holds for all levels at once. Each level is bounded apart.
        """
        delta = self._delta_or_default(delta)
        n = self.n_calibration

        def bound(k: int, covered: int | None) -> float:
            if self.chosen_after:
                return simultaneous_bound(delta, k, n)
            if self.rule == "paper":
                assert covered is not None
                # Clopper-Pearson: also covered == n keeps a bound below 1, since the band is finite.
                return coverage_bound(delta / self.candidates, covered, n)
            return coverage_bound(delta, k, n)

        return self._per_level(bound)

    def with_notes(self, *notes: str) -> Certificate:
        """Return the same certificate with further remarks."""
        return replace(self, notes=self.notes + notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate, with the numbers that follow from it, for JSON."""
        promises = self.kind != "none"
        return asdict(self) | {
            "assumption": self.assumption,
            "expected_coverage": self.expected_coverage if promises else None,
            "coverage_bound": self.coverage_bound() if promises else None,
        }

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Certificate:
        """Return the certificate that ``to_dict`` described."""
        own = {f.name for f in fields(cls)}
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entries.items() if k in own}
        return cls(**plain)

    def __str__(self) -> str:
        if self.kind == "none":
            level = _join(map(_percent, _as_tuple(self.confidence_level)))
            return (
                f"Promise: none. {self.method} aims at {level}, but {self.reason}.\n"
                f"How: {self.method}, with {self.n_calibration:,} held-out rows.\n"
                'For a promise use method="conf-nn" or "pav", or audit the intervals on rows from outside.'
            )
        lines = [self._promise(), self._how(), self._given_the_data()]
        lines.append(f"Assumes: {self._assumptions()}.")
        lines.append(
            "Not promised: coverage for one particular x or group, nor for rows from elsewhere or later "
            "if the data have changed."
        )
        if self.chosen_after:
            lines.append(
                "Note: this level was chosen after calibration. If the choice was made by looking at the "
                "intervals, only the bound given the data, which holds for all levels at once, remains."
            )
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def _promise(self) -> str:
        level = _join(map(_percent, _as_tuple(self.confidence_level)))
        confidence = _percent(1 - self._delta_or_default(None))
        apart = isinstance(self.confidence_level, tuple)
        each = "" if not apart else " (all levels at once)" if self.joint else " (each level apart)"
        if self.kind == "marginal" or (self.kind == "pav" and self.aim == "average"):
            return (
                f"Promise: a new row falls inside its interval with probability at least {level}{each}, "
                "averaged over the draw of the calibration rows."
            )
        kept, asked = level, ""
        if self.kind == "pav" and self.aim == "selection":
            kept, asked = _join(map(_at_least, _as_tuple(self.coverage_bound()))), f", where {level} was asked for"
        return (
            f"Promise: with probability at least {confidence} over the draw of the calibration rows{each}, the "
            f"intervals cover at least {kept} of all new rows{asked}."
        )

    def _how(self) -> str:
        n, ranks = self.n_calibration, _as_tuple(self.rank)
        if self.kind == "pav":
            return (
                f"How: {self.method} picked tau = {_join(f'{t:g}' for t in _as_tuple(self.tau))} from a grid of "
                f"{self.candidates} by the rule {self.rule!r}; it had to contain {_join(f'{k:,}' for k in ranks)} "
                f"of {n:,} held-out rows and contained {_join(f'{s:,}' for s in _as_tuple(self.covered))}."
                + (" tau = 0 is the whole line." if 0 in _as_tuple(self.tau) else "")
            )
        whole = " The interval is the whole line." if any(_as_tuple(self.whole_line)) else ""
        return f"How: {self.method}, cut at rank {_join(f'{k:,}' for k in ranks)} of {n:,} held-out scores.{whole}"

    def _given_the_data(self) -> str:
        expected = _join(map(_at_least, _as_tuple(self.expected_coverage)))
        bounds = _join(map(_at_least, _as_tuple(self.coverage_bound())))
        return (
            f"Coverage: at least {expected} expected; given these calibration rows at least {bounds}, with "
            f"{_percent(1 - self._delta_or_default(None))} confidence."
        )

    def _assumptions(self) -> str:
        if self.kind == "marginal":
            return f"{EXCHANGEABLE}; for the bound given the calibration rows, independent and identically distributed"
        return IDENTICAL

    def _delta_or_default(self, delta: float | None) -> float:
        if delta is None:
            return 0.1 if self.delta is None else self.delta
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, found {delta}.")
        return delta

    def _per_level(self, value: Callable[[int, int | None], float]) -> float | tuple[float, ...]:
        """Return a number for each level: 1 for the whole line, otherwise by its rank and count."""
        if self.rank is None:
            raise ValueError(f"{self.method} promises no coverage, so that nothing bounds it: {self.reason}.")
        ranks = _as_tuple(self.rank)
        counts = _as_tuple(self.covered) if self.covered is not None else (None,) * len(ranks)
        whole = _as_tuple(self.whole_line)
        whole = whole if len(whole) == len(ranks) else whole * len(ranks)
        values = tuple(
            1.0 if endless else value(k, count) for k, count, endless in zip(ranks, counts, whole, strict=True)
        )
        return values if isinstance(self.confidence_level, tuple) else values[0]


def _as_tuple(entry: Any) -> tuple[Any, ...]:
    return entry if isinstance(entry, tuple) else (entry,)


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"


def _at_least(share: float) -> str:
    """Return a share in percent, rounded down: 100% is only said of the whole line."""
    digits = 2
    while share < 1 and round(100 * share, digits) >= 100:
        digits += 1
    return f"{math.floor(100 * share * 10**digits) / 10**digits:.10g}%"


def _join(parts: Any) -> str:
    return " / ".join(parts)
