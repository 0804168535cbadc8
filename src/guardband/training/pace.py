"""How fast each member learns: rate, schedule, decay and clipping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Schedule = Callable[[float], float]
"""The factor of the learning rate at a share of the training, 0 to 1."""


def cosine(progress: float) -> float:
    """Return half a cosine wave from 1 down to 0."""
    return 0.5 * (1 + math.cos(math.pi * progress))


SCHEDULES: dict[str, Schedule] = {"cosine": cosine}


@dataclass(frozen=True)
class Pace:
    """One entry per member: learning rate, weight decay, largest gradient norm, schedule and its length in epochs."""

    learning_rate: tuple[float, ...]
    weight_decay: tuple[float, ...]
    clip: tuple[float, ...]
    schedule: tuple[Schedule | None, ...]
    epochs: tuple[int, ...]

    @classmethod
    def of(
        cls,
        size: int,
        epochs: Sequence[int],
        learning_rate: float | Sequence[float],
        weight_decay: float | Sequence[float] = 0.0,
        clip: float | Sequence[float | None] | None = None,
        schedule: str | Schedule | Sequence[str | Schedule | None] | None = None,
    ) -> Pace:
        """Return the pace of ``size`` members, each setting one for all or one for each."""
        limits = for_each(clip, size, "clip")
        words = for_each(schedule, size, "schedule")
        return cls(
            for_each(learning_rate, size, "learning_rate"),
            for_each(weight_decay, size, "weight_decay"),
            tuple(math.inf if limit is None else limit for limit in limits),
            tuple(SCHEDULES[word] if isinstance(word, str) else word for word in words),
            tuple(epochs),
        )

    def take(self, members: Sequence[int]) -> Pace:
        """Return the pace of some members, in the order given."""
        return Pace(*(tuple(getattr(self, field.name)[i] for i in members) for field in fields(self)))

    def same_for_all(self) -> bool:
        """Whether all members have one learning rate at all times."""
        return len(set(zip(self.learning_rate, self.schedule, self._horizons(), strict=True))) == 1

    def rates(self, epoch: int, steps: int) -> NDArray[np.float64]:
        """Return the learning rates of an epoch's steps, ``(steps, M)``."""
        out = np.empty((steps, len(self.epochs)))
        columns: dict[object, NDArray[np.float64]] = {}
        for i, key in enumerate(zip(self.learning_rate, self.schedule, self._horizons(), strict=True)):
            if key not in columns:
                rate, schedule, horizon = key
                progress = [min(1.0, (epoch - 1 + step / steps) / horizon) if horizon else 0.0 for step in range(steps)]
                columns[key] = np.array([rate * (schedule(p) if schedule else 1.0) for p in progress])
            out[:, i] = columns[key]
        return out

    def _horizons(self) -> list[int]:
        """Return the epochs that matter to each member's rate: none without a schedule."""
        return [epochs if schedule else 0 for epochs, schedule in zip(self.epochs, self.schedule, strict=True)]


def for_each(value: Any, size: int, name: str) -> tuple[Any, ...]:
    """Return one value per member of a value for all or a sequence of one for each."""
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) != size:
            raise ValueError(f"{name} must be one value or one per network, {size}, found {len(value)}.")
        return tuple(value)
    return (value,) * size
