"""Heads: what a network puts out, the loss that trains it, and how its outputs are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from guardband.bands.predicted import PredictedInterval
from guardband.nn.absolute import AbsoluteLoss
from guardband.nn.gaussian import GaussianHead, GaussianLoss
from guardband.nn.loss import IntervalLoss, Point
from guardband.nn.member_loss import MemberLoss
from guardband.nn.ordering import GAUSSIAN_90, Ordering, TripleHead
from guardband.nn.pearce import PearceLoss
from guardband.nn.quantiles import QuantileHead, QuantileLoss
from guardband.nn.reading import BoundColumns, GaussianColumns, IntervalColumns, PointColumn, QuantileColumns, Reading


class Head(Reading, ABC):
    """The end of a network, its loss and its reading. Equal heads make equal networks, trained once."""

    clip: ClassVar[float | None] = None
    """The largest norm of a gradient, for a loss that needs one."""

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return the last layer, ``(..., d) -> (..., columns)``.

        Parameters
        ----------
        in_features : int
            The number of inputs of the layer.
        ordering : {"softplus", "relu"}
            How lower bound, prediction and upper bound are kept in order.
        """
        return nn.Linear(in_features, self.columns)

    @abstractmethod
    def loss(self) -> MemberLoss:
        """Return the loss."""


@dataclass(frozen=True)
class Triple(IntervalColumns, Head):
    """Lower bound, point and upper bound at level tau (paper, section 1.2).

    Parameters
    ----------
    tau : float
        The level of the bounds: the quantiles ``tau / 2`` and ``1 - tau / 2``.
    power : {1, 2}, default 1
        The power of the loss: 1 learns quantiles, 2 expectiles.
    point : {"median", "mean"}, default "median"
        What the prediction estimates.
    below : float, default None
        How much of tau lies below the lower bound. None means half.
    """

    tau: float
    power: Literal[1, 2] = 1
    point: Point = "median"
    below: float | None = None

    @property
    def tails(self) -> tuple[float, float]:
        """How much lies below the lower bound, and how much above the upper."""
        below = self.tau / 2 if self.below is None else self.below
        return below, self.tau - below

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a linear layer and the ordering."""
        return TripleHead(in_features, ordering)

    def loss(self) -> IntervalLoss:
        """Return the interval loss."""
        return IntervalLoss(self.tau, self.power, self.point, self.below)


@dataclass(frozen=True)
class NestedTriples(QuantileColumns, Head):
    """Quantiles at all levels of several triples with one median, from one network: its intervals are nested."""

    @classmethod
    def of(cls, taus: Sequence[float]) -> NestedTriples:
        """Return the head of triples at these levels."""
        below = sorted({tau / 2 for tau in taus})
        return cls((*below, 0.5, *(1 - q for q in reversed(below))), tuple(taus))

    @classmethod
    def of_tails(cls, below: float, above: float) -> NestedTriples:
        """Return the head of one triple whose tails differ."""
        return cls((below, 0.5, 1 - above), (below + above,), (below,))

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a layer whose outputs never cross."""
        return QuantileHead(in_features, self.quantiles)

    def loss(self) -> QuantileLoss:
        """Return the pinball loss, summed over the levels."""
        return QuantileLoss(self.quantiles)


@dataclass(frozen=True)
class Median(PointColumn, Head):
    """A point that minimises the absolute error."""

    def loss(self) -> AbsoluteLoss:
        """Return the absolute error."""
        return AbsoluteLoss()


@dataclass(frozen=True)
class Bounds(BoundColumns, Head):
    """A lower and an upper bound by the loss of Pearce et al. (2018); the point is halfway between them.

    Parameters
    ----------
    tau : float
        One minus the coverage that the bounds aim at.
    softness : float, default 160.0
        How steep the smooth form of "inside" is.
    penalty : float, default 15.0
        How much too little coverage costs.
    """

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

    def read(self, outputs: Any, xp: Any = np) -> PredictedInterval:
        """Return the bounds, in order, and their midpoint."""
        one, point, two = super().read(outputs, xp).parts
        return PredictedInterval(xp.minimum(one, two), point, xp.maximum(one, two))


@dataclass(frozen=True)
class Gaussian(GaussianColumns, Head):
    """A mean and a standard deviation by Gaussian likelihood (Nix & Weigend, 1994).

    Parameters
    ----------
    is_variance : bool, default False
        Whether the second output is a variance, not a standard deviation.
    """

    clip = 1.0

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return a linear layer and what makes the deviation positive."""
        return GaussianHead(in_features)

    def loss(self) -> GaussianLoss:
        """Return the negative log-likelihood."""
        return GaussianLoss()
