"""The scale on which networks learn a target: standardised, on a logarithmic scale if its tail is long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from guardband.bands.predicted import Predicted
from guardband.data.asking import Asking, answered
from guardband.data.codes import asks_center_and_scale, center_and_scale
from guardband.data.order_statistics import middle_ranks
from guardband.data.questions import AskRanks, AskSpread
from guardband.data.table import Column
from guardband.data.tails import asks_origin_and_unit, signed_exp, signed_log

Array = NDArray[np.float64]
P = TypeVar("P", bound=Predicted)

BEYOND = 1.0
"""How far beyond the training rows predictions may lie on a logarithmic scale, where errors grow when they go back."""


@dataclass(frozen=True)
class Logarithms:
    """Signed logarithms about an origin."""

    origin: float
    unit: float

    def __call__(self, values: Array) -> Array:
        """Return those of values."""
        logarithms: Array = signed_log((values - self.origin) / self.unit, np)
        return logarithms


@dataclass(frozen=True)
class LearningScale:
    """Values less ``center``, divided by ``scale``; before, with a ``unit``, signed logarithms about the ``origin``.

    ``least`` and ``most`` limit predictions that are logarithms.
    """

    center: float = 0.0
    scale: float = 1.0
    origin: float = 0.0
    unit: float | None = None
    least: float = 0.0
    most: float = 0.0

    @classmethod
    def plain(cls, values: Array) -> LearningScale:
        """Return the scale that standardises values."""
        center, scale = center_and_scale(values)
        return cls(center, scale or 1.0)

    @classmethod
    def asks(cls, several: bool) -> Asking[tuple[LearningScale, ...]]:
        """Learn the scales that copies take turns with: the plain one, and a logarithmic one if a tail is long.

        Which one suits is not known before. Predictions of both, averaged, are nearly as good as those of the better.
        """
        spread = yield AskSpread()
        center, scale = yield from asks_center_and_scale(spread)
        plain = cls(center, scale or 1.0)
        if not several:
            return (plain,)
        middle = yield AskRanks(middle_ranks(spread.values), spread)
        origin, unit = yield from asks_origin_and_unit(spread, tuple(middle.tolist()))
        if unit is None:
            return (plain,)
        change = Logarithms(origin, unit)
        least, most = change(np.array([spread.least, spread.most])).tolist()
        center, scale = yield from asks_center_and_scale(replace(spread, least=least, most=most), change=change)
        return plain, cls(center, scale or 1.0, origin, unit, least - BEYOND, most + BEYOND)

    @classmethod
    def several(cls, values: Array) -> tuple[LearningScale, ...]:
        """Return the same scales of values in memory."""
        return answered(cls.asks(several=True), Column("", values))

    def forward(self, values: Array) -> Array:
        """Return values as networks learn them."""
        if self.unit is not None:
            values = signed_log((values - self.origin) / self.unit, np)
        return (values - self.center) / self.scale

    def back(self, predicted: P, xp: Any = np) -> P:
        """Return what networks predict, in the units of the values."""
        moved = predicted.moved(self.center, self.scale)
        if self.unit is None:
            return moved
        origin, unit = self.origin, self.unit
        return moved.map(lambda part: origin + unit * signed_exp(xp.clip(part, self.least, self.most), xp))

    def furthest(self, size: float) -> float:
        """Return more than the size of any prediction from outputs that are no larger than this; it may be infinite."""
        if self.unit is None:
            return abs(self.center) + 4 * self.scale * size
        with np.errstate(over="ignore"):
            return abs(self.origin) + 4 * self.unit * float(np.expm1(max(abs(self.least), abs(self.most))))
