"""Many quantiles from one network, in order: every level, and pav's whole grid, from one training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from guardband.nn.member_loss import MemberLoss


class OrderedQuantiles(nn.Module):
    """Maps any Q numbers to Q quantiles in order, ``(..., Q) -> (..., Q)``.

    The middle one is itself. The others lie beyond their neighbour by their softplus, which is positive.
    """

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns, self.middle = columns, columns // 2

    def forward(self, z: Tensor) -> Tensor:
        """Return the quantiles in increasing order."""
        i = self.middle
        middle, gaps = z[..., i : i + 1], nn.functional.softplus(z)
        below = middle - gaps[..., :i].flip(-1).cumsum(-1).flip(-1)
        above = middle + gaps[..., i + 1 :].cumsum(-1)
        return torch.cat([below, middle, above], dim=-1)


class QuantileHead(nn.Module):
    """The last layer of a network that puts out Q quantiles, ``(..., d) -> (..., Q)``, which never cross.

    The middle quantile is a linear function, and the others lie a positive distance beyond their neighbour. Distances
    start as those of a standard Gaussian. Standardise the target, or expect the first epochs to learn its scale.

    Parameters
    ----------
    in_features : int
        The number of inputs of the layer.
    quantiles : sequence of float
        The levels of the quantiles, increasing, strictly between 0 and 1.
    """

    def __init__(self, in_features: int, quantiles: Sequence[float]) -> None:
        super().__init__()
        self.quantiles = checked_quantiles(quantiles)
        self.linear = nn.Linear(in_features, len(self.quantiles))
        self.order = OrderedQuantiles(len(self.quantiles))
        places = torch.special.ndtri(torch.tensor(self.quantiles, dtype=torch.float64))
        gaps = places.diff().clamp(min=1e-3)
        with torch.no_grad():
            start = torch.log(torch.expm1(gaps)).float()
            self.linear.bias[: self.order.middle] = start[: self.order.middle]
            self.linear.bias[self.order.middle + 1 :] = start[self.order.middle :]

    def forward(self, x: Tensor) -> Tensor:
        """Return the quantiles in increasing order."""
        out: Tensor = self.order(self.linear(x))
        return out

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"quantiles={self.quantiles}"


class QuantileLoss(MemberLoss):
    """The pinball loss summed over Q quantiles, ``(..., n, Q), (..., n) -> (...)``: a mean over rows.

    Parameters
    ----------
    quantiles : sequence of float
        The levels of the quantiles, increasing, strictly between 0 and 1.

    Examples
    --------
    >>> loss = QuantileLoss([0.05, 0.5, 0.95])
    >>> bands, y = torch.tensor([[-1.0, 0.0, 1.0]]), torch.tensor([2.0])
    >>> round(loss(bands, y).item(), 4)  # that of IntervalLoss(tau=0.1)
    2.1
    """

    levels: Tensor

    def __init__(self, quantiles: Sequence[float]) -> None:
        super().__init__()
        self.quantiles = checked_quantiles(quantiles)
        self.columns = len(self.quantiles)  # type: ignore[misc]
        self.register_buffer("levels", torch.tensor(self.quantiles), persistent=False)

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, Q), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        residual = y.unsqueeze(-1) - outputs
        levels = self.levels.to(outputs)
        return torch.maximum(levels * residual, (levels - 1) * residual).sum(-1)

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"quantiles={self.quantiles}"


def checked_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Return levels of quantiles; those that do not increase strictly between 0 and 1 are refused."""
    levels = tuple(float(level) for level in quantiles)
    increasing = all(a < b for a, b in pairwise(levels))
    if not levels or not increasing or not all(math.isfinite(q) and 0 < q < 1 for q in levels):
        raise ValueError(f"quantiles must increase strictly between 0 and 1, found {list(quantiles)}.")
    return levels
