"""What ``guardband plan`` says of two tails that each have a promise of their own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from guardband.cli.console import Speaker, table
from guardband.cli.help import PROMISE
from guardband.words import confidence_name

Tails = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH",
        help="Shares of rows that may lie below their intervals, and above, such as 0.02,0.08. Shows how many rows "
        "that needs. One bound alone needs as many rows as an interval.",
        rich_help_panel=PROMISE,
    ),
]


def needed_by_tails(low: float, high: float, delta: float) -> list[dict[str, Any]]:
    """Return how many rows finite bounds need if each tail has a promise of its own; the two share delta."""
    from guardband import planning
    from guardband.methods.method import Request

    Request.of(tails=(low, high))  # which refuses what cannot be
    return [
        {"promise": "finite bounds, on average", "rows": planning.tails_rows(low, high)},
        {"promise": f"finite bounds, {confidence_name(delta)} sure", "rows": planning.tails_rows(low, high, delta)},
    ]


def tell_tails(needs: list[dict[str, Any]], speaker: Speaker) -> None:
    """Show the needs as a table; nothing without tails."""
    if needs:
        shown = table("promise", "calibration rows", right=(1,), title="Calibration rows needed for these tails")
        for own in needs:
            shown.add_row(own["promise"], f"{own['rows']:,}")
        speaker.tell(shown)
