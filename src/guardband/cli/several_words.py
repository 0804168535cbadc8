"""What commands say of several targets: how often all of them lie inside, and each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardband.audit.several import first_level
from guardband.cli.console import Speaker, table
from guardband.cli.numbers import plain_number
from guardband.words import percent

if TYPE_CHECKING:
    from guardband.audit.several import SeveralAudit

KEEP = "Keep using the model. Audit again when you know more true values."
TO_DO = {
    "broken": "If future rows will look like these, recalibrate the model on them with --recalibrate MODEL.",
    "consistent": KEEP,
    "too few rows": "Audit more rows together, or recalibrate the model on more rows.",
}


def tell_targets(model: Any, document: dict[str, Any], speaker: Speaker) -> None:
    """Say what test rows say of each target, or without test rows which targets there are."""
    if document.get("several") is None:
        names = ", ".join(model.calibration_.rule.target_names)
        speaker.tell(f"Targets: {names}. No test rows were set aside.\n")
        return
    first = document["audit"]["levels"][0]
    levels = [(own["response"], own["audit"]["levels"][0]) for own in document["several"]]
    lines = [(name, own["n"], own["covered"], own["mean_width"]) for name, own in levels]
    shown = first_level([own["level"] for own in document["audit"]["levels"]])
    _tell([("all targets", first["n"], first["covered"], None), *lines], shown, speaker)


def tell_several(found: SeveralAudit, speaker: Speaker) -> None:
    """Say what an audit of several targets found."""
    speaker.tell_verdict(found.verdict, found.sentence)
    if found.verdict in TO_DO:
        speaker.tell(f"What to do: {TO_DO[found.verdict]}")
    speaker.tell()
    (name, n, covered, _, _), *each = found.lines()
    shown = first_level([own.level for own in found.levels])
    _tell([(name, n, covered, None), *((own[0], own[1], own[2], own[4]) for own in each)], shown, speaker)


def _tell(lines: list[tuple[str, int, int, float | None]], level: str, speaker: Speaker) -> None:
    shown = table("target", "rows", "inside", "share", "mean width", right=range(1, 5))
    for i, (name, n, covered, width) in enumerate(lines):
        wide = "" if i == 0 else plain_number(width)
        shown.add_row(name, f"{n:,}", f"{covered:,}", percent(covered / n) if n else "", wide)
    speaker.tell(shown)
    if level:
        speaker.tell(f"{level}\n")
