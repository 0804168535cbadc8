"""Heads: what a network puts out, the loss that trains it, and the band that is read off it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from guardband.nn.absolute import AbsoluteLoss
from guardband.nn.gaussian import GaussianLoss, deviation_of
from guardband.nn.loss import IntervalLoss, Point
from guardband.nn.member_loss import MemberLoss
from guardband.nn.ordering import GAUSSIAN_90, Ordering, TripleHead
from guardband.nn.pearce import PearceLoss
from guardband.nn.quantiles import QuantileHead, QuantileLoss


class Head(ABC):
    """The end of a network and its loss. Equal heads on the same rows make equal networks, which train once."""

    columns: ClassVar[int]
    clip: ClassVar[float | None] = None
    """The largest norm of a gradient, for a loss that needs one."""

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return the last layer, ``(..., d) -> (..., columns)``."""
        return nn.Linear(in_features, self.columns)

    @abstractmethod
    def loss(self) -> MemberLoss:
        """Return the loss."""

    @abstractmethod
    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return the bands, ``(..., columns) -> (..., 3)``; ``xp`` is numpy or torch."""


@dataclass(frozen=True)
class Triple(Head):
    """Lower bound, point and upper bound at level tau (paper, section 1.2)."""

    columns = 3
    tau: float
    power: Literal[1, 2] = 1
    point: Point = "median"

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a linear layer and the ordering."""
        return TripleHead(in_features, ordering)

    def loss(self) -> IntervalLoss:
        """Return the interval loss."""
        return IntervalLoss(self.tau, self.power, self.point)

    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return the outputs, which are ordered."""
        return outputs


@dataclass(frozen=True)
class Nest(Head):
    """Quantiles at all levels of several triples with one median, from one network: its bands are nested."""

    taus: tuple[float, ...]

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The levels of all outputs, in increasing order."""
        below = sorted({tau / 2 for tau in self.taus})
        return (*below, 0.5, *(1 - q for q in reversed(below)))

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The number of quantiles."""
        return len(self.quantiles)

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a layer whose outputs never cross."""
        return QuantileHead(in_features, self.quantiles)

    def loss(self) -> QuantileLoss:
        """Return the pinball loss, summed over the levels."""
        return QuantileLoss(self.quantiles)

    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return a band for each tau, ``(n, columns) -> (K, n, 3)``."""
        places, last = self.quantiles, self.columns - 1
        at = [places.index(tau / 2) for tau in self.taus]
        return xp.stack([xp.stack([outputs[..., i], outputs[..., last // 2], outputs[..., last - i]], -1) for i in at])


@dataclass(frozen=True)
class Median(Head):
    """A point that minimises the absolute error; its band has no width."""

    columns = 1

    def loss(self) -> AbsoluteLoss:
        """Return the absolute error."""
        return AbsoluteLoss()

    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return the point three times."""
        return xp.stack([outputs[..., 0]] * 3, -1)


@dataclass(frozen=True)
class Bounds(Head):
    """A lower and an upper bound by the loss of Pearce et al. (2018); the point is halfway between them."""

    columns = 2
    tau: float
    softness: float = 160.0
    penalty: float = 15.0

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a linear layer whose bounds start as far apart as a standard Gaussian's 90% interval.

        The loss has no gradient where bounds have crossed.
        """
        linear = nn.Linear(in_features, self.columns)
        with torch.no_grad():
            linear.bias.copy_(torch.tensor([-GAUSSIAN_90, GAUSSIAN_90]))
        return linear

    def loss(self) -> PearceLoss:
        """Return captured width plus the penalty."""
        return PearceLoss(self.tau, self.softness, self.penalty)

    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return the bounds, sorted, and their midpoint."""
        one, two = outputs[..., 0], outputs[..., 1]
        return xp.stack([xp.minimum(one, two), (one + two) / 2, xp.maximum(one, two)], -1)


@dataclass(frozen=True)
class Gaussian(Head):
    """A mean and a deviation by Gaussian likelihood (Nix & Weigend, 1994); the band is one deviation each side."""

    columns = 2
    clip = 1.0

    def loss(self) -> GaussianLoss:
        """Return the negative log-likelihood."""
        return GaussianLoss()

    def bands(self, outputs: Any, xp: Any = np) -> Any:
        """Return mean - deviation, mean, mean + deviation."""
        mean, deviation = outputs[..., 0], deviation_of(outputs[..., 1], xp)
        return xp.stack([mean - deviation, mean, mean + deviation], -1)
