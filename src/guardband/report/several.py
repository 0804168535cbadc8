"""The page of several targets: the answer for all of them, then a section for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from guardband.audit.audit import Audit
from guardband.audit.evidence import Evidence
from guardband.audit.guarded import Guarded
from guardband.audit.several import SeveralEvidence, audit_several, first_level
from guardband.report.advice import Findings, steps
from guardband.report.document import MOST_BYTES, checked_rows, made, promised, shortened
from guardband.report.heading import Heading, units_of
from guardband.report.page import NO_BREAK, STATUS, UNUSABLE
from guardband.report.parts import LONGEST_NAME, LONGEST_TEXT, SCHEMA
from guardband.report.rendering import asset, or_infinite, rendered
from guardband.report.several_parts import MOST_TARGETS
from guardband.report.several_picture import picture
from guardband.report.view import found_view
from guardband.words import level_name, listed, percent

USED = (
    "audit", "spread", "widths", "errors", "rows", "judges",
)  # fmt: skip
SHIFTS_SHOWN = 10
LEVELS_NAMED = 3


def several_document(
    model: Guarded, evidence: SeveralEvidence, significance: float, heading: Heading
) -> dict[str, Any]:
    """Return what the page of several targets shows, at most 1.5 MB as JSON."""
    units_of(heading.unit, len(evidence.names))  # raises unless there is one for each
    found = audit_several(evidence, significance)
    certificate = evidence.certificate
    pairs = list(zip(evidence.targets, found.targets, strict=True))[:MOST_TARGETS]
    out: dict[str, Any] = {
        "schema": SCHEMA,
        **heading.entries(),
        "response": " and ".join(evidence.names) if len(evidence.names) < 4 else f"{len(evidence.names)} targets",
        "status": found.verdict,
        "sentence": found.sentence,
        "fitted": _made(model, evidence),
        "settings": [[name, words] for name, words in model.settings()],
        "python_only": model.python_only,
        "audit": found.to_dict() | {"targets": None},
        "several": [_target(own, one, MOST_BYTES // len(pairs)) for own, one in pairs],
    }
    names = {key: shortened(out[key], LONGEST_NAME) for key in ("title", "author", "unit", "response", "several")}
    kept = {key: shortened(value, LONGEST_TEXT) for key, value in (out | names).items()}
    return kept | promised(certificate)


def _made(model: Guarded, evidence: SeveralEvidence) -> list[list[str]]:
    """Return how the model was made and what judges it, a line each."""
    lines = made(model, None)
    rows = ["Test rows", f"{evidence.n:,} with all targets"]
    return [["Targets", listed(evidence.names)], *(rows if own[0] == "Test rows" else own for own in lines)]


def _target(evidence: Evidence, found: Audit, most_bytes: int) -> dict[str, Any]:
    """Return what the section of a target shows: it has no groups, no slider, and few columns that changed."""
    entries = checked_rows(evidence, replace(found, curve=None), most_bytes, with_groups=False)
    drift = entries["audit"]["drift"]
    shown = (drift["columns"] or [])[:SHIFTS_SHOWN]
    drift |= {"columns": shown or None, "drifted": [own["name"] for own in shown if own["drifted"]]}
    return {"response": evidence.response} | {key: entries[key] for key in USED}


def render_several(document: Mapping[str, Any]) -> str:
    """Return the page: text, tables and a picture for each target stand in it."""
    infinite = document["calibration"]["infinite"]
    words = UNUSABLE if infinite else STATUS[document["status"]]
    several = document["several"]
    targets = [_view(own, _amount_in(unit)) for own, unit in zip(several, _units(document), strict=True)]
    view = {
        "title": document["title"] or _title(document),
        "status": words,
        "sentence": document["sentence"].removeprefix(f"{words}: "),
        "steps": steps(_findings(document)),
        "sections": [(f"target-{i}", own["name"]) for i, own in enumerate(targets)],
        "own": document,
        "targets": targets,
        "lines": [_all_line(document["audit"]["levels"][0]), *(own["line"] for own in targets)],
        "shown_level": first_level([own["level"] for own in document["audit"]["levels"]]),
        "found": None,
    }
    script = "\n".join(["(() => {", '"use strict";', asset("page.js"), "})();"])
    return rendered("several.html", view, script=script)


def _units(document: Mapping[str, Any]) -> list[str]:
    """Return the unit of each target; a file may keep a page with one unit for all, which then stands nowhere."""
    n = len(document["several"])
    units = document["unit"].split(",")
    return [own.strip() for own in units[:n]] if len(units) >= n else [""] * n


def _amount_in(unit: str) -> Callable[[float | None], str]:
    return lambda value: f"{or_infinite(value)}{NO_BREAK}{unit}".rstrip(NO_BREAK)


def _title(document: Mapping[str, Any]) -> str:
    """Return the levels and the targets, in words."""
    levels = [level_name(own["level"]) for own in document["audit"]["levels"]]
    words = " and ".join([", ".join(levels[:-1]), levels[-1]] if len(levels) > 1 else levels)
    intervals = f"{words} prediction intervals" if len(levels) <= LEVELS_NAMED else "Prediction intervals"
    return f"{intervals} for {document['response']}"


def _all_line(level: Mapping[str, Any]) -> tuple[str, ...]:
    expected = "" if level["least"] is None else f"{level['low']:,} to {level['high']:,}"
    return ("all targets", f"{level['n']:,}", _count(level), expected, "")


def _count(level: Mapping[str, Any]) -> str:
    return f"{level['covered']:,} ({percent(level['covered'] / level['n'])})" if level["n"] else "0"


def _view(own: Mapping[str, Any], amount: Any) -> dict[str, Any]:
    """Return what a target's section shows."""
    found: dict[str, Any] = found_view(own, amount)  # type: ignore[arg-type]
    level = own["audit"]["levels"][0]
    return {
        "name": own["response"],
        "line": (own["response"], f"{level['n']:,}", _count(level), "", amount(own["spread"]["mean_width"])),
        "level": level,
        "spread": own["spread"],
        "judges": own["judges"],
        "examples": found["examples"],
        "widths": found["widths"],
        "promised": found["promised"],
        "shifts": found["shifts"][:SHIFTS_SHOWN],
        "amount": amount,
        "picture": picture(own["rows"]),
        "shown": own["rows"]["sampled"],
    }


def _findings(own: Mapping[str, Any]) -> Findings:
    """Return what the advice follows from."""
    calibration, first = own["calibration"], own["audit"]["levels"][0]
    return Findings(
        status=own["status"],
        level=calibration["level"],
        calibration_rows=calibration["rows"],
        infinite=calibration["infinite"],
        rows_needed=calibration["needed"],
        python_only=own["python_only"],
        reason=own["audit"]["reason"],
        more_rows=own["audit"]["more_rows"],
        above=first["least"] is not None and first["covered"] > first["high"],
    )
