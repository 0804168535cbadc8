"""The document of a page of several targets, part by part: what each entry may be."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from guardband.audit.verdict import Reason
from guardband.report.parts import (
    About,
    AuditPart,
    Count,
    Level,
    Name,
    QuarterPart,
    RowsPart,
    SpreadPart,
    Text,
    WidthsPart,
)

MOST_TARGETS = 12
"""So many targets have a section of their own."""


class AllTargetsPart(TypedDict):
    """One promised level: in how many rows all targets lie inside; ``least`` is None if nothing is expected of that."""

    level: Level
    n: Count
    covered: Count
    low: Count
    high: Count
    least: Count | None


class SeveralAuditPart(TypedDict):
    """What labelled rows say of all targets together."""

    reason: Reason
    more_rows: Count | None
    levels: Annotated[list[AllTargetsPart], Meta(min_length=1, max_length=10_000)]


class TargetPart(TypedDict):
    """What labelled rows say of one target."""

    response: Name
    audit: AuditPart
    judges: Text
    spread: SpreadPart
    widths: WidthsPart | None
    errors: Annotated[list[QuarterPart], Meta(min_length=4, max_length=4)] | None
    rows: RowsPart


class CheckedSeveral(About):
    """The document of a model with several targets that was checked on labelled rows."""

    audit: SeveralAuditPart
    several: Annotated[list[TargetPart], Meta(min_length=1, max_length=MOST_TARGETS)]
