"""The page: one HTML file that works offline, from a document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from guardband.audit.strata import MISSING
from guardband.bands.cross_promise import CvMinmaxPromise, CvPlusPromise
from guardband.data.files import write_whole
from guardband.report.advice import Findings, steps
from guardband.report.low_groups import low_groups
from guardband.report.parts import DIGITS, AuditPart, Checked, Document
from guardband.report.promised import lines_of, promised_csv, promised_group, promised_view
from guardband.report.rendering import asset, or_infinite, rendered
from guardband.report.view import found_view, has_one_width
from guardband.words import level_name

STATUS = {
    "consistent": "Consistent with the promise",
    "broken": "Promise broken",
    "too few rows": "Too few rows to tell",
    "cannot judge": "Cannot judge",
    "unchecked": "Not yet checked",
}
CROSSED = (CvPlusPromise.kind, CvMinmaxPromise.kind)
NO_BREAK = "\N{NO-BREAK SPACE}"
UNUSABLE = "No usable intervals"
SCRIPTS = ("page.js", "drawing.js", "evidence.js", "plots.js", "rows.js")
SECTIONS = {
    "groupwise": "Promise for each group",
    "examples": "Three rows in words",
    "outcomes": "Predictions and true values",
    "time": "Coverage over time",
    "evidence": "Evidence as rows came",
    "width": "Width and error",
    "groups": "Coverage and width by group",
    "explained": "What makes intervals wide",
    "levels": "Coverage at every level",
    "drift": "Have the data changed?",
    "rows": "Rows to look at",
    "promise": "The promise in full",
    "made": "How the model was made",
}


def render(document: Mapping[str, Any]) -> str:
    """Return the page of a document: text and tables stand in it, a script adds plots and what moves."""
    if "several" in document:
        from guardband.report.several import render_several

        return render_several(document)
    own = cast(Document, document)

    def amount(value: float | None) -> str:
        return f"{or_infinite(value)}{NO_BREAK}{own['unit']}".rstrip(NO_BREAK)

    words, found, data = _status(own), None, None
    if own["audit"] is not None:
        found = found_view(cast(Checked, own), amount)
        data = _data(cast(Checked, own), found["words"])
    view = {
        "title": own["title"] or f"{_bounds(own)} for {own['response']}",
        "status": words,
        "sentence": own["sentence"].removeprefix(f"{words}: "),
        "steps": steps(_findings(own)),
        "sections": _sections(own, found),
        "own": own,
        "found": found,
        "groups": promised_view(own, amount),
        "digits": DIGITS,
        "amount": amount,
    }
    return rendered("report.html", view, script=script(), data=data)


def script() -> str:
    """Return the page's script: its files, one after the other, in a scope of their own."""
    return "\n".join(["(() => {", '"use strict";', *map(asset, SCRIPTS), "})();"])


def write_report(document: Mapping[str, Any], path: Path) -> Path:
    """Write the page of a document; the file appears whole or not at all."""
    text = render(document)
    write_whole(Path(path), lambda part: part.write_text(text, encoding="utf-8"))
    return Path(path)


def _status(own: Document) -> str:
    """Return the verdict in a few words. Of infinite intervals there is nothing to judge."""
    if own["calibration"]["infinite"]:
        return UNUSABLE
    return STATUS[own["status"]]


def _sections(own: Document, found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the sections that have something to show, by their templates and titles."""
    shown = {"promise", "made"} | ({"groupwise"} if own["promised_groups"] else set())
    if found is not None and own["calibration"]["infinite"]:
        shown |= {"drift"}
    elif found is not None:
        shown |= {"outcomes", "width", "groups", "drift", "rows"}
        shown |= {"levels"} if own.get("risk") is None else set()
        shown |= {name for name in ("examples", "time") if found[name]}
        shown |= {"evidence"} if own.get("history") else set()
    if own["explained"] is not None:
        shown.add("explained")
    return [(name, title) for name, title in SECTIONS.items() if name in shown]


def _findings(own: Document) -> Findings:
    """Return what the advice follows from."""
    calibration = own["calibration"]
    known: dict[str, Any] = {
        "status": own["status"],
        "level": calibration["level"],
        "calibration_rows": calibration["rows"],
        "infinite": calibration["infinite"],
        "rows_needed": calibration["needed"],
        "python_only": own["python_only"],
        "is_risk": own.get("risk") is not None,
        "promised_groups": tuple(map(promised_group, lines_of(own))),
    }
    if own["audit"] is not None:
        first = own["audit"]["levels"][0]
        known |= {
            "reason": own["audit"]["reason"],
            "more_rows": own["audit"]["more_rows"],
            "highest_level": _highest_level(own["audit"]),
            "above": first["covered"] > first["high"],
            "groups": sum(len(family["strata"]) for family in own["audit"]["families"]),
            "low_groups": low_groups(cast(Checked, own)),
            "one_width": has_one_width(cast(Checked, own)),
            "drifted": tuple(own["audit"]["drift"]["drifted"]),
        }
    elif own["certificate"]["kind"] in CROSSED:
        known["reason"] = "no law"
    return Findings(**known)


def _highest_level(audit: AuditPart) -> float | None:
    """Return the highest level with finite intervals, as far as the curve knows."""
    return audit["curve"]["levels"][-1] if audit["curve"] is not None else None


def _data(own: Checked, words: list[dict[str, str]]) -> dict[str, Any]:
    """Return what the script needs."""
    return {
        "response": own["response"],
        "unit": own["unit"],
        "n": own["audit"]["n"],
        "rows": own["rows"],
        "curve": own["audit"]["curve"] if words else None,
        "widths": own["widths"],
        "table_rows": max(len(own["rows"]["widest"]), len(own["rows"]["missed"])),
        "words": words,
        "groups": promised_csv(cast(Document, own)),
        "times": _times(own),
        "history": own.get("history"),
    }


def _times(own: Checked) -> dict[str, Any] | None:
    """Return coverage over time for the chart, None if no time is known; the table also has rows without a time."""
    strata = [s for family in own["audit"]["families"] if family["key"] == "time" for s in family["strata"]]
    periods = [stratum for stratum in strata if stratum["n"] and stratum["label"] != MISSING]
    return {"level": own["audit"]["levels"][0]["level"], "periods": periods} if periods else None


def _bounds(own: Document) -> str:
    side = own.get("side", "both")
    if own.get("risk") is not None:
        return "Prediction intervals with a limited loss"
    return f"{level_name(own['level'])} {'prediction intervals' if side == 'both' else f'{side} bounds'}"
