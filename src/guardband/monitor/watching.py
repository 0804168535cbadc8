"""What a page needs of a monitor."""

from __future__ import annotations

from typing import Protocol

from guardband.bands.certificate import Certificate
from guardband.monitor.blocks import Block, ColumnHistory
from guardband.monitor.finding import Finding


class Watching(Protocol):
    """A monitor with what it has found."""

    @property
    def certificate(self) -> Certificate:
        """What is promised."""

    @property
    def chain(self) -> tuple[dict[str, str], ...]:
        """The models that came before."""

    def finding(self) -> Finding:
        """Return everything that the rows so far say."""

    def blocks(self) -> tuple[Block, ...]:
        """Return the rows so far in blocks."""

    def drift(self) -> tuple[ColumnHistory, ...]:
        """Return how far each column was from the training rows in each block."""
