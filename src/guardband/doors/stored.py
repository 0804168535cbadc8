"""What a model file may hold, for each kind of model: types and bounds, checked before anything is made of them.

The files beside this one, ``stored_*.py``, say what the parts may be.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import decode

from guardband.doors.stored_arguments import Arguments, OnlineArguments, OtherModelArguments, Params, RuleArguments
from guardband.doors.stored_certificate import CertificateEntries, ChosenEntries, UnitEntries
from guardband.doors.stored_columns import (
    FeatureEntries,
    PlainEncoderEntries,
    SeveralEntries,
    TableEncoderEntries,
    TargetEntries,
    WeightingEntries,
)
from guardband.doors.stored_groups import GroupColumnEntries, Groups
from guardband.doors.stored_rows import ReferenceEntries, RepeatEntries, SeenEntries
from guardband.doors.stored_values import (
    MOST_LEVELS,
    MOST_TARGETS,
    Count,
    Exact,
    Finite,
    Number,
    Positive,
    Share,
    Stored,
    Width,
)


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
