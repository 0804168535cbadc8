"""What recurs of dates: the time of day, the weekday and the season."""

from __future__ import annotations

from typing import Any

YEAR = 365.2425


def turned(days: Any, turn: str, xp: Any) -> Any:
    """Return what recurs of days since 1970: part of a day, weekday from Monday, part of a year."""
    if turn == "time":
        return xp.remainder(days, 1)
    if turn == "weekday":
        return xp.remainder(xp.floor(days) + 3, 7)
    return xp.remainder(days / YEAR, 1) if turn == "season" else days
