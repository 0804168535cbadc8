"""What a model file may say of columns: how each becomes numbers, on which scale the target is learnt, and weights."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from guardband.doors.stored_values import (
    MOST_TARGETS,
    Column,
    Count,
    Finite,
    NotNegative,
    OfEach,
    Positive,
    Robust,
    Stored,
    Width,
)


class NumberEntries(Stored, tag="number", tag_field="code"):
    """A ``NumberCode``."""

    center: Finite
    scale: Positive
    fill: Finite
    marks_missing: bool
    kind: Column


class RobustEntries(NumberEntries, tag="robust"):
    """A ``RobustCode``."""


class LongTailEntries(Stored, tag="long-tail", tag_field="code"):
    """A ``LongTailCode``."""

    plain: RobustEntries
    logarithm: RobustEntries
    origin: Finite
    unit: Positive


class CategoryEntries(Stored):
    """A list of categories."""

    categories: list[str]

    def __post_init__(self) -> None:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("Categories must differ")


class OneHotEntries(CategoryEntries, tag="one-hot", tag_field="code"):
    """A ``OneHotCode``."""

    has_rare: bool
    marks_missing: bool


class IndexEntries(CategoryEntries, tag="index", tag_field="code"):
    """An ``IndexCode``."""


class DescribedEntries(CategoryEntries, tag="target", tag_field="code"):
    """A ``TargetCode``."""

    values: list[tuple[Robust, Robust, Robust]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.values) != len(self.categories) + 2:
            raise ValueError("Every category has numbers, and so have missing and unknown ones")


class NoEntries(Stored, tag="none", tag_field="code"):
    """A ``NoCode``."""

    categories: Annotated[list[str], Meta(max_length=0)]


class DateEntries(Stored, tag="date", tag_field="code"):
    """A ``DateCode``."""

    parts: Annotated[
        list[tuple[Literal["day", "time", "weekday", "season"], NumberEntries | RobustEntries]],
        Meta(min_length=1, max_length=4),
    ]


class TableEncoderEntries(Stored, tag="table", tag_field="encoder"):
    """A ``TableEncoder``."""

    codes: list[
        NumberEntries
        | RobustEntries
        | LongTailEntries
        | OneHotEntries
        | IndexEntries
        | DescribedEntries
        | NoEntries
        | DateEntries
    ]


class PlainEncoderEntries(Stored, tag="plain", tag_field="encoder"):
    """A ``PlainNumbers``."""


class FeatureEntries(Stored):
    """The columns of the table; arrays have no names."""

    names: list[str]
    count: Width

    def __post_init__(self) -> None:
        if self.names and len(self.names) != self.count:
            raise ValueError("Each column must have a name")


class ScaleEntries(Stored):
    """A ``LearningScale``."""

    center: Finite
    scale: Positive
    origin: Finite
    unit: Positive | None
    least: Finite
    most: Finite

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("A scale must have its ends in order")


class TargetEntries(Stored):
    """A ``Target``."""

    transform: str | None
    y_min: Finite | None
    y_max: Finite | None
    quantiles: bool
    scales: Annotated[list[ScaleEntries], Meta(min_length=1, max_length=2)]
    integer: bool | None
    whole: bool
    slack: tuple[NotNegative, NotNegative]
    remarks: list[str]


class SeveralEntries(Stored):
    """The names of several targets, all targets but the first, and the scales of a promise for all of them."""

    names: Annotated[list[str], Meta(min_length=2, max_length=MOST_TARGETS)]
    others: OfEach[TargetEntries]
    scales: OfEach[Positive]


class EstimateEntries(Stored):
    """An ``EstimatedWeights``, without its arrays."""

    encoder: TableEncoderEntries | PlainEncoderEntries
    n_training: Count
    n_target: Count
    largest_weight: Positive
    unlike: Count


class WeightingEntries(Stored):
    """A ``Weighting``; a function is the user's own."""

    is_function: bool
    max_weight: Positive | None
    column: str | None
    estimate: EstimateEntries | None
