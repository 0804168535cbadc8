"""Strata as a table that is its own plot: each group's coverage on its expected range."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from guardband.report.rows import DIGITS
from guardband.words import number, percent

FLAGS = {"low": "below", "high": "above"}


def width_text(value: float | None) -> str:
    """Return a width in words; in a document, None stands for infinity."""
    return "∞" if value is None else number(value)


def strata_table(family: Mapping[str, Any], aim: float, caption: str = "") -> str:
    """Return a family as a table whose graph shows each group's coverage on the range that its flag is taken from."""
    strata = [own for own in family["strata"] if own["n"]]
    least = min([own["share"] for own in strata] + [own["low"] / own["n"] for own in strata] + [aim])
    start = min(0.9, max(0.0, int(20 * (least - 0.01)) / 20))

    def at(share: float) -> str:
        return f"{100 * (share - start) / (1 - start):.2f}%"

    lines = []
    for i, own in enumerate(family["strata"]):
        n = own["n"]
        if not n:
            continue
        words = f"{family['title']}: {own['label']}"
        style = f"--low:{at(own['low'] / n)};--high:{at(own['high'] / n)};--at:{at(own['share'])};--aim:{at(aim)}"
        lines.append(
            f'<tr class="{own["flag"] or ""}"><th scope="row"><button type="button" class="pick" aria-pressed="false" '
            f'data-family="{family["key"]}" data-place="{DIGITS[i]}" data-words="{escape(words)}">'
            f'{escape(own["label"])}</button></th><td class="graph">'
            f'<span class="track" aria-hidden="true" style="{style}">'
            f'<i class="range"></i><i class="aim"></i><i class="at"></i></span></td><td>{percent(own["share"])}</td>'
            f'<td class="wide">{percent(own["low"] / n)} to {percent(own["high"] / n)}</td><td class="wide">{n:,}</td>'
            f'<td class="flag">{FLAGS.get(own["flag"] or "", "")}</td></tr>'
        )
    said, n = escape(caption or family["title"]), family["compared"]
    title = said if caption else f'<span class="sr">{said}</span>'
    ranges = "" if n == 1 else f"{'. ' if caption else ''}Expected ranges allow for {n:,} groups."
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{said}"><table class="strata">'
        f'<caption>{title}{ranges}</caption><thead><tr><th scope="col" class="text">group</th>'
        f'<th scope="col" class="graph"><span class="ends"><span>{percent(start, 0)}</span><span>100%</span></span>'
        "</th>"
        '<th scope="col" class="share">inside</th><th scope="col" class="wide">expected range</th>'
        '<th scope="col" class="wide">rows</th><th scope="col" class="flag"><span class="sr">remark</span></th></tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
