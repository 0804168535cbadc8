"""The page: one HTML file that works offline, from a document."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from guardband.data.files import write_whole
from guardband.report.html import asset, skeleton
from guardband.report.sections import (
    coverage_section,
    drift_section,
    fitted_section,
    level_words,
    rows_section,
    widths_section,
)
from guardband.report.strata import width_text
from guardband.words import level_name, number, percent

MARKS = {
    "consistent": '<circle cx="12" cy="12" r="11"/><path d="M6.5 12.5l3.8 3.8 7.2-8" class="cut"/>',
    "broken": '<path d="M8 1h8l7 7v8l-7 7H8l-7-7V8z"/><path d="M8 8l8 8m0-8l-8 8" class="cut"/>',
    "too few rows": '<path d="M12 .5L23.5 12 12 23.5.5 12z"/><path d="M7.5 12h.1m4.4 0h.1m4.4 0h.1" class="cut"/>',
    "cannot judge": '<path d="M12 1L23.5 22H.5z"/><path d="M12 9v6m0 3v.6" class="cut"/>',
    "unchecked": '<circle cx="12" cy="12" r="10" fill="none" stroke="currentColor" stroke-width="2"/>'
    '<path d="M12 6v6l4 3" fill="none" stroke="currentColor" stroke-width="2"/>',
}
STATUS = {
    "consistent": "Consistent with the promise",
    "broken": "Promise broken",
    "too few rows": "Too few rows to tell",
    "cannot judge": "Cannot judge",
    "unchecked": "Not yet checked",
}


def render(document: Mapping[str, Any]) -> str:
    """Return the page of a document: text and tables stand in it, a script adds plots and what moves."""
    title = f"{level_name(document['level'])} prediction intervals for {document['response']}"
    checked = document["audit"] is not None
    parts = [
        '<a class="skip" href="#main">To the report</a>',
        '<header class="top"><p><strong>guardband</strong> report</p>'
        '<button type="button" class="plain" id="theme" aria-label="Change between light and dark">Dark</button>'
        "</header>",
        '<main id="main">',
        _hero(document, title),
    ]
    if checked:
        parts += [coverage_section(document), widths_section(document), rows_section(document), drift_section(document)]
    parts += [fitted_section(document), "</main>", _foot(document)]
    if checked:
        parts.append(
            '<div class="filter" id="filter" role="status" hidden><span id="filter-words"></span>'
            '<button type="button" class="plain" id="show-all">Show all</button></div>'
            '<div class="tip" id="tip" role="status" hidden></div>'
        )
    return skeleton(title, "\n".join(parts), script=asset("page.js"), data=_data(document) if checked else None)


def write_report(document: Mapping[str, Any], path: Path) -> Path:
    """Write the page of a document; the file appears whole or not at all."""
    text = render(document)
    write_whole(Path(path), lambda part: part.write_text(text, encoding="utf-8"))
    return Path(path)


def _hero(document: Mapping[str, Any], title: str) -> str:
    status = document["status"]
    sentence = str(document["sentence"]).removeprefix(f"{STATUS[status]}: ")
    sentence = sentence[:1].upper() + sentence[1:]
    mark = (
        '<svg viewBox="0 0 24 24" aria-hidden="true" fill="currentColor">'
        + MARKS[status].replace(
            'class="cut"', 'fill="none" stroke="var(--paper)" stroke-width="2.4" stroke-linecap="round"'
        )
        + "</svg>"
    )
    parts = [
        '<section class="hero" aria-labelledby="title">',
        f'<h1 id="title">{escape(title)}</h1>',
        f'<p class="lead" id="promise">{escape(document["promise"])}</p>',
        f'<div class="verdict {status.replace(" ", "-")}" id="verdict">{mark}<p><b>{STATUS[status]}</b>'
        f"<span>{escape(sentence)}</span></p></div>",
    ]
    if document["audit"] is not None:
        parts += [_facts(document), _picture(document)]
    return "\n".join([*parts, "</section>"])


def _facts(document: Mapping[str, Any]) -> str:
    level, spread = document["audit"]["levels"][0], document["spread"]
    n = level["n"]
    expected = f"{percent(level['low'] / n)} to {percent(level['high'] / n)} expected"
    if level["whole_line"]:
        expected = "infinite intervals contain every value"
    if spread["ratio"] is None:
        against = "true values do not vary" if spread["low"] == spread["high"] else "no usable intervals"
    else:
        against = (
            f"{percent(spread['ratio'], 0)} of the range {number(spread['low'])} to {number(spread['high'])} that "
            "holds the central 90% of true values"
        )
    entries = [
        ("Rows inside their interval", percent(level["share"]), expected),
        ("Typical width (median)", width_text(spread["median_width"]), against),
        ("Test rows", f"{n:,}", document["judges"]),
    ]
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(words)}</small></dd></div>"
        for name, value, words in entries
    )
    return f'<dl class="facts">{cells}</dl>'


def _picture(document: Mapping[str, Any]) -> str:
    rows, name = document["rows"], document["response"]
    label = (
        f"Intervals of {rows['sampled']} rows in order of prediction, with their outcomes. "
        "Use the arrow keys to go from row to row."
    )
    key = (
        '<span><svg viewBox="0 0 16 18" aria-hidden="true"><path class="hold" stroke-width="3" d="M8 1V17"/>'
        '<path class="dot" stroke-width="6" d="M8 9h0"/></svg>interval that contains the outcome</span>'
        '<span><svg viewBox="0 0 16 18" aria-hidden="true"><path class="lost" stroke-width="3" d="M8 7V17"/>'
        '<path class="cross" d="M4 0l7 7m0-7l-7 7"/></svg>missed outcome</span>'
        '<span><svg viewBox="0 0 16 18" aria-hidden="true"><path class="point" d="M0 13L16 5"/></svg>prediction</span>'
    )
    return (
        f'<figure aria-label="{escape(f"Intervals against {name}")}"><div class="plot script" id="picture" '
        f'data-label="{escape(label)}"></div><figcaption><span class="key">{key}</span></figcaption></figure>'
        "<noscript><p class=small>The plots need JavaScript; every number is in the tables below.</p></noscript>"
    )


def _foot(document: Mapping[str, Any]) -> str:
    return (
        f'<footer class="foot"><p>{escape(document["method"])}, made with guardband. '
        "This page is one file and asks nothing of the network.</p></footer>"
    )


def _data(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the script needs."""
    own, rows = document["audit"], document["rows"]
    curve = own["curve"]
    slides = curve is not None and rows["levels"] == curve["levels"]
    return {
        "response": document["response"],
        "n": own["n"],
        "rows": rows,
        "curve": curve if slides else None,
        "widths": document["widths"],
        "table_rows": max(len(rows["widest"]), len(rows["missed"])),
        "words": level_words(document) if slides else [],
    }
