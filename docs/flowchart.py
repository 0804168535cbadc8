"""A Mermaid flowchart as a drawing for the site: Mermaid itself would be fetched from another host.

Names stand one below another in the order in which the chart first has them, and arrows bend round them on the right.
"""

from __future__ import annotations

import re

CHART = re.compile(r"^```mermaid\nflowchart TB\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW, HEIGHT, WIDTH, BEND = 40, 28, 130, 26


def drawn(markdown: str) -> str:
    """Return the page with its flowcharts as SVG."""
    return CHART.sub(lambda found: svg(found.group(1)), markdown)


def svg(chart: str) -> str:
    """Return the drawing of lines such as ``a --> b & c``."""
    lines = [line.split(" --> ") for line in chart.strip().splitlines()]
    arrows = [(left.strip(), right) for left, several in lines for right in several.split(" & ")]
    names = list(dict.fromkeys([left for left, _ in arrows] + [right for _, right in arrows]))
    y = {name: ROW * place + HEIGHT / 2 + 1 for place, name in enumerate(names)}
    right = WIDTH + 1
    far = max(abs(y[a] - y[b]) / ROW for a, b in arrows)
    parts = []
    for name in names:
        parts.append(f'<rect x="1" y="{y[name] - HEIGHT / 2}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>')
        parts.append(f'<text x="{1 + WIDTH / 2}" y="{y[name]}">{name}</text>')
    for a, b in arrows:
        # Arrows leave a little below the middle of their box and arrive a little above it.
        out, start, end = right + 12 + BEND * abs(y[a] - y[b]) / ROW, y[a] + 5, y[b] - 5
        parts.append(f'<path d="M{right} {start}C{out} {start} {out} {end} {right + 6} {end}"/>')
        parts.append(f'<path class="tip" d="M{right} {end}l8 -4v8z"/>')
    size = f"0 0 {right + 14 + BEND * far:.0f} {ROW * len(names)}"
    words = ", ".join(f"{a} imports {b}" for a, b in arrows)
    drawing = f'<svg viewBox="{size}" role="img" aria-label="{words}">{"".join(parts)}</svg>'
    return f'<figure class="flowchart">{drawing}</figure>'
