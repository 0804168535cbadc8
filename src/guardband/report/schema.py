"""A stored document is checked before anything is drawn: whoever writes a model file can write any document into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from guardband.exceptions import ModelFileError
from guardband.report.parts import DIGITS, SCHEMA, Checked, Document, FoundGroupPart, LevelPart, RegionPart, RowsPart
from guardband.report.several_parts import CheckedSeveral

MOST_BYTES = 50_000_000
AGAIN = "Make a new one with `guardband audit MODEL TABLE --report PAGE`."


def checked(document: Any) -> Document:
    """Return a stored document, of which nothing but what a page uses is left; raise ``ModelFileError`` if it is none.

    Whoever writes a model file can write any document into it.
    """
    version = document.get("schema") if isinstance(document, dict) else None
    if type(version) is not int or version != SCHEMA:
        raise ModelFileError(f"The stored report is of another version of guardband. {AGAIN}")
    wrong: str | None = None
    own: Any
    try:
        own = msgspec.convert(document, CheckedSeveral if "several" in document else Document, strict=True)
        if "several" in document:
            wrong = next(_faults_of_several(cast(CheckedSeveral, own)), None)
        elif own["audit"] is not None:
            own = msgspec.convert(document, Checked, strict=True)
            wrong = next(_faults(own), None)
        if (own["status"] == "unchecked") != (own["audit"] is None):
            wrong = "the status does not match the audit"
        elif len(json.dumps(own, ensure_ascii=False).encode()) > MOST_BYTES:
            wrong = "it is too large"
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        wrong = "".join(sign if sign.isprintable() else "?" for sign in str(error)[:200])
    if wrong is not None:
        raise ModelFileError(f"The stored report is damaged ({wrong}). {AGAIN}")
    return cast(Document, own)


def _faults_of_several(document: CheckedSeveral) -> Iterator[str]:
    """Yield what does not fit together in what is said of all targets, or of one."""
    if any(max(own["covered"], own["low"], own["high"]) > own["n"] for own in document["audit"]["levels"]):
        yield "a count is larger than the number of rows"
    for own in document["several"]:
        yield from _faults(cast(Checked, {**own, "promised_groups": []}))


def _faults(document: Checked) -> Iterator[str]:
    """Yield what does not fit together, by the place that it is at."""
    own, rows = document["audit"], document["rows"]
    counted: list[LevelPart | RegionPart | FoundGroupPart] = [
        *own["levels"],
        *(s for family in own["families"] for s in family["strata"]),
        *(part for part in own["parts"] if part is not None),
    ]
    if own["searched_region"] is not None:
        counted.append(own["searched_region"])
        if not own["searched_region"]["n"]:
            yield "the region that was searched has no rows"
    if any(max(part["covered"], part["low"], part["high"]) > part["n"] for part in counted):
        yield "a count is larger than the number of rows"
    if len(own["parts"]) != len(document["promised_groups"]):
        yield "the groups that have a promise do not match"
    past = document.get("history")
    if past is not None:
        lengths = [len(past["rows"]), len(past["evidence"]), len(past["highest"]), len(past["begin"]), len(past["end"])]
        if {len(past["first"])} != {*lengths}:
            yield "the blocks of the history do not match"
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
    if rows["headline"] >= levels or rows["sampled"] > n or any(i >= n for i in _places(rows)):
        yield "a row or level is out of range"
    if any(j >= len(rows["columns"]) for j in rows["telling"]):
        yield "a column is out of range"
    at = rows["headline"]
    if any(
        None in (side[i] for side in (rows["lower"][at], rows["upper"][at], rows["point"])) for _, i in rows["examples"]
    ):
        yield "an example has no interval"
    if not all(any(stratum["n"] for stratum in family["strata"]) for family in own["families"]):
        yield "all groups of a kind are empty"
    sizes = {family["key"]: len(family["strata"]) for family in own["families"]}
    if len(sizes) != len(own["families"]) or rows["strata"].keys() != sizes.keys():
        yield "the groups do not match"
    elif any(len(rows["strata"][key]) != n or set(rows["strata"][key]) - set(DIGITS[:k]) for key, k in sizes.items()):
        yield "a row is in no group"


def _places(rows: RowsPart) -> list[int]:
    """Return every place at which a row is looked up."""
    return [*rows["widest"], *rows["missed"], *(i for _, i in rows["examples"])]
