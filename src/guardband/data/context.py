"""What a rule may know of a table's rows besides their predictions."""

from __future__ import annotations

from guardband.bands.predicted import Context
from guardband.data.table import Table


def context_of(table: Table) -> Context:
    """Return what a rule may know of a table's rows; nothing is asked for yet."""
    return Context()
