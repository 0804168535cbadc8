"""One promise for each of several targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guardband.bands.law import Expectation
from guardband.bands.promise import DELTA, Part, Promise
from guardband.words import listed

MISSING_AT_RANDOM = "The promise assumes that whether a target is missing has nothing to do with the row."
"""What to say if some calibration rows lack a target."""
NOT_PROMISED, ALL_AT_ONCE = "Not promised: ", "coverage of all targets at once"


@dataclass(frozen=True, kw_only=True)
class EachPromise(Promise):
    """A promise for each of several targets, each for itself; nothing is promised of all targets at once.

    Parameters
    ----------
    names : tuple of str
        The names of the targets.
    of_each : tuple of Promise
        What is promised of each.
    """

    kind = "each"
    is_of_each_target = True
    names: tuple[str, ...]
    of_each: tuple[Promise, ...]

    @property
    def n_targets(self) -> int:
        """How many targets it is about."""
        return len(self.names)

    @property
    def guarantee(self) -> str:
        """What kind of promise each target has."""
        return self.of_each[0].guarantee

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What must hold of the rows: the same for each target."""
        return self.of_each[0].assumption

    @property
    def counted(self) -> str:
        """How many calibration rows there are in words: as many as a target has at most."""
        most = max(self.of_each, key=lambda own: own.n_calibration).counted
        return most if self._is_alike else f"up to {most}"

    @property
    def _is_alike(self) -> bool:
        return len({own.n_calibration for own in self.of_each}) == 1

    @property
    def some_infinite(self) -> tuple[bool, ...]:
        """At each level, whether a target has infinite intervals."""
        return tuple(any(own) for own in zip(*(promise.whole_line for promise in self.of_each), strict=True))

    def expected_coverage(self) -> tuple[float, ...]:
        """Return what the coverage of each target is at least, on average."""
        return _least([own.expected_coverage() for own in self.of_each])

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what the coverage of any one target is at least, with probability 1 - delta."""
        return _least([own.coverage_bound(delta) for own in self.of_each])

    def expectations(self) -> tuple[Expectation, ...]:
        """Return those of the target with the fewest calibration rows: each target is tested by its own."""
        return min(self.of_each, key=lambda own: own.n_calibration).expectations()

    def statements(self) -> tuple[Part, ...]:
        """Return what is promised of each target."""
        return tuple(Part(own, name=name) for name, own in zip(self.names, self.of_each, strict=True))

    def of_entities(self, entity: str, n_rows: int) -> EachPromise:
        """Return the promise for rows that belong together."""
        each = tuple(own.of_entities(entity, n_rows) for own in self.of_each)
        return replace(self, entity=entity, n_rows=n_rows, of_each=each)

    def of_target(self, j: int) -> Promise:
        """Return the promise of one target."""
        return self.of_each[j]

    def with_targets(self, each: Sequence[Promise], found: Promise) -> EachPromise:
        """Return this promise with that of each target."""
        infinite = tuple(all(own) for own in zip(*(promise.whole_line for promise in each), strict=True))
        return replace(self, of_each=tuple(each), n_calibration=found.n_calibration, whole_line=infinite)

    def lines(self, method: str) -> list[str]:
        """Return the promise of each target; what is the same for all is said once."""
        first = [line.replace(NOT_PROMISED, f"{NOT_PROMISED}{ALL_AT_ONCE}, ") for line in self.of_each[0].lines(method)]
        out = [f"{first[0].removesuffix('.')}, for each target separately ({listed(self.names)})."]
        if self._is_alike:
            return [*out, *first[1:]]
        hows = [own.lines(method)[1:3] for own in self.of_each]
        each = [f"{name}: {line}" for name, lines in zip(self.names, hows, strict=True) for line in lines]
        return [
            *out,
            *each,
            *(f"{line} {MISSING_AT_RANDOM}" if line.startswith("Assumes") else line for line in first[3:]),
        ]

    def headline(self, method: str) -> str:
        """Return the promise of each target in one sentence."""
        return f"For each of {len(self.names)} targets separately: {self.of_each[0].headline(method)}"

    def not_promised(self) -> list[str]:
        """Return what nobody promises, the coverage of all targets at once among it; numbers hold for each target."""
        least = min(self.of_each, key=lambda own: own.coverage_bound(DELTA))
        return ['Coverage of all targets at once. For that, use targets="joint".', *least.not_promised()]

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        return super().to_dict() | {"of_each": [own.to_dict() for own in self.of_each]}

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> EachPromise:
        """Return the promise from the entries that ``to_dict`` gave."""
        return cls(**(dict(fields) | {"of_each": tuple(map(Promise.from_dict, fields["of_each"]))}))


def _least(shares: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(min, zip(*shares, strict=True)))
