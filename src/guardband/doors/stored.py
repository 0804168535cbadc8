"""What the entries of a model file may be: their types and bounds, checked before anything is made of them.

A file may come from a stranger. So every entry has a type, every number is finite, and every list whose length costs
more than reading it has a limit.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import decode

from guardband.calibration.cross import FOLDS
from guardband.data.codes import MOST_RANGES
from guardband.data.grouping import BINS
from guardband.data.reference import CELLS, KNOTS, MOST_KEPT

MOST_GROUPS = 100
"""Branches of a tree."""
MOST_LEVELS = 1000
"""Levels, or levels of networks: calibration passes over its rows once for each of the former."""

MOST_TARGETS = 1000
"""Targets of a model: each has a scale of its own."""

Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Robust = Annotated[float, Meta(ge=-MOST_RANGES, le=MOST_RANGES)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Width = Annotated[int, Meta(ge=1, le=2**31)]
Column = Literal["number", "boolean", "date"]


class Stored(Struct, forbid_unknown_fields=True):
    """An object of the file: it has these entries and no others."""


class Exact(Stored, omit_defaults=True):
    """A number as it is written in decimal, or as a fraction. Longer ones could take hours to read."""

    fraction: Annotated[str, Meta(pattern=r"^-?[0-9]{1,400}(/[1-9][0-9]{0,400})?\Z")] | None = None
    float32: Annotated[str, Meta(pattern=r"^-?[0-9]{1,60}(\.[0-9]{1,60})?(e[+-]?[0-9]{1,2})?\Z")] | None = None

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.float32 is None):
            raise ValueError("A number is a fraction or a float32")


T = TypeVar("T")
OfEach = Annotated[list[T], Meta(max_length=MOST_TARGETS)]
"""Something for each of several targets."""
Number = int | Finite | Exact
Levels = Number | Annotated[list[Number], Meta(max_length=MOST_LEVELS)] | None
Plain = bool | int | Finite | str | Exact | list[bool | int | Finite | str | Exact | None] | None
"""An argument, as ``plain`` writes it; what it means is checked where it is used."""


class RiskEntries(Stored):
    """A ``Risk`` whose loss is the distance; another is marked as the user's own."""

    limit: Finite
    cap: Finite


class Promised(Stored, kw_only=True):
    """The arguments that ``IntervalRegressor`` and ``calibrate`` share."""

    method: str
    confidence_level: Levels
    alpha: Levels
    guarantee: str
    delta: Number | None
    joint: bool | int
    side: str = "both"
    tails: tuple[Number, Number] | None = None
    risk: RiskEntries | str | None = None
    tau: Number | None
    taus: Levels
    rule: str | None
    average: str | None
    on_insufficient: str
    groups: str | list[str] | None = None
    small_groups: Literal["inf", "pool"] = "inf"
    missing_groups: bool | int = False
    group_bins: Annotated[int, Meta(ge=2)] = BINS


class GroupColumnEntries(Stored):
    """A ``GroupColumn``."""

    name: str
    kind: Literal["number", "boolean", "date", "category"]
    values: list[str | Finite]
    is_range: bool
    members: bool
    has_pool: bool
    has_missing: bool

    def __post_init__(self) -> None:
        texts = self.kind == "category"
        if any(isinstance(value, str) != texts for value in self.values) or len(set(self.values)) < len(self.values):
            raise ValueError("The values of groups must differ, and be those of their column")
        if self.values != sorted(self.values, key=str if texts else float) or (self.members and self.values != [1.0]):
            raise ValueError("The values of groups must be in order")


class SideEntries(Stored):
    """Where a branch leads: to a group, or to a branch before it."""

    group: Count | None
    branch: Count | None

    def __post_init__(self) -> None:
        if (self.group is None) == (self.branch is None):
            raise ValueError("A branch leads to a group or to another branch")


class BranchEntries(Stored):
    """A ``Branch``."""

    column: str
    kind: Literal["number", "boolean", "date", "category"]
    cut: Finite | None
    values: list[str]
    known: list[str]
    missing_left: bool
    may_miss: bool
    left: SideEntries
    right: SideEntries

    def __post_init__(self) -> None:
        if (self.cut is None) != (self.kind == "category"):
            raise ValueError("A branch compares numbers or categories")


class TreeEntries(Stored):
    """A ``TreeGroups``."""

    branches: Annotated[list[BranchEntries], Meta(min_length=1, max_length=MOST_GROUPS)]


Groups = TreeEntries | Annotated[list[GroupColumnEntries], Meta(min_length=1)]


class Params(Promised, kw_only=True):
    """The arguments of an ``IntervalRegressor``, without its device."""

    calibration_size: Plain
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    folds: Annotated[int, Meta(ge=2, le=2**31)] = FOLDS
    split_by: str | list[str] | None
    split_by_time: str | bool = False
    distribution: bool = False
    network: str
    preset: str | Number
    hidden: list[Width] | None
    activation: str | None
    dropout: Number | None
    ordering: str | None
    power: Plain
    point: str
    epochs: Plain
    max_epochs: Plain
    patience: Plain
    batch_size: Plain
    learning_rate: Plain
    weight_decay: Plain
    target_transform: str | OfEach[str | None] | None
    y_min: Number | OfEach[Number | None] | None
    y_max: Number | OfEach[Number | None] | None
    integer: bool | int | OfEach[bool | int | None] | None
    targets: Literal["joint", "each"] | None = None
    random_state: int | None
    verbose: Plain


class Arguments(Promised, kw_only=True):
    """The arguments of ``calibrate`` for a network."""

    outputs: str | Annotated[list[Number], Meta(max_length=2 * MOST_LEVELS + 1)]
    weights: str | None = None
    max_weight: Number | None = None
    targets: Literal["joint", "each"] | None = None
    scales: OfEach[Positive] | None = None


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
    others: OfEach[NumberSummaryEntries] = []


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


class ChosenEntries(Stored):
    """A ``Chosen``."""

    candidates: Annotated[int, Meta(ge=2, le=10**6)]
    delta: Annotated[float, Meta(gt=0, lt=1)]


class UnitEntries(Stored):
    """A ``Unit``."""

    entity: str
    n_rows: Count


class TimeSplitEntries(Stored):
    """A ``TimeSplit``."""

    by: str
    trained_until: str
    calibrated_from: str
    calibrated_until: str


class CertifiedRiskEntries(Stored):
    """What a certificate says of a risk; it follows from the promise."""

    limit: Finite
    cap: Finite
    loss: str
    bound: Finite


class CertificateEntries(Stored):
    """A ``Certificate``; the fields of its promise depend on its kind."""

    kind: str
    method: str
    confidence_level: Finite | list[Finite] | None
    n_calibration: Count
    rank: Count | list[Count] | None
    delta: Share | None
    whole_line: bool | list[bool]
    assumption: str
    expected_coverage: Finite | list[Finite] | None
    coverage_bound: Finite | list[Finite] | None
    promise: dict[str, Any]
    notes: list[str]
    in_time: TimeSplitEntries | None = None
    risk: CertifiedRiskEntries | None = None


class FeatureEntries(Stored):
    """The columns of the table; arrays have no names."""

    names: list[str]
    count: Width

    def __post_init__(self) -> None:
        if self.names and len(self.names) != self.count:
            raise ValueError("Each column must have a name")


class ModelEntries(Stored, tag_field="kind"):
    """What every model has."""

    schema: int
    written_by: dict[str, str]


class FoldEntries(Stored):
    """What was learnt without one fold of a table; in older files all folds have the networks of the first."""

    encoder: TableEncoderEntries | PlainEncoderEntries
    target: TargetEntries
    in_features: Count
    hidden: list[Width] | None = None
    dropout: Share | None = None
    choices: str | None = None


class TableEntries(ModelEntries, tag="table"):
    """A fitted ``IntervalRegressor``."""

    params: Params
    features: FeatureEntries
    encoder: TableEncoderEntries | PlainEncoderEntries
    target: TargetEntries
    in_features: Count
    hidden: list[Width]
    dropout: Share
    epochs: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)]
    choices: str
    score: str | None
    notes: list[str] | None
    certificate: CertificateEntries | None
    unit: UnitEntries | None
    reference: ReferenceEntries
    doubts: list[str]
    repeat_rule: RepeatEntries | None
    seen: SeenEntries | None = None
    grouping: Groups | None = None
    weighting: WeightingEntries | None = None
    chosen: ChosenEntries | None = None
    trained_until: Finite | None = None
    tails: tuple[Positive, Positive] | None = None
    crossed: Annotated[list[FoldEntries], Meta(min_length=2)] | None = None
    several: SeveralEntries | None = None


class NetworkEntries(ModelEntries, tag="network"):
    """A ``GuardedNetwork``."""

    arguments: Arguments
    networks: Annotated[int, Meta(ge=1, le=10 * MOST_LEVELS)]
    certificate: CertificateEntries
    meaning: str
    groups: Annotated[list[list[int]], Meta(min_length=1)] | None = None
    members: bool = False
    several: Annotated[list[str], Meta(min_length=2, max_length=MOST_TARGETS)] | None = None


class OtherModelArguments(Promised, kw_only=True):
    """The arguments of ``calibrate`` for a model of any library, with what was found out about it."""

    outputs: str | Annotated[list[Number], Meta(max_length=2 * MOST_LEVELS + 1)]
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    targets: Literal["joint", "each"] | None = None
    scales: OfEach[Positive] | None = None


class OtherModelEntries(ModelEntries, tag="model"):
    """A ``GuardedModel``: its calibration, without the model."""

    arguments: OtherModelArguments
    declared: str | list[Number] | None
    asked_levels: Annotated[list[Annotated[float, Meta(gt=0, lt=1)]], Meta(max_length=2 * MOST_LEVELS + 1)]
    has_residuals: bool
    split_by: str | list[str] | None
    features: FeatureEntries
    encoder: TableEncoderEntries
    certificate: CertificateEntries
    notes: list[str]
    unit: UnitEntries | None
    reference: ReferenceEntries
    repeat_rule: RepeatEntries | None
    probe: Annotated[list[Annotated[list[Finite], Meta(max_length=30 * MOST_LEVELS)]], Meta(max_length=5)] | None = None
    several: Annotated[list[str], Meta(min_length=2, max_length=MOST_TARGETS)] | None = None
    grouping: Groups | None = None
    weighting: WeightingEntries | None = None
    chosen: ChosenEntries | None = None


class RuleArguments(Promised, kw_only=True):
    """The arguments of a ``BandCalibrator``."""

    crossing: Literal["raise", "sort"]
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    targets: Literal["joint", "each"] | None = None
    scales: OfEach[Positive] | None = None


class RuleEntries(ModelEntries, tag="rule"):
    """A calibrated ``BandCalibrator``."""

    arguments: RuleArguments
    form: Literal["interval", "bounds", "point", "gaussian", "lower", "upper"]
    columns: Annotated[list[str], Meta(min_length=1, max_length=30 * MOST_LEVELS)]
    split_by: Annotated[list[str], Meta(min_length=1)] | None
    certificate: CertificateEntries
    notes: list[str]
    unit: UnitEntries | None
    reference: ReferenceEntries
    repeat_rule: RepeatEntries | None
    several: Annotated[list[str], Meta(min_length=2, max_length=MOST_TARGETS)] | None = None
    group_by: Annotated[list[str], Meta(min_length=1)] | None = None
    grouping: Annotated[list[GroupColumnEntries], Meta(min_length=1)] | None = None
    weighting: WeightingEntries | None = None
    chosen: ChosenEntries | None = None


class DistributionEntries(ModelEntries, tag="distribution"):
    """A calibrated ``DistributionCalibrator``."""

    placement: Literal["quantiles", "residual", "scale"]
    levels: Annotated[list[Annotated[float, Meta(gt=0, lt=1)]], Meta(min_length=2, max_length=MOST_LEVELS)] | None
    unit: UnitEntries | None


class TallyEntries(Stored):
    """A ``Tally``."""

    judged: Count
    misses: Count
    most_waiting: Annotated[int, Meta(ge=1, le=2**53)]


class OnlineArguments(Stored):
    """The arguments of an ``OnlineCalibrator`` that are no rule, level or model."""

    method: str
    side: Literal["both", "lower", "upper"]
    window: Annotated[int, Meta(ge=1, le=2**53)] | None
    crossing: Literal["raise", "sort"]


class OnlineEntries(ModelEntries, tag="online"):
    """The state of an ``OnlineCalibrator``."""

    rule: str
    options: dict[str, Finite]
    arguments: OnlineArguments
    alpha: Exact
    meaning: str
    has_model: bool
    tally: TallyEntries
    n_calibration: Count
    given: Count
    keys: list[int | str]


class Version(Struct):
    """Of the entries only what tells which version of guardband wrote them."""

    schema: int


def schema_of(text: str) -> int:
    """Return the schema of entries in JSON."""
    version: Version = _decoded(text, Version)
    return version.schema


def entries_of(text: str) -> dict[str, Any]:
    """Return entries in JSON that are what this version writes; others are a ``ValueError``."""
    kinds = TableEntries | NetworkEntries | OtherModelEntries | RuleEntries | OnlineEntries | DistributionEntries
    entries: dict[str, Any] = to_builtins(_decoded(text, kinds))
    return entries


def _decoded(text: str, kind: Any) -> Any:
    try:
        return decode(text, type=kind)
    except (MsgspecError, RecursionError) as error:
        raise ValueError(f"its entries are not what guardband writes, {error}") from None
