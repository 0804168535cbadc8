"""A recipe: how networks are trained, whatever they are."""

from __future__ import annotations

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
        if not (self.epochs in ("cv", "early") or (isinstance(self.epochs, int) and self.epochs >= 1)):
            raise ValueError(f'epochs must be a whole number of at least 1, "cv" or "early", found {self.epochs!r}.')
        for name in ("learning_rate", "batch_size", "max_epochs", "patience"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, found {getattr(self, name)}.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, found {self.weight_decay}.")
