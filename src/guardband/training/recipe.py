"""A recipe: how networks are trained, whatever they are."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Literal

Epochs = int | Literal["cv", "early"]


@dataclass(frozen=True)
class Recipe:
    """Settings of one training run.

    ``epochs`` is a number; ``"cv"`` for the number with the least loss over ``folds`` folds of D1, after
    which all of D1 trains (the paper's way); or ``"early"`` for the best epoch on ``validation_share`` of
    D1, at most ``patience`` epochs beyond it. Both try at most ``max_epochs``.
    """

    epochs: Epochs = "early"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch_size: int = 256
    max_epochs: int = 200
    patience: int = 20
    folds: int = 5
    validation_share: float = 0.15

    def __post_init__(self) -> None:
        if self.epochs not in ("cv", "early") and not _is_count(self.epochs):
            raise ValueError(f'epochs must be a whole number of at least 1, "cv" or "early", found {self.epochs!r}.')
        for name in ("batch_size", "max_epochs", "patience"):
            if not _is_count(getattr(self, name)):
                raise ValueError(f"{name} must be a whole number of at least 1, found {getattr(self, name)!r}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, found {self.learning_rate}.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, found {self.weight_decay}.")


def _is_count(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
