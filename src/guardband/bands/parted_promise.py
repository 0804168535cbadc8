"""A promise made of parts: one for each of several groups, for one side of the intervals, or for each side apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DELTA, Part, Promise, Side, infinite_in_words, joined
from guardband.bands.rank_promise import ON_AVERAGE, SAME_SOURCE, RankPromise, least_in_words
from guardband.bands.ranks import marginal_rank
from guardband.bands.sides import REACH
from guardband.words import confidence_name, level_name, listed, number

LIES = {
    "both": "fall inside their intervals",
    "lower": "lie at or above their lower bounds",
    "upper": "lie at or below their upper bounds",
}
"""What is promised of a row, by the side of its interval."""
MOST_LINES = 12
"""So many groups are listed one by one where there is little room."""


@dataclass(frozen=True, kw_only=True)
class PartedPromise(Promise):
    """All of several promises at once. Those given the data share one ``delta``.

    Parameters
    ----------
    parts : tuple of Part
        For each group, and for each side that is promised apart, the promise of its own.
    by : str, default ""
        What makes the groups, in words, such as the name of a column.
    """

    kind = "parts"
    is_parted = True
    parts: tuple[Part, ...]
    by: str = ""

    @property
    def guarantee(self) -> str:
        """What kind of promise each part is."""
        return self._first.guarantee

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What must hold of the rows: the same for each part."""
        return self._first.assumption

    @property
    def chosen_from(self) -> int:
        """How many candidates this one was chosen from: the same for each part."""
        return self._first.chosen_from

    @property
    def is_grouped(self) -> bool:
        """Whether there is a promise for each of several groups."""
        return any(part.group is not None for part in self.parts)

    @property
    def sides(self) -> tuple[str, ...]:
        """Which sides are promised, each apart, or both together."""
        return tuple(dict.fromkeys(part.side for part in self.parts))

    @property
    def side(self) -> Side:
        """Which bound it is about, if intervals have only one."""
        return self.parts[0].side if len(self.sides) == 1 else "both"

    def tails(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Return at each level the share that may lie below the interval, and above; None for a side with no bound."""
        own = {part.side: tuple(1 - level for level in part.promise.confidence_level) for part in self.parts}
        return super().tails() if "both" in own else (own.get("lower"), own.get("upper"))

    @property
    def some_infinite(self) -> tuple[bool, ...]:
        """At each level, whether a part has infinite intervals."""
        return tuple(any(own) for own in zip(*(part.promise.whole_line for part in self.parts), strict=True))

    def statements(self) -> tuple[Part, ...]:
        """Return the parts."""
        return self.parts

    def of_entities(self, entity: str, n_rows: int) -> PartedPromise:
        """Return the promise for rows that belong together."""
        parts = tuple(replace(own, promise=own.promise.of_entities(entity, n_rows)) for own in self.parts)
        return replace(self, entity=entity, n_rows=n_rows, parts=parts)

    def chosen_among(self, candidates: int, delta: float) -> PartedPromise:
        """Return the promise for one of several candidates that its own calibration rows chose."""
        each = delta / len(self.parts)
        parts = tuple(replace(own, promise=own.promise.chosen_among(candidates, each)) for own in self.parts)
        return replace(self, delta=delta, parts=parts)

    def widened(self) -> PartedPromise:
        """Return the promise for extended intervals."""
        return replace(self, parts=tuple(replace(own, promise=own.promise.widened()) for own in self.parts))

    def expected_coverage(self) -> tuple[float, ...]:
        """Return what coverage is at least, in each group, on average."""
        return self._least([part.promise.expected_coverage() for part in self.parts])

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Return what coverage is at least in all groups at once, with probability 1 - delta."""
        each = delta / len(self.parts)
        return self._least([part.promise.coverage_bound(each) for part in self.parts])

    def expectations(self) -> tuple[Expectation, ...]:
        """Return about what to expect of all rows together; an audit tests the parts."""
        if len(self.parts) == 1:
            return self.parts[0].promise.expectations()
        out = []
        for level, whole in zip(self.confidence_level, self.whole_line, strict=True):
            rank = marginal_rank(Fraction(str(level)), self.n_calibration)
            law = Law() if whole else Law((rank, self.n_calibration), open=True)
            out.append(Expectation(level, law, (law,), None))
        return tuple(out)

    def lines(self, method: str) -> list[str]:
        """Return the promise, a line for each group, and all that belongs to it."""
        out = [f"Promise: {self._sentence()}", self._how(method)]
        if self._first.is_bound_known:
            delta = self._delta
            out.append(
                f"Coverage: {least_in_words(self.expected_coverage())} is expected{self._in_each()}. For these "
                f"calibration rows it is {least_in_words(self.coverage_bound(delta))}{self._in_each()}, with "
                f"{confidence_name(delta)} confidence{self._at_once()}."
            )
        else:
            out.append(f"Coverage: {least_in_words(self.expected_coverage())} is expected{self._in_each()}.")
        if self.is_grouped:
            out += [f"  {line}" for line in self._group_lines()]
            out.append("  A row that belongs to none of these groups gets an infinite interval.")
        out.append(f"Assumes: {self._first.assumptions()}")
        other = "for another group or for a part of one" if self.is_grouped else "for a group"
        out.append(
            f"Not promised: coverage for a single row, {other}, or for rows from another source or a later time if the "
            "data have changed."
        )
        note = self._first.note_on_levels()
        return [*out, f"Note: {note}"] if note else out

    def headline(self, method: str) -> str:
        """Return the promise of the first level in one or two plain sentences."""
        others = self.confidence_level[1:]
        words = self._sentence(one_level=True, source=SAME_SOURCE)
        further = f" The same holds for {', '.join(map(level_name, others))}, each with its own intervals."
        return words[0].upper() + words[1:] + (further if others else "")

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        out = self._first.not_promised()
        if self.is_grouped:
            out[0] = "Coverage for a single row. Each promise is about all rows of its group together."
            out[1] = "Coverage within another group, or within a part of one. Some may be covered less often."
        if self._first.on_average:
            out[-1] = f"The level for every calibration set.{self._for_this_set()}"
        else:
            unlucky = level_name(self._delta)
            out[-1] = f"Certainty. Up to {unlucky} of possible calibration sets give intervals that cover fewer rows."
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for JSON."""
        own = super().to_dict()
        parts = zip(self.parts, own["parts"], strict=True)
        return own | {"parts": [entries | {"promise": part.promise.to_dict()} for part, entries in parts]}

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> PartedPromise:
        """Return the promise from the entries that ``to_dict`` gave."""
        parts = [Part(**(own | {"promise": Promise.from_dict(own["promise"])})) for own in fields["parts"]]
        for own in parts:
            if not (own.group is None or (isinstance(own.group, int) and 0 <= own.group < 2**31)):
                raise ValueError("a part of a promise is about a group without a number")
            if own.side not in get_args(Side) or not isinstance(own.name, str):
                raise ValueError("a part of a promise has no name, or is about no known side")
        return cls(**(dict(fields) | {"parts": tuple(parts)}))

    # ------------------------------------------------------------------------------------ in words

    def _for_this_set(self) -> str:
        if not self._first.is_bound_known:
            return ""
        least = least_in_words(self.coverage_bound(DELTA)[:1])
        return f" For the set used here it is {least}{self._in_each()}, with 90% confidence, if rows are independent."

    @property
    def _first(self) -> RankPromise:
        first = self.parts[0].promise
        assert isinstance(first, RankPromise)
        return first

    @property
    def _delta(self) -> float:
        return DELTA if self.delta is None else self.delta

    @property
    def _groups(self) -> dict[int | None, list[Part]]:
        """The parts of each group, one for each side."""
        out: dict[int | None, list[Part]] = {}
        for part in self.parts:
            out.setdefault(part.group, []).append(part)
        return out

    def _least(self, each: list[tuple[float, ...]]) -> tuple[float, ...]:
        """Return what coverage is at least in every group, if what is promised of its sides is this."""
        misses: dict[int | None, list[float]] = {}
        for part, shares in zip(self.parts, each, strict=True):
            own = misses.setdefault(part.group, [0.0] * len(shares))
            misses[part.group] = [miss + 1 - share for miss, share in zip(own, shares, strict=True)]
        return tuple(max(0.0, 1 - max(own)) for own in zip(*misses.values(), strict=True))

    def _in_each(self) -> str:
        return " in each group" if self.is_grouped else ""

    def _at_once(self) -> str:
        return ", for all groups at once" if self.is_grouped else ""

    def _sentence(self, one_level: bool = False, source: str = "") -> str:
        """Return what is promised, without a capital at the beginning."""
        end = 1 if one_level else None
        first = self._first
        every = "" if first.on_average else "all "
        begun = ON_AVERAGE if first.on_average else f"with {confidence_name(self._delta)} confidence"
        rows = first.new_rows(every, source) + (f" in each group ({self.by})" if self.is_grouped else "")
        sides = next(iter(self._groups.values()))
        if len(sides) > 1:
            low, high = (
                joined(level_name(1 - level) for level in part.promise.confidence_level[:end]) for part in sides
            )
            kept = f"at most {low} of {rows} lie below their intervals, and at most {high} above"
        else:
            kept = f"at least {joined(map(level_name, self.confidence_level[:end]))} of {rows} {LIES[sides[0].side]}"
        count = len(self._groups)
        at_once = f", in all {count:,} groups at once" if self.is_grouped and not first.on_average and count > 1 else ""
        return f"{begun}, {kept}{at_once}."

    def _how(self, method: str) -> str:
        what = {"both": "intervals", "lower": "lower bounds", "upper": "upper bounds"}
        moved = "lower and upper bounds" if len(self.sides) > 1 else what[self.sides[0]]
        drawn = self._first.population(self.n_calibration)
        if self.is_grouped:
            verb, reach = ("made", "wide") if moved == "intervals" else ("moved", "far")
            return (
                f"How: {method} {verb} the {moved} of each group just {reach} enough to contain enough of its "
                f"calibration rows ({self.counted} in all).{drawn}{self._infinite()}{self._first.chosen()}"
            )
        ranks = [joined(f"{k:,}" for k in part.promise.rank or () if k <= self.n_calibration) for part in self.parts]
        if not any(ranks):
            made = f"has too few calibration rows ({self.n_calibration:,}) for {joined(self._levels())} {moved}."
        elif len(ranks) == 1:
            made = f"moved the {moved} just far enough to contain {ranks[0]} of the {self.counted}."
        else:
            made = f"moved each bound just far enough: {self._on_each_side(*ranks)}"
        return f"How: {method} {made}{self._first.drawn()}{self._infinite()}{self._first.chosen()}"

    def _levels(self) -> list[str]:
        return [level_name(level) for level in self.confidence_level]

    def _on_each_side(self, low: str, high: str) -> str:
        """Return how many calibration rows lie on the right side of each bound; none is said of an infinite one."""
        sides = (("lower", low, "at or above their lower bounds"), ("upper", high, "at or below their upper bounds"))
        first, *second = [f"{count}{{}} {where}" for _, count, where in sides if count]
        few = "".join(f" Too few rows for {side} bounds: they are infinite." for side, count, _ in sides if not count)
        every = [first.format(f" of the {self.counted} lie"), *(own.format("") for own in second)]
        return f"{', and '.join(every)}.{few}"

    def _infinite(self) -> str:
        """Return which groups have infinite intervals, and at which levels."""
        if not self.is_grouped:
            return infinite_in_words(self)
        out, several = "", len(self.confidence_level) > 1
        for i, level in enumerate(self.confidence_level):
            names = [own[0].name for own in self._groups.values() if any(part.promise.whole_line[i] for part in own)]
            at = f" at {level_name(level)}" if several else ""
            if names:
                out += (
                    f" The intervals are infinite{at} in {len(names):,} of {len(self._groups):,} groups: "
                    f"{listed(names)}."
                )
        return out

    def _group_lines(self) -> list[str]:
        """Return a line for each group, the first of many."""
        every = list(self._groups.values())
        lines = [self._group_line(own) for own in every]
        if len(lines) <= MOST_LINES:
            return lines
        return [*lines[: MOST_LINES - 1], f"{len(lines) - MOST_LINES + 1:,} more groups: see certificate.groups."]

    def _group_line(self, parts: list[Part]) -> str:
        own = [words for part in parts if (words := self._in_words(part, len(parts) > 1))]
        return f"{parts[0].name}: " + ("; " if len(parts) > 1 else ", ").join([parts[0].promise.counted, *own])

    def _in_words(self, part: Part, of_two: bool) -> str:
        """Return what holds of a part, nothing if that is not known."""
        promise, begun = part.promise, f"{part.side} bounds: " if of_two else ""
        infinite = [level for level, whole in zip(self._levels(), promise.whole_line, strict=True) if whole]
        if len(infinite) == len(self.confidence_level):
            return f"{begun}infinite" if of_two else "infinite intervals"
        out = [f"infinite at {joined(infinite)}"] if infinite else []
        if promise.is_bound_known:
            ranks = joined(
                f"{k:,}" for k, whole in zip(promise.rank or (), promise.whole_line, strict=True) if not whole
            )
            bound = least_in_words(promise.coverage_bound(self._delta / len(self.parts)))
            out.append(f"{ranks} inside, coverage {bound}")
        if part.width is not None and part.cost is not None and not of_two:
            width = joined(map(number, part.width))
            cost = f" ({_changed(part.cost[0], part.side)})" if len(part.cost) == 1 else ""
            out.append(f"mean {REACH[part.side]} {width}{cost}")
        return f"{begun}{', '.join(out)}" if out else ""


def _changed(cost: float, side: Side) -> str:
    """Return how a width compares with that of one promise for all rows."""
    if abs(cost) < 0.0005:
        return "as with one promise for all rows"
    more, less = ("wider", "narrower") if side == "both" else ("larger", "smaller")
    return f"{abs(cost):.1%} {more if cost > 0 else less} than with one promise for all rows"
