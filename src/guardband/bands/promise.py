"""Promises: what may be said of intervals, in words, as a bound, and as the law that an audit tests.

Whatever depends on the level is a tuple, in the order of the levels. Every promise speaks for itself: no other file
asks which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

from guardband.bands.law import Expectation, Law
from guardband.words import level_name

EXCHANGEABLE = "new rows come from the same source as the calibration rows, in no particular order (exchangeable)"
INDEPENDENT = "(independent and identically distributed)"
IDENTICAL = f"calibration rows and new rows are independent draws from the same source {INDEPENDENT}"
OTHER_METHODS = 'Use method="conf-nn" or "pav" for a promise.'
DISTINCT_ROW = "distinct row"
"""What rows belong to if some were repeated: the promise is then for a new row that repeats none of them."""
DELTA = 0.1
"""How often a bound given the data may fail, unless something else is asked."""
Side = Literal["both", "lower", "upper"]
"""Which ends of an interval something is said of."""


@dataclass(frozen=True, kw_only=True)
class Promise(ABC):
    """What is promised at each level from ``n_calibration`` rows; ``whole_line`` tells which intervals are infinite.

    A subclass is a frozen dataclass with a ``kind`` of its own, by which files find it again.

    Parameters
    ----------
    confidence_level : tuple of float
        The levels that were asked for.
    n_calibration : int
        The number of calibration rows, or of what they belong to.
    whole_line : tuple of bool
        At each level, whether the interval is infinite.
    rank : tuple of int, default None
        At each level, how many calibration rows the interval had to contain.
    delta : float, default None
        How often the promise may fail over possible calibration sets. None if it is on average.
    entity : str, default None
        What rows belong to, in words. None if rows stand alone.
    n_rows : int, default None
        How many rows these entities have in all.
    """

    kind: ClassVar[str]
    binding: ClassVar[bool] = True
    """Whether anything is promised at all."""
    assumption: ClassVar[str] = IDENTICAL
    is_of_new_rows: ClassVar[bool] = True
    """Whether its bounds are about new rows; otherwise they are about the rows that were judged so far."""
    is_of_coverage: ClassVar[bool] = True
    """Whether it is about a share of rows, at a confidence level."""
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
                raise TypeError(f"guardband already uses the kind {cls.kind!r}. Give {cls.__name__} another kind.")
            Promise.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        if Promise.kinds.get(self.kind) is not type(self):
            raise TypeError(
                f"{type(self).__name__} has no kind of its own. Set its class attribute kind to a new name."
            )

    @property
    def guarantee(self) -> str:
        """What kind of promise it is, or each of its parts: ``"marginal"``, ``"pac"``, ``"pav"``, ``"none"``."""
        return self.kind

    @property
    def is_parted(self) -> bool:
        """Whether it consists of parts that are tested one by one."""
        return False

    @property
    def side(self) -> Side:
        """Which bound it is about, if intervals have only one."""
        return "both"

    def tails(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Return at each level the share that may lie below the interval, and above; None for a side with no bound."""
        half = tuple((1 - level) / 2 for level in self.confidence_level)
        return half, half

    @property
    def some_infinite(self) -> tuple[bool, ...]:
        """At each level, whether the intervals of some rows are infinite for want of calibration rows."""
        return self.whole_line

    @property
    def n_targets(self) -> int:
        """How many targets it is about."""
        return 1

    @property
    def all_targets(self) -> str:
        """All targets that must lie inside at once, in words; nothing for one target."""
        return ""

    @property
    def is_of_each_target(self) -> bool:
        """Whether each of several targets has a promise of its own, and nothing is promised of all at once."""
        return False

    @property
    def chosen_from(self) -> int:
        """How many candidates this one was chosen from by its calibration rows."""
        return 1

    @property
    def is_bound_known(self) -> bool:
        """Whether there is a bound on coverage for the calibration set at hand."""
        return True

    @property
    def counts_rows_inside(self) -> bool:
        """Whether the rank says how many calibration rows the intervals contain."""
        return True

    @property
    def is_testable(self) -> bool:
        """Whether the law of the number of covered rows is known, by which an audit tests the promise."""
        return True

    def why_untestable(self) -> str:
        """Return why an audit cannot judge the promise, and what to do; nothing if it can."""
        return ""

    def why_infinite(self, i: int) -> str:
        """Return why intervals are infinite at a level, and what to do; nothing if the rank says it.

        Parameters
        ----------
        i : int
            The position of the level.
        """
        return ""

    def risk_entries(self) -> dict[str, Any] | None:
        """Return what is promised of the mean loss of new rows, for JSON; None if nothing is."""
        return None

    def least_rows(self) -> int | None:
        """Return the fewest calibration rows for finite intervals, if the promise knows it better than its level."""
        return None

    def risk_figures(self) -> list[tuple[str, str]]:
        """Return the figures of a promised mean loss by name, in words; none if a confidence level is promised."""
        return []

    @property
    def counted(self) -> str:
        """How many calibration rows there are, or what they belong to, in words."""
        n, end = self.n_calibration, "" if self.n_calibration == 1 else "s"
        if self.entity in (None, DISTINCT_ROW):
            return f"{n:,} {'' if self.entity is None else 'different '}calibration row{end}"
        return f"{n:,} calibration {'entity' if n == 1 else 'entities'} ({self.entity})"

    @abstractmethod
    def expected_coverage(self) -> tuple[float, ...]:
        """Return what coverage is at least, on average over possible calibration sets."""

    @abstractmethod
    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what coverage is at least, with probability 1 - delta over possible calibration sets.

        Parameters
        ----------
        delta : float
            How often the bound may fail over possible calibration sets.
        """

    @abstractmethod
    def expectations(self) -> tuple[Expectation, ...]:
        """Return for each level the law of the number of covered rows, and what an audit tests it against."""

    @abstractmethod
    def lines(self, method: str) -> list[str]:
        """Return the promise and all that belongs to it, in sentences.

        Parameters
        ----------
        method : str
            The name of the method.
        """

    @abstractmethod
    def headline(self, method: str) -> str:
        """Return the promise of the first level in one sentence.

        Parameters
        ----------
        method : str
            The name of the method.
        """

    @abstractmethod
    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""

    def statements(self) -> tuple[Part, ...]:
        """Return what an audit tests: the promise as a whole, or its parts."""
        return (Part(self),)

    def of_entities(self, entity: str, n_rows: int) -> Promise:
        """Return the promise for rows that belong together.

        Parameters
        ----------
        entity : str
            What rows belong to, in words.
        n_rows : int
            How many rows there are in all.
        """
        return replace(self, entity=entity, n_rows=n_rows)

    def chosen_among(self, candidates: int, delta: float) -> Promise:
        """Return the promise for one of several candidates that its own calibration rows chose.

        Parameters
        ----------
        candidates : int
            How many candidates there were. Each was calibrated with this share of ``delta``.
        delta : float
            How often the promise may fail, whichever of them is chosen.
        """
        raise ValueError(
            'Only a pac promise holds for a candidate that its calibration rows chose. Use guarantee="pac" with '
            'method="conf-nn", "conf-fw", "cqr" or "cqr-r".'
        )

    def of_target(self, j: int) -> Promise:
        """Return what is promised of one target alone, if there are several.

        Parameters
        ----------
        j : int
            The position of the target.
        """
        return self

    def with_targets(self, each: Sequence[Promise], found: Promise) -> Promise:
        """Return this promise with what calibration rows settled, as ``found`` has it, or each target.

        Parameters
        ----------
        each : sequence of Promise
            The promise of each target.
        found : Promise
            A promise of the same kind, from calibration rows.
        """
        return replace(self, n_calibration=found.n_calibration, whole_line=found.whole_line, rank=found.rank)

    def widened(self) -> Promise:
        """Return the promise for intervals that may hold more than what it was made for."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        alone = ("entity", "n_rows", "shared") if self.entity is None else ()
        return {"kind": self.kind} | {name: value for name, value in asdict(self).items() if name not in alone}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Promise:
        """Return the promise that ``to_dict`` described.

        Parameters
        ----------
        entries : dict
            What ``to_dict`` returned.
        """
        fields: dict[str, Any] = {name: _tuples(value) for name, value in entries.items()}
        kind = fields.pop("kind")
        if kind not in Promise.kinds:
            raise ValueError(f"The kind of promise {kind!r} is not known. Import the module that defines it first.")
        return Promise.kinds[kind].restored(fields)

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Promise:
        """Return the promise from the entries that ``to_dict`` gave, lists as tuples.

        Parameters
        ----------
        fields : dict
            The entries, without the kind.
        """
        return cls(**fields)


@dataclass(frozen=True)
class Part:
    """One statement of a promise: of which rows, of which ends of their intervals, and what is promised of these.

    Parameters
    ----------
    promise : Promise
        What is promised of these rows.
    group : int, default None
        The number of the group that the rows belong to. None for all rows.
    name : str, default ""
        The group, in words.
    side : {"both", "lower", "upper"}, default "both"
        Whether the statement is about intervals, their lower bounds or their upper bounds.
    width : tuple of float, default None
        The mean width of the intervals of these calibration rows, for each level.
    plain_width : tuple of float, default None
        What it would be with one promise for all rows.
    """

    promise: Promise
    group: int | None = None
    name: str = ""
    side: Side = "both"
    width: tuple[float, ...] | None = field(default=None, compare=False)
    plain_width: tuple[float, ...] | None = field(default=None, compare=False)

    @property
    def cost(self) -> tuple[float, ...] | None:
        """How much wider the intervals are than with one promise for all rows, as a share; None if unknown."""
        if self.width is None or self.plain_width is None or not min(self.plain_width) > 0:
            return None
        return tuple(own / plain - 1 for own, plain in zip(self.width, self.plain_width, strict=True))


@dataclass(frozen=True, kw_only=True)
class NoPromise(Promise):
    """Nothing is promised, and the reason.

    Parameters
    ----------
    reason : str
        Why nothing is promised, in words.
    """

    kind = "none"
    binding = False
    assumption = "none, because nothing is promised"
    reason: str = field(compare=False)
    """Why, in words; they may differ between versions of guardband."""

    def expected_coverage(self) -> tuple[float, ...]:
        """Raise: nothing is known of coverage."""
        raise ValueError(f"This method promises no coverage: {self.reason}. {OTHER_METHODS}")

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Raise: nothing is known of coverage."""
        raise ValueError(f"This method promises no coverage: {self.reason}. {OTHER_METHODS}")

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the level itself as the yardstick."""
        laws = [Law(share=level) for level in self.confidence_level]
        return tuple(Expectation(law.share, law, (law,), None) for law in laws)

    def lines(self, method: str) -> list[str]:
        """Return that nothing is promised, why, and what to do."""
        return [
            f"Promise: none. {method} aims at {levels_in_words(self)}, but {self.reason}.",
            f"How: {method} was given {self.n_calibration:,} calibration rows.",
            f"What to do: {OTHER_METHODS[0].lower()}{OTHER_METHODS[1:]} Or audit the intervals on new rows.",
        ]

    def headline(self, method: str) -> str:
        """Return that nothing is promised."""
        return f"Nothing is promised: {method} aims at {level_name(self.confidence_level[0])}, but {self.reason}."

    def not_promised(self) -> list[str]:
        """Return that nothing at all is."""
        return [
            "Any coverage. New rows may be covered less often than the rows shown here.",
            OTHER_METHODS,
        ]


def joined(parts: Iterable[str]) -> str:
    """Return what stands for each level."""
    return " / ".join(parts)


def levels_in_words(promise: Promise) -> str:
    """Return all levels."""
    return joined(map(level_name, promise.confidence_level))


def infinite_in_words(promise: Promise) -> str:
    """Return at which levels the intervals are infinite; nothing if at none."""
    pairs = zip(promise.confidence_level, promise.whole_line, strict=True)
    levels = [level_name(level) for level, whole in pairs if whole]
    at = f" at {joined(levels)}" if len(promise.confidence_level) > 1 else ""
    return f" The intervals are infinite{at}." if levels else ""


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _tuples(own) for name, own in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
