"""A monitor as a card, for notebooks: the alarm or none, what the rows say, and coverage block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardband.markup import rendered

if TYPE_CHECKING:
    from guardband.monitor.blocks import Block
    from guardband.monitor.finding import Finding

MOST_BLOCKS = 8


def monitor_card(finding: Finding, blocks: tuple[Block, ...]) -> str:
    """Return the HTML of a monitor."""
    first, *lines = finding.lines()
    badge, _, sentence = first.partition(": ")
    return rendered(
        "monitor.html",
        kind="broken" if finding.alarm else "consistent" if finding.rows else "",
        badge=badge,
        sentence=sentence[:1].upper() + sentence[1:],
        lines=[line.partition(": ")[::2] for line in lines],
        blocks=blocks[-MOST_BLOCKS:],
        hidden=max(0, len(blocks) - MOST_BLOCKS),
    )
