"""What a model file may say of the arguments that the user gave, for each way to use guardband."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from guardband.calibration.cross import FOLDS
from guardband.data.grouping import BINS
from guardband.doors.stored_values import MOST_LEVELS, Finite, Levels, Number, OfEach, Plain, Positive, Stored, Width


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


class Params(Promised, kw_only=True):
    """The arguments of an ``IntervalRegressor``, without its device."""

    calibration_size: Plain
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    folds: Annotated[int, Meta(ge=2, le=2**31)] = FOLDS
    split_by: str | list[str] | None
    split_by_time: str | bool = False
    distribution: bool = False
    distill: bool = False
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


class OtherModelArguments(Promised, kw_only=True):
    """The arguments of ``calibrate`` for a model of any library, with what was found out about it."""

    outputs: str | Annotated[list[Number], Meta(max_length=2 * MOST_LEVELS + 1)]
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    targets: Literal["joint", "each"] | None = None
    scales: OfEach[Positive] | None = None


class RuleArguments(Promised, kw_only=True):
    """The arguments of a ``BandCalibrator``."""

    crossing: Literal["raise", "sort"]
    calibration: Literal["split", "cv+", "cv-minmax"] = "split"
    targets: Literal["joint", "each"] | None = None
    scales: OfEach[Positive] | None = None


class OnlineArguments(Stored):
    """The arguments of an ``OnlineCalibrator`` that are no rule, level or model."""

    method: str
    side: Literal["both", "lower", "upper"]
    window: Annotated[int, Meta(ge=1, le=2**53)] | None
    crossing: Literal["raise", "sort"]
