"""Promises: what may be said of intervals, in words, as a bound, and as the law that an audit tests.

Whatever depends on the level is a tuple, in the order of the levels. Every promise speaks for itself: no other file
asks which kind it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from guardband.bands.law import Expectation, Law
from guardband.bands.ranks import average_coverage, coverage_bound, simultaneous_bound
from guardband.words import at_least, level_name

EXCHANGEABLE = "calibration rows and new rows are exchangeable"
IDENTICAL = "calibration rows and new rows are independent and identically distributed"
DELTA = 0.1
"""How often a bound given the data may fail, unless something else is asked."""

PavRule = Literal["paper", "fixed-sequence", "nested"]
PavAim = Literal["selection", "pac", "average"]


@dataclass(frozen=True, kw_only=True)
class Promise(ABC):
    """What is promised at each level from ``n_calibration`` rows; ``whole_line`` tells which intervals are infinite.

    A subclass is a frozen dataclass with a ``kind`` of its own, by which files find it again.
    """

    kind: ClassVar[str]
    binding: ClassVar[bool] = True
    """Whether anything is promised at all."""
    assumption: ClassVar[str] = IDENTICAL
    kinds: ClassVar[dict[str, type[Promise]]] = {}
    confidence_level: tuple[float, ...]
    n_calibration: int
    whole_line: tuple[bool, ...]
    rank: tuple[int, ...] | None = None
    delta: float | None = None

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Promise.kinds[cls.kind] = cls

    @abstractmethod
    def expected_coverage(self) -> tuple[float, ...]:
        """Return what coverage, averaged over the draw of the calibration rows, is at least."""

    @abstractmethod
    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what coverage given the data is at least, with probability 1 - delta over the calibration rows."""

    @abstractmethod
    def expectations(self) -> tuple[Expectation, ...]:
        """Return for each level the law of the number of covered rows, and what an audit tests it against."""

    @abstractmethod
    def lines(self, method: str) -> list[str]:
        """Return the promise and all that belongs to it, in sentences."""

    @abstractmethod
    def headline(self, method: str) -> str:
        """Return the promise of the first level in one sentence."""

    @abstractmethod
    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        return {"kind": self.kind} | asdict(self)

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Promise:
        """Return the promise that ``to_dict`` described."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()
        }
        kind = fields.pop("kind")
        if kind not in Promise.kinds:
            raise ValueError(f"There is no promise of the kind {kind!r} here: import the module that defines it first.")
        return Promise.kinds[kind](**fields)


@dataclass(frozen=True, kw_only=True)
class NoPromise(Promise):
    """Nothing is promised, and the reason."""

    kind = "none"
    binding = False
    assumption = "none, since nothing is promised"
    reason: str

    def expected_coverage(self) -> tuple[float, ...]:
        """Raise: nothing is known of coverage."""
        raise ValueError(f"Nothing bounds the coverage: {self.reason}.")

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Raise: nothing is known of coverage."""
        raise ValueError(f"Nothing bounds the coverage: {self.reason}.")

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the level itself as the yardstick."""
        laws = [Law(share=level) for level in self.confidence_level]
        return tuple(Expectation(law.share, law, (law,), None) for law in laws)

    def lines(self, method: str) -> list[str]:
        """Return that nothing is promised, why, and what to do."""
        return [
            f"Promise: none. {method} aims at {_levels(self)}, but {self.reason}.",
            f"How: {method}, with {self.n_calibration:,} held-out rows.",
            'For a promise use method="conf-nn" or "pav", or audit the intervals on rows from outside.',
        ]

    def headline(self, method: str) -> str:
        """Return that nothing is promised."""
        return f"Nothing is promised: {method} aims at {level_name(self.confidence_level[0])}, but {self.reason}."

    def not_promised(self) -> list[str]:
        """Return that nothing at all is."""
        return [
            "Any coverage at all: what these rows show holds for these rows, and new ones may differ.",
            "A method with a promise, such as conf-nn, needs no more than held-out rows that chose nothing.",
        ]


@dataclass(frozen=True, kw_only=True)
class RankPromise(Promise):
    """What follows from a rank fixed beforehand: coverage given the data is Beta(rank, n + 1 - rank), or larger.

    ``rank`` is the number of calibration rows that the interval was asked to contain; it exceeds ``n_calibration``
    where the interval is infinite. ``joint`` says that all levels hold at once, and ``chosen_after`` that the level was
    chosen after calibration. A subclass says whether the level is promised ``on_average``, or, with probability
    1 - ``delta``, of new rows given the data.
    """

    rank: tuple[int, ...]
    joint: bool = False
    chosen_after: bool = False

    @property
    @abstractmethod
    def on_average(self) -> bool:
        """Whether the level holds on average over calibration rows, not given the ones at hand."""

    def shares(self) -> tuple[float, ...]:
        """Return what is promised of new rows given the data, unless it is on average: the level."""
        return self.confidence_level

    def law(self, i: int) -> Law:
        """Return the law of the number of covered rows at a level."""
        return Law((self.rank[i], self.n_calibration))

    def expected_coverage(self) -> tuple[float, ...]:
        """Return rank / (n + 1), and 1 for the whole line."""
        return self._unless_whole(lambda i: average_coverage(self.rank[i], self.n_calibration))

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the delta-quantile of Beta(rank, n + 1 - rank), and 1 for the whole line; each level apart.

        For a level that was chosen after calibration it is a bound that holds for all levels at once.
        """
        bound = simultaneous_bound if self.chosen_after else coverage_bound
        return self._unless_whole(lambda i: bound(delta, self.rank[i], self.n_calibration))

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the laws of each level.

        On average: the law of the rank. Otherwise the promise is that coverage given the data is at least a share,
        but for a few calibration sets. Bin(m, share) alone would call these broken, and the law of the rank alone
        would call models broken that are at the share: the count is tested by both.
        """
        out = []
        for i, (level, whole) in enumerate(zip(self.confidence_level, self.whole_line, strict=True)):
            law, share = (Law(), 1.0) if whole else (self.law(i), None if self.on_average else self.shares()[i])
            tests = (law,) if whole or share is None else (law, Law(share=share))
            out.append(Expectation(level, law, tests, share))
        return tuple(out)

    def lines(self, method: str) -> list[str]:
        """Return promise, how, coverage, assumption, and what is not promised."""
        confidence = level_name(1 - self._delta)
        out = [
            self.sentence(),
            self.how(method),
            f"Coverage: at least {joined(map(at_least, self.expected_coverage()))} expected; given these calibration "
            f"rows at least {joined(map(at_least, self.coverage_bound(self._delta)))}, with {confidence} "
            "confidence.",
            f"Assumes: {self._assumptions()}.",
            "Not promised: coverage for one particular x or group, nor for rows from elsewhere or later "
            "if the data have changed.",
        ]
        if self.chosen_after:
            out.append(
                "Note: this level was chosen after calibration. If the choice was made by looking at the "
                "intervals, only the bound given the data, which holds for all levels at once, remains."
            )
        return out

    def sentence(self) -> str:
        """Return the promise."""
        several = " (all levels at once)" if self.joint else " (each level apart)"
        several = several if len(self.confidence_level) > 1 else ""
        if self.on_average:
            return (
                f"Promise: a new row falls inside its interval with probability at least {_levels(self)}{several}, "
                "averaged over the draw of the calibration rows."
            )
        kept, asked = joined(map(at_least, self.shares())), ""
        if self.shares() == self.confidence_level:
            kept = _levels(self)
        else:
            asked = f", where {_levels(self)} was asked for"
        return (
            f"Promise: with probability at least {level_name(1 - self._delta)} over the draw of the calibration "
            f"rows{several}, the intervals cover at least {kept} of all new rows{asked}."
        )

    def how(self, method: str) -> str:
        """Return where the interval comes from."""
        whole = " The interval is the whole line." if any(self.whole_line) else ""
        ranks = joined(f"{k:,}" for k in self.rank)
        return f"How: {method}, cut at rank {ranks} of {self.n_calibration:,} held-out scores.{whole}"

    def headline(self, method: str) -> str:
        """Return the promise of the first level in one or two plain sentences."""
        first, *others = self.confidence_level
        further = f" The same holds for {', '.join(map(level_name, others))}, each with intervals of its own."
        if self.on_average:
            chance = level_name(first)
            said = f"A new row from the same source falls inside its interval with probability at least {chance}."
        else:
            said = (
                f"With {level_name(round(1 - self._delta, 10))} confidence, at least "
                f"{_floored(self.shares()[0])} of all new rows from the same source fall inside their intervals."
            )
        return said + (further if others else "")

    def not_promised(self) -> list[str]:
        """Return what nobody can promise without further assumptions, and what a level on average does not say."""
        out = [
            "Coverage for one particular row: the share holds over all rows together, and for a given x it may be "
            "lower.",
            "Coverage within a group: some group may be covered less often, as others are covered more often.",
            "Coverage for rows from elsewhere or from later, if the data have changed: new rows must come from the "
            "source that the calibration rows came from.",
            "Short intervals, or good point predictions.",
        ]
        if self.assumption == EXCHANGEABLE:
            out.append(
                "The level for each calibration set: it holds on average over them. Given the one at hand, coverage is "
                f"at least {_floored(self.coverage_bound(DELTA)[0])} with 90% confidence, if rows are independent."
            )
        return out

    @property
    def _delta(self) -> float:
        return DELTA if self.delta is None else self.delta

    def _assumptions(self) -> str:
        if self.assumption != EXCHANGEABLE:
            return self.assumption
        return f"{EXCHANGEABLE}; for the bound given the calibration rows, independent and identically distributed"

    def _unless_whole(self, value: Callable[[int], float]) -> tuple[float, ...]:
        return tuple(1.0 if whole else value(i) for i, whole in enumerate(self.whole_line))


@dataclass(frozen=True, kw_only=True)
class MarginalPromise(RankPromise):
    """A new row falls inside with at least the level's probability, averaged over calibration rows (Theorem 1)."""

    kind = "marginal"
    assumption = EXCHANGEABLE
    on_average = True


@dataclass(frozen=True, kw_only=True)
class PacPromise(RankPromise):
    """With probability 1 - delta over calibration rows, at least the level's share of new rows falls inside."""

    kind = "pac"
    on_average = False


@dataclass(frozen=True, kw_only=True)
class PavPromise(RankPromise):
    """What follows from a network picked by its count on the calibration rows.

    ``tau`` is the level of the network that was picked (0 is the whole line), ``covered`` its count, ``candidates`` the
    size of the grid, ``rule`` how it was picked and ``aim`` what ``rank`` was set for. The K-free rules make coverage
    stochastically larger than Beta(rank, n + 1 - rank), the paper's own up to a factor K.
    """

    kind = "pav"
    rule: PavRule
    aim: PavAim
    candidates: int
    tau: tuple[float, ...]
    covered: tuple[int, ...]

    @property
    def on_average(self) -> bool:
        """Whether average coverage was asked for."""
        return self.aim == "average"

    @property
    def _among(self) -> int:
        return self.candidates if self.rule == "paper" else 1

    def shares(self) -> tuple[float, ...]:
        """Return the level if it was asked for, otherwise what follows for the network that was picked."""
        return self.coverage_bound(self._delta) if self.aim == "selection" else self.confidence_level

    def law(self, i: int) -> Law:
        """Return what bounds the number of covered rows from below."""
        return Law((self.rank[i], self.n_calibration), candidates=self._among, open=True)

    def expected_coverage(self) -> tuple[float, ...]:
        """Return the integral of ``ranks.average_coverage``, and 1 for the whole line."""
        return self._unless_whole(lambda i: average_coverage(self.rank[i], self.n_calibration, self._among))

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return the bound of the rank; for the paper's rule Clopper-Pearson's of the chosen network at delta / K.

        The latter stays below 1 where all rows are covered, since the interval is finite.
        """
        if self.rule != "paper":
            return super().coverage_bound(delta)
        share = delta / self.candidates
        return self._unless_whole(lambda i: coverage_bound(share, self.covered[i], self.n_calibration))

    def how(self, method: str) -> str:
        """Return which network was picked, and by what count."""
        return (
            f"How: {method} picked tau = {joined(f'{t:g}' for t in self.tau)} from a grid of {self.candidates} by the "
            f"rule {self.rule!r}; it had to contain {joined(f'{k:,}' for k in self.rank)} of {self.n_calibration:,} "
            f"held-out rows and contained {joined(f'{s:,}' for s in self.covered)}."
            + (" tau = 0 is the whole line." if 0 in self.tau else "")
        )


def joined(parts: Iterable[str]) -> str:
    """Return what stands for each level."""
    return " / ".join(parts)


def _levels(promise: Promise) -> str:
    return joined(map(level_name, promise.confidence_level))


def _floored(share: float) -> str:
    return level_name(math.floor(1e4 * share) / 1e4)
