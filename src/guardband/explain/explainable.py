"""What an explanation needs of a calibrated model: predictions of rows that are mixed from others."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from guardband.audit.guarded import Guarded
from guardband.data.mixed_rows import Mixer


@runtime_checkable
class Mixes(Protocol):
    """A model that can be asked for mixed rows; a rule for predictions from elsewhere cannot."""

    @property
    def is_quick(self) -> bool:
        """Whether it may be asked for many rows unasked: a function of the user's may be a slow or costly service."""

    def mixer(self, X: Any) -> Mixer:
        """Return rows as the model reads them, and what it predicts for rows mixed from them."""


class Explainable(Guarded, Mixes, Protocol):
    """A calibrated model of tables that can be explained."""
