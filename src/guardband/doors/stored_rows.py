"""What a model file may say of the rows that it was made from: summaries, what they held, and which rows repeat."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated

from msgspec import Meta, field

from guardband.data.reference import CELLS, KNOTS, MOST_KEPT
from guardband.doors.stored_values import Count, Finite, OfEach, Stored


class NumberSummaryEntries(Stored, tag="number", tag_field="kind"):
    """A ``NumberSummary``."""

    name: str
    count: Count
    missing: Count
    knots: Annotated[list[Finite], Meta(max_length=KNOTS + 1)]
    at_most: Annotated[list[Count], Meta(max_length=KNOTS + 1)]

    def __post_init__(self) -> None:
        rises = self.knots == sorted(set(self.knots)) and self.at_most == sorted(self.at_most)
        if not rises or len(self.knots) != len(self.at_most) or self.missing > self.count:
            raise ValueError("Knots and their counts must increase together")
        if self.at_most and self.at_most[-1] > self.count - self.missing:
            raise ValueError("Counts must not exceed the number of rows")


class BooleanSummaryEntries(NumberSummaryEntries, tag="boolean"):
    """The same of truth values."""


class DateSummaryEntries(NumberSummaryEntries, tag="date"):
    """The same of days."""


class CategorySummaryEntries(Stored, tag="category", tag_field="kind"):
    """A ``CategorySummary``."""

    name: str
    count: Count
    missing: Count
    categories: Annotated[list[str], Meta(max_length=MOST_KEPT)]
    counts: list[Count]
    rare: Count
    rare_cells: Annotated[list[Annotated[int, Meta(ge=0, lt=CELLS)]], Meta(max_length=CELLS)]
    rare_counts: list[Count]

    def __post_init__(self) -> None:
        unique = len(set(self.categories)) == len(self.categories) and len(set(self.rare_cells)) == len(self.rare_cells)
        alike = len(self.counts) == len(self.categories) and len(self.rare_counts) == len(self.rare_cells)
        if not unique or not alike or self.rare != sum(self.rare_counts):
            raise ValueError("Each category must have its count")
        if self.count != self.missing + self.rare + sum(self.counts):
            raise ValueError("Counts must add up to the number of rows")


class ReferenceEntries(Stored):
    """A ``Reference``."""

    columns: list[NumberSummaryEntries | BooleanSummaryEntries | DateSummaryEntries | CategorySummaryEntries]
    response: NumberSummaryEntries
    others: OfEach[NumberSummaryEntries] = field(default_factory=list)


class SeenNumbersEntries(Stored, tag="number", tag_field="kind"):
    """A ``SeenNumbers``."""

    range: tuple[Finite | None, Finite | None]
    never_missing: bool

    def __post_init__(self) -> None:
        least, most = self.range
        if (least is None) != (most is None) or (least is not None and most is not None and least > most):
            raise ValueError("A range must have two ends, in order")


class SeenBooleansEntries(SeenNumbersEntries, tag="boolean"):
    """The same of truth values."""


class SeenDatesEntries(SeenNumbersEntries, tag="date"):
    """The same of days."""


class SeenCategoriesEntries(Stored, tag="category", tag_field="kind"):
    """A ``SeenCategories``."""

    prints: str | None
    never_missing: bool

    def __post_init__(self) -> None:
        if self.prints is not None and len(b64decode(self.prints, validate=True)) % 8:
            raise ValueError("Prints must be numbers of eight bytes")


class SeenEntries(Stored):
    """A ``Seen``."""

    columns: list[SeenNumbersEntries | SeenBooleansEntries | SeenDatesEntries | SeenCategoriesEntries]


class RepeatEntries(Stored):
    """A ``RepeatRule``."""

    columns: list[str]
    with_target: bool
