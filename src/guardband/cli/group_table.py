"""Groups that have a promise of their own, as a short table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guardband.cli.console import Speaker, table
from guardband.cli.numbers import plain_number, short_cell
from guardband.words import level_name, percent, signed_percent

if TYPE_CHECKING:
    from rich.table import Table

Entries = dict[str, Any]

MOST_LINES = 12
LONGEST_NAME = 28
SIDES = {"lower": ", lower bound", "upper": ", upper bound"}
COST = "Cost: how much wider the intervals are than with one promise for all rows."
FEW = "Groups with too few calibration rows have infinite intervals. Add rows, or use --small-groups pool."
VERDICTS = {"broken": "broken", "consistent": "", "too few rows": "too few rows", "cannot judge": "cannot judge"}


def tell_groups(lines: Sequence[Entries], speaker: Speaker, how_to_see_all: str | None) -> None:
    """Say what is promised of each group and what test rows say of it, the worst first; nothing without groups.

    Of many groups few are shown, if there is a way to see all.
    """
    if not lines:
        return
    shown = lines if how_to_see_all is None else lines[:MOST_LINES]
    speaker.tell("Promise for each group, the worst first:")
    speaker.tell(_table(shown, len({own["level"] for own in lines}) > 1, any(own["found"] for own in lines)))
    more = len(lines) - len(shown)
    if more:
        speaker.tell(f"And {more:,} more. {how_to_see_all}")
    if any(own["infinite"] for own in shown):
        speaker.tell(FEW)
    if any(own["cost"] is not None for own in shown):
        speaker.tell(COST)
    speaker.tell()


def _table(lines: Sequence[Entries], several_levels: bool, judged: bool) -> Table:
    levels = ("level",) if several_levels else ()
    counts = ("test rows", "inside") if judged else ("calibration rows",)
    columns = ("group", *levels, *counts, "mean width", "cost", "")
    shown = table(*columns, right=range(1, len(columns) - 1))
    for own in lines:
        level = (level_name(own["level"]),) if several_levels else ()
        found = own["found"]
        count: tuple[str, ...] = (f"{own['rows']:,}",)
        if judged:
            count = ("0", "") if found is None else (f"{found['n']:,}", percent(found["covered"] / found["n"]))
        shown.add_row(_name(own), *level, *count, _width(own), _cost(own), _remark(own))
    return shown


def _name(own: Entries) -> str:
    return short_cell(own["name"], LONGEST_NAME) + SIDES.get(own["side"], "")


def _cost(own: Entries) -> str:
    return "" if own["cost"] is None else signed_percent(own["cost"])


def _width(own: Entries) -> str:
    """Return the mean width of the calibration rows' intervals; of test rows if calibration rows were only counted."""
    width, found = own["mean_width"], own["found"]
    if width is None and not own["infinite"]:
        if found is None:
            return ""
        width = found["mean_width"]
    return plain_number(width)  # which says that nothing is infinite


def _remark(own: Entries) -> str:
    """Return the verdict on a group if it is not as promised; the rows it lacks if its intervals are infinite."""
    if own["infinite"]:
        lacks = own["needed"] is not None and own["needed"] > own["rows"]
        return f"has {own['rows']:,} of {own['needed']:,} rows" if lacks else ""
    return "" if own["found"] is None else VERDICTS[own["found"]["verdict"]]
