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
