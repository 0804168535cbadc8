"""Bars in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

BAR = 30
FULL, EIGHTHS = "█", "▏▎▍▌▋▊▉"


def bars(rows: Sequence[tuple[str, float | None]], ascii_only: bool) -> str:
    """Return a bar for what each number exceeds 1 by, one line each; None is endless."""
    longest = max((value - 1 for _, value in rows if value is not None), default=0.0) or 1.0
    width = max(len(label) for label, _ in rows)
    lines = []
    for label, value in rows:
        if value is None:
            lines.append(f"{label:>{width}}  infinite: too few rows")
        else:
            lines.append(f"{label:>{width}}  {value:.3f} {_bar(max(0.0, value - 1) / longest, ascii_only)}")
    return "\n".join(lines)


def _bar(share: float, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(BAR * share)
    whole, part = divmod(round(8 * BAR * share), 8)
    return FULL * whole + (EIGHTHS[part - 1] if part else "")


def has_blocks() -> bool:
    """Return whether the output can show blocks."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    return encoding.replace("-", "") == "utf8"
