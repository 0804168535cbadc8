"""A recipe: how networks are trained, whatever they are."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from guardband.training.pace import SCHEDULES, Pace, Schedule, for_each
from guardband.training.task import Precision

PER_NETWORK = ("epochs", "learning_rate", "weight_decay", "clip", "schedule")

Epochs = int | Sequence[int] | Literal["cv", "early"]


@dataclass(frozen=True)
class Recipe:
    """Settings of one training run.

    ``epochs`` is a number; ``"cv"`` for the number with the least loss over ``folds`` folds of D1, after
    which all of D1 trains (the paper's way); or ``"early"`` for the best epoch on ``validation_share`` of
    D1, at most ``patience`` epochs beyond it. Both try at most ``max_epochs``.

    ``epochs`` as a number, ``learning_rate``, ``weight_decay``, ``clip`` (the largest norm of a gradient) and
    ``schedule`` (``"cosine"``, or a function from the share of the training done to a factor of the learning
    rate) are one for all networks or one for each. ``precision`` is ``"float32"``, or on a GPU ``"tf32"`` for
    products with 10 bits of mantissa, or ``"bf16"`` for products of 16-bit numbers. ``averaging`` keeps, and
    judges by, an average of the parameters that looks back over so many epochs.
    """

    epochs: Epochs = "early"
    learning_rate: float | Sequence[float] = 0.01
    weight_decay: float | Sequence[float] = 0.0
    batch_size: int = 256
    max_epochs: int = 200
    patience: int = 20
    folds: int = 5
    validation_share: float = 0.15
    clip: float | Sequence[float | None] | None = None
    schedule: str | Schedule | Sequence[str | Schedule | None] | None = None
    precision: Precision = "float32"
    averaging: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs not in ("cv", "early") and not all(_is_count(epochs) for epochs in _each(self.epochs)):
            raise ValueError(f'epochs must be a whole number of at least 1, "cv" or "early", found {self.epochs!r}.')
        for name in ("batch_size", "max_epochs", "patience"):
            if not _is_count(getattr(self, name)):
                raise ValueError(f"{name} must be a whole number of at least 1, found {getattr(self, name)!r}.")
        if not all(_is_number(rate) and rate > 0 for rate in _each(self.learning_rate)):
            raise ValueError(f"learning_rate must be positive, found {self.learning_rate}.")
        if not all(_is_number(decay) and decay >= 0 for decay in _each(self.weight_decay)):
            raise ValueError(f"weight_decay must not be negative, found {self.weight_decay}.")
        if not all(limit is None or (_is_number(limit) and limit > 0) for limit in _each(self.clip)):
            raise ValueError(f"clip must be positive, or None for no limit, found {self.clip}.")
        if not all(word is None or callable(word) or word in SCHEDULES for word in _each(self.schedule)):
            words = ", ".join(f'"{word}"' for word in SCHEDULES)
            raise ValueError(f"schedule must be {words}, a function of the progress or None, found {self.schedule!r}.")
        if self.precision not in ("float32", "tf32", "bf16"):
            raise ValueError(f'precision must be "float32", "tf32" or "bf16", found {self.precision!r}.')
        if not _is_number(self.averaging) or self.averaging < 0:
            raise ValueError(f"averaging must not be negative, found {self.averaging}.")
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share must lie strictly between 0 and 1, found {self.validation_share}.")

    def take(self, members: Sequence[int]) -> Recipe:
        """Return the recipe of some networks, in the order given."""
        given: dict[str, Any] = {name: getattr(self, name) for name in PER_NETWORK}
        own: dict[str, Any] = {
            name: tuple(value[i] for i in members) for name, value in given.items() if isinstance(value, list | tuple)
        }
        return replace(self, **own)

    def pace(self, size: int) -> Pace:
        """Return the pace of ``size`` members; a schedule runs over the epochs given, or over the most tried."""
        epochs = for_each(self.max_epochs if isinstance(self.epochs, str) else self.epochs, size, "epochs")
        return Pace.of(size, epochs, self.learning_rate, self.weight_decay, self.clip, self.schedule)


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
