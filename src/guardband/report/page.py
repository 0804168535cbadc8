"""The page: one HTML file that works offline, from a document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from guardband.data.files import write_whole
from guardband.report.rendering import asset, rendered
from guardband.report.schema import DIGITS, Checked, Document
from guardband.report.view import found_view
from guardband.words import level_name

STATUS = {
    "consistent": "Consistent with the promise",
    "broken": "Promise broken",
    "too few rows": "Too few rows to tell",
    "cannot judge": "Cannot judge",
    "unchecked": "Not yet checked",
}


def render(document: Mapping[str, Any]) -> str:
    """Return the page of a document: text and tables stand in it, a script adds plots and what moves."""
    own = cast(Document, document)
    words, found, data = STATUS[own["status"]], None, None
    if own["audit"] is not None:
        found = found_view(cast(Checked, own))
        data = _data(cast(Checked, own), found["words"])
    view = {
        "title": f"{level_name(own['level'])} prediction intervals for {own['response']}",
        "status": words,
        "sentence": own["sentence"].removeprefix(f"{words}: "),
        "own": own,
        "found": found,
        "digits": DIGITS,
    }
    return rendered("report.html", view, script=asset("page.js"), data=data)


def write_report(document: Mapping[str, Any], path: Path) -> Path:
    """Write the page of a document; the file appears whole or not at all."""
    text = render(document)
    write_whole(Path(path), lambda part: part.write_text(text, encoding="utf-8"))
    return Path(path)


def _data(own: Checked, words: list[dict[str, str]]) -> dict[str, Any]:
    """Return what the script needs."""
    return {
        "response": own["response"],
        "n": own["audit"]["n"],
        "rows": own["rows"],
        "curve": own["audit"]["curve"] if words else None,
        "widths": own["widths"],
        "table_rows": max(len(own["rows"]["widest"]), len(own["rows"]["missed"])),
        "words": words,
    }
