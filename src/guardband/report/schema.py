"""The document of a page, exactly: what each entry may be. A stored document is checked before anything is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec
from msgspec import Meta

from guardband.audit.strata import Flag
from guardband.audit.verdict import VerdictKind
from guardband.exceptions import ModelFileError

SCHEMA = 2
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""The groups of a family, a character each."""
LONGEST_NAME = 1_000
LONGEST_TEXT = 20_000
MOST_BYTES = 50_000_000
LARGEST = 1.7976931348623157e308
AGAIN = "Make a new one with `guardband audit MODEL TABLE --report PAGE`."

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


class StratumPart(TypedDict):
    """One group of rows, perhaps empty."""

    label: Name
    n: Count
    covered: Count
    low: Count
    high: Count
    flag: Flag | None


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


class AuditPart(TypedDict):
    """What labelled rows say of the promise."""

    n: Annotated[int, Meta(ge=1, le=2**53)]
    levels: Annotated[list[LevelPart], Meta(min_length=1, max_length=10_000)]
    families: Annotated[list[FamilyPart], Few]
    groups_inform: Name
    searched_region: StratumPart | None
    drift: DriftPart
    curve: CurvePart | None
    notes: Annotated[list[Name], Few]


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


class CertificatePart(TypedDict):
    """The certificate in words."""

    text: Text


class About(TypedDict):
    """What a page shows of every model."""

    schema: Literal[2]
    response: Name
    status: VerdictKind | Literal["unchecked"]
    promise: Text
    sentence: Text
    level: Level
    method: Name
    certificate: CertificatePart
    fitted: Annotated[list[tuple[Text, Text]], Few]
    settings: Annotated[list[tuple[Text, Text]], Few]
    not_promised: Annotated[list[Text], Few]


class Document(About):
    """Everything that a page shows of a model; if there is an audit, it is ``Checked``."""

    audit: AuditPart | None


class Checked(About):
    """The document of a model that was checked on labelled rows."""

    audit: AuditPart
    columns_left_out: Count
    judges: Text
    spread: SpreadPart
    widths: WidthsPart | None
    rows: RowsPart


def checked(document: Any) -> Document:
    """Return a stored document, of which nothing but what a page uses is left; raise ``ModelFileError`` if it is none.

    Whoever writes a model file can write any document into it.
    """
    version = document.get("schema") if isinstance(document, dict) else None
    if type(version) is not int or version != SCHEMA:
        raise ModelFileError(f"The stored report is of another version of guardband. {AGAIN}")
    wrong: str | None = None
    try:
        own = msgspec.convert(document, Document, strict=True)
        if own["audit"] is not None:
            whole = msgspec.convert(document, Checked, strict=True)
            wrong, own = next(_faults(whole), None), cast(Document, whole)
        if (own["status"] == "unchecked") != (own["audit"] is None):
            wrong = "the status does not match the audit"
        elif len(json.dumps(own, ensure_ascii=False).encode()) > MOST_BYTES:
            wrong = "it is too large"
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        wrong = "".join(sign if sign.isprintable() else "?" for sign in str(error)[:200])
    if wrong is not None:
        raise ModelFileError(f"The stored report is damaged ({wrong}). {AGAIN}")
    return own


def _faults(document: Checked) -> Iterator[str]:
    """Yield what does not fit together, by the place that it is at."""
    own, rows = document["audit"], document["rows"]
    counted = [*own["levels"], *(s for family in own["families"] for s in family["strata"])]
    if own["searched_region"] is not None:
        counted.append(own["searched_region"])
        if not own["searched_region"]["n"]:
            yield "the region that was searched has no rows"
    if any(max(part["covered"], part["low"], part["high"]) > part["n"] for part in counted):
        yield "a count is larger than the number of rows"
    curve, widths = own["curve"], document["widths"]
    if curve is not None:
        counts = [curve["covered"], curve["low"], curve["high"]]
        if {*map(len, counts), len(curve["mean_width"]), len(curve["median_width"])} != {len(curve["levels"])}:
            yield "the curve has lists of different lengths"
        if curve["levels"] != sorted(curve["levels"]) or max(map(max, counts)) > own["n"]:
            yield "the curve is out of range"
    if widths is not None:
        if not len(widths["counts"]) == len(widths["missed"]) == len(widths["edges"]) - 1:
            yield "the widths have lists of different lengths"
        if widths["edges"] != sorted(widths["edges"]):
            yield "the widths are out of order"
    n, levels = len(rows["row"]), len(rows["levels"])
    ends = [[len(entry) for entry in part] for part in (rows["lower"], rows["upper"], rows["inside"])]
    if any(lengths != [n] * levels for lengths in ends):
        yield "the intervals have lists of different lengths"
    if {len(side) for side in (rows["y"], rows["point"], rows["width"], rows["beyond"])} != {n}:
        yield "the rows have lists of different lengths"
    if len(rows["cells"]) != (n if rows["columns"] else 0) or any(
        len(cells) != len(rows["columns"]) for cells in rows["cells"]
    ):
        yield "the cells are not a table"
    if rows["headline"] >= levels or rows["sampled"] > n or any(i >= n for i in rows["widest"] + rows["missed"]):
        yield "a row or level is out of range"
    if not all(any(stratum["n"] for stratum in family["strata"]) for family in own["families"]):
        yield "all groups of a kind are empty"
    sizes = {family["key"]: len(family["strata"]) for family in own["families"]}
    if len(sizes) != len(own["families"]) or rows["strata"].keys() != sizes.keys():
        yield "the groups do not match"
    elif any(len(rows["strata"][key]) != n or set(rows["strata"][key]) - set(DIGITS[:k]) for key, k in sizes.items()):
        yield "a row is in no group"
