"""A mean and a standard deviation, and the Gaussian likelihood that trains them (Nix & Weigend, 1994)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from guardband.nn.member_loss import MemberLoss

LEAST_DEVIATION = 1e-3
"""Of a response whose own deviation is about 1."""


class PositiveDeviation(nn.Module):
    """Maps any two numbers m and s to a mean m and a deviation 0.001 + softplus(s), ``(..., 2) -> (..., 2)``.

    A softplus, so that the deviation of a row far off is not exponentially large.
    """

    ends_network = True

    def forward(self, z: Tensor) -> Tensor:
        """Return mean and deviation of raw outputs."""
        mean, s = z.unbind(-1)
        return torch.stack([mean, LEAST_DEVIATION + nn.functional.softplus(s)], dim=-1)


class GaussianHead(nn.Sequential):
    """The last layer of a network that puts out mean and standard deviation, ``(..., d) -> (..., 2)``.

    The deviation is at least 0.001: standardise the target.

    Parameters
    ----------
    in_features : int
        The number of inputs of the layer.
    """

    def __init__(self, in_features: int) -> None:
        super().__init__(nn.Linear(in_features, 2), PositiveDeviation())


class GaussianLoss(MemberLoss):
    """The negative Gaussian log-likelihood of a mean and a standard deviation, ``(..., n, 2), (..., n) -> (...)``.

    log(2 pi)/2 + log d + ((y - m) / d)^2 / 2 for outputs m and d > 0, as those of ``GaussianHead``; a mean over rows.
    Gradients are huge where d is small: train with ``clip=1``.

    >>> loss = GaussianLoss()(torch.tensor([[0.0, 1.0]]), torch.tensor([0.0]))
    >>> round(loss.item(), 4)
    0.9189
    """

    columns = 2

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 2), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        mean, deviation = outputs.unbind(-1)
        return 0.5 * math.log(2 * math.pi) + deviation.log() + 0.5 * ((y - mean) / deviation).square()
