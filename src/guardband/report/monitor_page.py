"""The page of a monitor: one HTML file that works offline, with the history of a promise in use."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from guardband.data.files import write_whole
from guardband.monitor.blocks import Block, ColumnHistory
from guardband.monitor.finding import Finding
from guardband.monitor.watching import Watching
from guardband.report.advice import Step
from guardband.report.history import history_entries
from guardband.report.parts import LONGEST_NAME
from guardband.report.rendering import asset, rendered
from guardband.words import level_name, number, percent, plain

SCRIPTS = ("page.js", "drawing.js", "evidence.js", "monitor.js")
MOST_COLUMNS, MOST_STATEMENTS = 12, 200
STATUS = {"broken": "Alarm", "consistent": "No alarm", "unchecked": "No rows yet"}
TO_DO = "What to do: "
"""What the page says in another place."""
SECTIONS = {
    "found": "What was found",
    "coverage": "Coverage over time",
    "evidence": "Evidence against the promise",
    "widths": "Width of the intervals",
    "drift": "Have the columns changed?",
    "statements": "Promise for each group and level",
    "chain": "Models before this one",
    "promise": "The promise in full",
}


def write_monitor_page(monitor: Watching, path: Path) -> Path:
    """Write the page of a monitor; the file appears whole or not at all."""
    text = render_monitor(monitor)
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
    return path


def render_monitor(monitor: Watching) -> str:
    """Return the page: text and tables stand in it, a script adds the plots."""
    finding, blocks, columns = monitor.finding(), monitor.blocks(), monitor.drift()
    status = "unchecked" if not finding.rows else "broken" if finding.alarm else "consistent"
    promise, level = monitor.certificate.promise, level_name(monitor.certificate.promise.confidence_level[0])
    shown = {"promise"} | ({"found", "coverage", "evidence", "widths", "drift"} if blocks else set())
    shown |= {"statements"} if len(finding.statements) > 1 else set()
    shown |= {"chain"} if monitor.chain else set()
    sentence, *lines = finding.lines()
    bounds = "prediction intervals" if promise.side == "both" else f"{promise.side} bounds"
    view = {
        "title": f"{level} {bounds} in use",
        "own": {"status": status},
        "status": STATUS[status],
        "sentence": sentence.partition(": ")[2] or sentence,
        "steps": _steps(finding),
        "sections": [(name, title) for name, title in SECTIONS.items() if name in shown],
        "finding": finding,
        "lines": [_pair(line) for line in lines if not line.startswith(TO_DO)],
        "blocks": [_line(own) for own in blocks],
        "low": sum(own.is_low for own in blocks),
        "timed": bool(blocks and blocks[0].begin),
        "columns": [(_short(own.name), percent(max(own.gaps, default=0.0)), _where(own, blocks)) for own in columns],
        "moved": [_short(own.name) for own in columns if any(own.moved)],
        "statements": _statements(finding),
        "left_out": max(0, len(finding.statements) - MOST_STATEMENTS),
        "chain": [_followed(own) for own in monitor.chain],
        "promise": promise.headline(monitor.certificate.method),
        "certificate": str(monitor.certificate).splitlines(),
        "not_promised": promise.not_promised(),
        "side": promise.side,
        "level": level,
    }
    script = "\n".join(["(() => {", '"use strict";', *map(asset, SCRIPTS), "})();"])
    return rendered("monitor.html", view, script=script, data=_data(finding, blocks, columns) if blocks else None)


def _data(finding: Finding, blocks: tuple[Block, ...], columns: tuple[ColumnHistory, ...]) -> dict[str, Any]:
    """Return what the script needs."""
    own: dict[str, Any] = plain(
        {
            "unit": "",
            "history": history_entries(blocks, math.log(finding.limit), finding.alarm_row, finding.since),
            "inside": [own.inside for own in blocks],
            "low": [own.low for own in blocks],
            "high": [own.high for own in blocks],
            "width": [own.width for own in blocks],
            "columns": [
                {"name": _short(own.name, 40), "gaps": [round(gap, 3) for gap in own.gaps], "moved": own.moved}
                for own in columns[:MOST_COLUMNS]
            ],
        }
    )
    return own


def _steps(finding: Finding) -> list[Step]:
    if finding.alarm:
        return [
            Step("stop", "Do not rely on these intervals", "More rows fall outside than the promise allows."),
            Step(
                "change",
                "Calibrate on rows since the change",
                "Run guardband monitor with --recalibrate. It makes a new model and begins a new state for it. If its "
                "intervals are much wider than before, fit a new model.",
            ),
        ]
    if not finding.rows:
        return [Step("look", "Bring rows", "Run guardband monitor with rows whose true values you know.")]
    return [
        Step("use", "Keep using the model", "Bring new rows as their true values arrive. Look as often as you like.")
    ]


def _pair(line: str) -> tuple[str, str]:
    name, _, words = line.partition(": ")
    return name, words[:1].upper() + words[1:]


def _line(own: Block) -> list[str]:
    when = own.begin if own.begin == own.end else f"{own.begin} to {own.end}"
    expected = f"{percent(own.low / own.rows)} to {percent(own.high / own.rows)}"
    width = "∞" if math.isnan(own.width) else number(own.width)
    return [_rows(own), when, percent(own.inside / own.rows), expected, _power(own.log_evidence), width]


def _rows(own: Block) -> str:
    return f"{own.first + 1:,} to {own.first + own.rows:,}"


def _power(log_evidence: float) -> str:
    """Return evidence in words, also where it is beyond all numbers."""
    return number(math.exp(log_evidence)) if abs(log_evidence) < 700 else f"1e{log_evidence / math.log(10):.0f}"


def _where(own: ColumnHistory, blocks: tuple[Block, ...]) -> str:
    """Return in which rows a column was beyond chance."""
    where = [_rows(block) for block, was in zip(blocks, own.moved, strict=True) if was]
    return f"in {len(where)} of {len(blocks)} blocks, first in rows {where[0]}" if where else "no"


def _statements(finding: Finding) -> list[list[str]]:
    worst = sorted(finding.statements, key=lambda own: -own.evidence)[:MOST_STATEMENTS]
    return [
        [
            f"{_short(own.name) or 'all rows'}{'' if own.side == 'both' else f', {own.side} bounds'}",
            level_name(own.level),
            f"{own.rows:,}",
            percent(1 - own.misses / own.rows) if own.rows else "",
            number(own.evidence),
        ]
        for own in worst
    ]


def _followed(own: dict[str, str]) -> list[str]:
    counts = [own.get(key, "") for key in ("rows", "alarm_row")]
    return [_short(own.get("model", "")), *(f"{int(n):,}" if n.isdecimal() else n for n in counts), own.get("date", "")]


def _short(name: str, most: int = LONGEST_NAME) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
