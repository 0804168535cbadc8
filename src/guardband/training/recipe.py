"""A recipe: how networks are trained, whatever they are."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.training.precision import Precision

PER_NETWORK = ("epochs", "learning_rate", "weight_decay", "clip", "schedule")

Epochs = int | Sequence[int] | Literal["cv", "early"]
Schedule = Callable[[float], float]
"""The factor of the learning rate at a share of the training, 0 to 1."""


def cosine(progress: float) -> float:
    """Return half a cosine wave from 1 down to 0."""
    return 0.5 * (1 + math.cos(math.pi * progress))


SCHEDULES: dict[str, Schedule] = {"cosine": cosine}


@dataclass(frozen=True)
class Recipe:
    """Settings of one training run.

    ``epochs`` is a number; ``"cv"`` for the number with the least loss over ``folds`` folds of the training rows, after
    which all of them train (the paper's way); or ``"early"`` for the best epoch on ``validation_share`` of
    the training rows, at most ``patience`` epochs beyond it. Both try at most ``max_epochs``.

    ``epochs`` as a number, ``learning_rate``, ``weight_decay``, ``clip`` (the largest norm of a gradient) and
    ``schedule`` (``"cosine"``, or a function from the share of the training done to a factor of the learning
    rate) are one for all networks or one for each. ``precision`` is ``"float32"``, or on a GPU ``"tf32"`` for
    products with 10 bits of mantissa, or ``"bf16"`` for products of 16-bit numbers. ``averaging`` keeps, and
    judges by, an average of the parameters that looks back over so many epochs. ``muon``, if it is not 0, lets Muon
    train the matrices between hidden units, at so many times the learning rate.
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
    muon: float = 0.0

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
        for name in ("averaging", "muon"):
            if not _is_number(getattr(self, name)) or getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, found {getattr(self, name)}.")
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share must lie strictly between 0 and 1, found {self.validation_share}.")

    def take(self, members: Sequence[int]) -> Recipe:
        """Return the recipe of some networks, in the order given."""
        given = {name: getattr(self, name) for name in PER_NETWORK}
        some: dict[str, Any] = {name: tuple(v[i] for i in members) for name, v in given.items() if _is_list(v)}
        return replace(self, **some)

    def for_members(self, size: int) -> Recipe:
        """Return the recipe with one entry per network in every setting that may differ between them.

        All methods below need it so. A schedule runs over the epochs given, or over the most that are tried.
        """
        names = (name for name in PER_NETWORK if name != "epochs" or self.counted)
        each: dict[str, Any] = {name: for_each(getattr(self, name), size, name) for name in names}
        return replace(self, **each)

    @property
    def counted(self) -> bool:
        """Whether the number of epochs is given."""
        return not isinstance(self.epochs, str)

    def horizons(self) -> tuple[int, ...]:
        """Return each network's number of epochs, or the most that are tried."""
        return _each(self.epochs) if self.counted else (self.max_epochs,) * len(_each(self.learning_rate))

    def decays(self) -> tuple[float, ...]:
        """Return each network's weight decay."""
        return _each(self.weight_decay)

    def limits(self) -> tuple[float, ...]:
        """Return the largest norm of each network's gradient."""
        return tuple(math.inf if limit is None else limit for limit in _each(self.clip))

    def one_rate(self) -> bool:
        """Whether all networks have one learning rate at all times."""
        return len(set(self._rates())) == 1

    def rates(self, epoch: int, steps: int) -> NDArray[np.float64]:
        """Return the learning rates of an epoch's steps, ``(steps, M)``."""
        columns: dict[object, NDArray[np.float64]] = {}
        for key in set(self._rates()):
            rate, schedule, horizon = key
            progress = [min(1.0, (epoch - 1 + step / steps) / horizon) if horizon else 0.0 for step in range(steps)]
            columns[key] = np.array([rate * (schedule(p) if schedule else 1.0) for p in progress])
        return np.stack([columns[key] for key in self._rates()], axis=1)

    def _rates(self) -> list[tuple[float, Schedule | None, int]]:
        """Return what each network's rate depends on: without a schedule the number of epochs does not matter."""
        schedules = [SCHEDULES[word] if isinstance(word, str) else word for word in _each(self.schedule)]
        given = zip(_each(self.learning_rate), schedules, self.horizons(), strict=True)
        return [(rate, schedule, epochs if schedule else 0) for rate, schedule, epochs in given]


def for_each(value: Any, size: int, name: str) -> tuple[Any, ...]:
    """Return one value per network of a value for all or a sequence of one for each."""
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) != size:
            raise ValueError(f"{name} must be one value or one per network, {size}, found {len(value)}.")
        return tuple(value)
    return (value,) * size


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if _is_list(value) else (value,)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
