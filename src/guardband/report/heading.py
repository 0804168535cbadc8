"""The head of a page: its title, who made it, when, and the unit of the target."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """What a page says of itself; empty text stands for what was not given.

    Without a title the page is named after the level and the target. The date is that of today unless it is given.
    """

    title: str = ""
    author: str = ""
    unit: str = ""
    date: str = ""

    def entries(self) -> dict[str, str]:
        """Return what the document of a page keeps."""
        date = self.date or datetime.date.today().isoformat()
        return {"title": self.title.strip(), "author": self.author.strip(), "unit": self.unit.strip(), "date": date}


def units_of(unit: str, n_targets: int) -> list[str]:
    """Return the unit of each of several targets, given with commas between them; empty text gives none.

    >>> units_of("CHF, days", 2), units_of("", 2)
    (['CHF', 'days'], ['', ''])
    """
    units = [own.strip() for own in unit.split(",")] if unit.strip() else [""] * n_targets
    if len(units) != n_targets:
        raise ValueError(
            f"With {n_targets} targets, there must be {n_targets} units with commas between them, found {unit!r}. "
            "Write a unit for each target in order, such as CHF,days."
        )
    return units
