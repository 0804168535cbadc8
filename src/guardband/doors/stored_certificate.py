"""What a model file may say of a calibration: the certificate, and what calibration rows belonged to."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from guardband.doors.stored_values import Count, Finite, Share, Stored


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
