"""The document of a page, part by part: what each entry may be."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

from guardband.audit.strata import Flag
from guardband.audit.verdict import Reason, VerdictKind
from guardband.bands.promise import Side
from guardband.report.examples import ExampleKind
from guardband.report.explained import ExplainedPart

SCHEMA = 4
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""The groups of a family, a character each."""
LONGEST_NAME = 1_000
LONGEST_TEXT = 20_000
MOST_GROUPS = 2_000
"""So many groups that have a promise of their own, at each level, are kept for a page."""
LARGEST = 1.7976931348623157e308

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Key = Annotated[str, Meta(pattern=r"^(group|time|width|size|column-[0-9]{1,9})\Z")]
Hits = Annotated[str, Meta(pattern=r"^[01]*\Z")]
Places = Annotated[str, Meta(pattern=r"^[0-9a-z]*\Z")]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Number = Finite | None
"""None stands for what is not finite."""
Share = Annotated[float, Meta(ge=0, le=1 + 1e-6)]
Level = Annotated[float, Meta(gt=0, lt=1)]
Few = Meta(max_length=1_000)
Many = Meta(max_length=1_000_000)


class LevelPart(TypedDict):
    """One promised level."""

    level: Level
    n: Annotated[int, Meta(ge=1, le=2**53)]
    covered: Count
    low: Count
    high: Count
    p_value: Share
    whole_line: bool
    median_width: Number


class RegionPart(TypedDict):
    """One group of rows, perhaps empty."""

    label: Name
    n: Count
    covered: Count
    low: Count
    high: Count
    flag: Flag | None


class StratumPart(RegionPart):
    """One group of rows, with the median width of its intervals."""

    median_width: Number


class FamilyPart(TypedDict):
    """The groups of one way to divide rows."""

    key: Key
    title: Name
    compared: Count
    strata: Annotated[list[StratumPart], Meta(min_length=1, max_length=len(DIGITS))]


class ShiftPart(TypedDict):
    """How far one column has moved."""

    name: Name
    gap: Share
    p_value: Share
    detail: Name
    drifted: bool


class DriftPart(TypedDict):
    """Shifts of the inputs, of the outcome and of the errors."""

    columns: Annotated[list[ShiftPart], Few] | None
    response: ShiftPart | None
    scores: ShiftPart | None
    drifted: Annotated[list[Name], Many]


class CurvePart(TypedDict):
    """Coverage and width over a grid of levels: lists of one length."""

    levels: Annotated[list[Level], Meta(min_length=1, max_length=10_000)]
    covered: list[Count]
    low: list[Count]
    high: list[Count]
    mean_width: list[Number]
    median_width: list[Number]


class PromisedGroupPart(TypedDict):
    """What is promised of one group at one level; see ``promised_groups`` of ``guardband.audit``."""

    name: Name
    side: Side
    level: Level
    rows: Count
    rank: Count
    needed: Count | None
    bound: Share | None
    infinite: bool
    mean_width: Number
    cost: Number


class FoundGroupPart(TypedDict):
    """What test rows say of one group at one level."""

    n: Annotated[int, Meta(ge=1, le=2**53)]
    covered: Count
    low: Count
    high: Count
    verdict: VerdictKind


class RiskPart(TypedDict):
    """What is promised of the mean loss, in place of a level."""

    limit: Finite
    cap: Finite
    loss: Name


class FoundRiskPart(RiskPart):
    """What test rows say of it; a mean of ``breaking`` would have broken the promise."""

    mean_loss: Finite
    breaking: Number
    p_value: Share


class AuditPart(TypedDict):
    """What labelled rows say of the promise."""

    reason: Reason
    more_rows: Count | None
    n: Annotated[int, Meta(ge=1, le=2**53)]
    levels: Annotated[list[LevelPart], Meta(min_length=1, max_length=10_000)]
    families: Annotated[list[FamilyPart], Few]
    groups_inform: Name
    searched_region: RegionPart | None
    drift: DriftPart
    curve: CurvePart | None
    notes: Annotated[list[Name], Few]
    parts: Annotated[list[FoundGroupPart | None], Meta(max_length=MOST_GROUPS)]
    risk: NotRequired[FoundRiskPart | None]


class HistoryPart(TypedDict):
    """Rows in blocks, in the order of their times, with the evidence in powers of ten: lists of one length."""

    first: Annotated[list[Count], Meta(min_length=1, max_length=64)]
    rows: list[Annotated[int, Meta(ge=1, le=2**53)]]
    evidence: list[Finite]
    highest: list[Finite]
    begin: list[Name]
    end: list[Name]
    limit: Annotated[float, Meta(ge=-300, le=300)]  # a power of ten
    alarm: Count | None
    since: Count | None


class SpreadPart(TypedDict):
    """The typical width beside the range of the central 90% of outcomes."""

    median_width: Number
    mean_width: Number
    low: Number
    high: Number
    ratio: Number


class WidthsPart(TypedDict):
    """A histogram of the widths."""

    edges: Annotated[list[Finite], Meta(min_length=2, max_length=1_000)]
    counts: list[Count]
    missed: list[Count]
    infinite: Count


class QuarterPart(TypedDict):
    """A quarter of the rows by their width: the medians of width and error."""

    width: Finite
    error: Number


class CalibrationPart(TypedDict):
    """The number of calibration rows, and how many intervals of a level need."""

    rows: Count
    level: Level
    needed: Count | None
    infinite: bool


class RowsPart(TypedDict):
    """The rows that a page shows; see ``rows.py``."""

    levels: Annotated[list[Level], Meta(min_length=1, max_length=10_000)]
    headline: Count
    sampled: Annotated[int, Meta(ge=1, le=10_000)]
    row: Annotated[list[Count], Meta(min_length=1, max_length=10_000)]
    y: list[Number]
    point: list[Number]
    lower: list[list[Number]]
    upper: list[list[Number]]
    inside: list[Hits]
    width: list[Number]
    beyond: list[Number]
    columns: Annotated[list[Name], Few]
    cells: list[list[Name]]
    strata: dict[Key, Places]
    widest: Annotated[list[Count], Few]
    missed: Annotated[list[Count], Few]
    telling: Annotated[list[Count], Few]
    examples: Annotated[list[tuple[ExampleKind, Count]], Meta(max_length=3)]


class CertificatePart(TypedDict):
    """The certificate in words, and the kind of the promise."""

    text: Text
    kind: Name


class About(TypedDict):
    """What a page shows of every model."""

    schema: Literal[4]
    title: Name
    author: Name
    unit: Name
    date: Name
    response: Name
    status: VerdictKind | Literal["unchecked"]
    promise: Text
    sentence: Text
    level: Level
    risk: NotRequired[RiskPart | None]
    side: NotRequired[Side]
    method: Name
    certificate: CertificatePart
    calibration: CalibrationPart
    fitted: Annotated[list[tuple[Text, Text]], Few]
    settings: Annotated[list[tuple[Text, Text]], Few]
    not_promised: Annotated[list[Text], Few]
    quantiles: NotRequired[Text | None]
    python_only: bool
    promised_groups: Annotated[list[PromisedGroupPart], Meta(max_length=MOST_GROUPS)]
    groups_left_out: Count


class Document(About):
    """Everything that a page shows of a model; if there is an audit, it is ``Checked``."""

    audit: AuditPart | None
    explained: ExplainedPart | None


class Checked(About):
    """The document of a model that was checked on labelled rows."""

    audit: AuditPart
    explained: ExplainedPart | None
    columns_left_out: Count
    judges: Text
    spread: SpreadPart
    widths: WidthsPart | None
    errors: Annotated[list[QuarterPart], Meta(min_length=4, max_length=4)] | None
    rows: RowsPart
    history: NotRequired[HistoryPart | None]
