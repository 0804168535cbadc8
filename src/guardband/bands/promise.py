"""Promises: what may be said of intervals, in words, as a bound, and as the law that an audit tests.

Whatever depends on the level is a tuple, in the order of the levels. Every promise speaks for itself: no other file
asks which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from guardband.bands.law import Expectation, Law
from guardband.words import level_name

EXCHANGEABLE = "calibration rows and new rows are exchangeable"
IDENTICAL = "calibration rows and new rows are independent and identically distributed"
DISTINCT_ROW = "distinct row"
"""What rows belong to if some were repeated: the promise is then for a new row that repeats none of them."""
DELTA = 0.1
"""How often a bound given the data may fail, unless something else is asked."""


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
    entity: str | None = None
    """What rows belong to, in words: ``n_calibration`` counts these, with ``n_rows`` rows. None if rows stand alone."""
    n_rows: int | None = None

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            known = Promise.kinds.setdefault(cls.kind, cls)
            if known.__module__.startswith("guardband.") and known is not cls:
                raise TypeError(f"The kind {cls.kind!r} is guardband's own. Give {cls.__name__} another.")
            Promise.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        if Promise.kinds.get(self.kind) is not type(self):
            raise TypeError(f"{type(self).__name__} needs a kind of its own: files find it again by that.")

    @property
    def counted(self) -> str:
        """How many calibration rows there are, or what they belong to, in words."""
        n, end = self.n_calibration, "" if self.n_calibration == 1 else "s"
        if self.entity in (None, DISTINCT_ROW):
            return f"{n:,} {'' if self.entity is None else 'different '}calibration row{end}"
        return f"{n:,} calibration {'entity' if n == 1 else 'entities'} ({self.entity})"

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

    def widened(self) -> Promise:
        """Return the promise for intervals that may hold more than what it was made for."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        alone = ("entity", "n_rows", "shared") if self.entity is None else ()
        return {"kind": self.kind} | {name: value for name, value in asdict(self).items() if name not in alone}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Promise:
        """Return the promise that ``to_dict`` described."""
        fields: dict[str, Any] = {name: _tuples(value) for name, value in entries.items()}
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
            f"Promise: none. {method} aims at {levels_in_words(self)}, but {self.reason}.",
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


def joined(parts: Iterable[str]) -> str:
    """Return what stands for each level."""
    return " / ".join(parts)


def levels_in_words(promise: Promise) -> str:
    """Return all levels."""
    return joined(map(level_name, promise.confidence_level))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
