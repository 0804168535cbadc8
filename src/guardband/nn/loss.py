"""The interval loss (paper, section 1.2)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Point = Literal["median", "mean"]


class IntervalLoss(nn.Module):
    """The level-tau loss of a band, ``(..., n, 3), (..., n) -> (...)``: a mean over rows.

    h_{tau/2}(y - lower) + h_{1/2}(y - point) + h_{1 - tau/2}(y - upper), where h_t(r) = max(t r, (t - 1) r).
    Its minimisers are the conditional quantiles, and it equals 1.5 times the weighted interval score at
    alpha = tau. Several taus, ``(K,)``, give each of K stacked bands ``(K, n, 3)`` its own level.

    ``power=2`` squares all three terms: the paper's squared form. Its minimisers are expectiles, which lie
    further out than the quantiles: at tau = 0.1, 2.13 standard deviations for a Gaussian instead of 1.645.
    ``point="mean"`` squares the middle term alone, so that the point estimates the conditional mean.

    >>> bands, y = torch.tensor([[-1.0, 0.0, 1.0]]), torch.tensor([2.0])
    >>> round(IntervalLoss(tau=0.1)(bands, y).item(), 4)
    2.1
    """

    tau: Tensor

    def __init__(self, tau: float | Sequence[float], power: Literal[1, 2] = 1, point: Point = "median") -> None:
        super().__init__()
        levels = torch.as_tensor(tau, dtype=torch.float32)
        if levels.ndim > 1 or levels.numel() == 0 or not bool(((levels > 0) & (levels < 1)).all()):
            raise ValueError(f"tau must lie strictly between 0 and 1, found {tau}.")
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, found {power}.")
        if point not in ("median", "mean"):
            raise ValueError(f'point must be "median" or "mean", found {point!r}.')
        self.register_buffer("tau", levels, persistent=False)
        self.power = power
        self.point = point

    def forward(self, bands: Tensor, y: Tensor) -> Tensor:
        """Return the mean loss over rows."""
        return self.rows(bands, y).mean(-1)

    def rows(self, bands: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 3), (..., n) -> (..., n)``."""
        if bands.shape[-1] != 3 or y.ndim >= bands.ndim or y.shape[-1:] != bands.shape[-2:-1]:
            raise ValueError(
                "IntervalLoss needs bands of shape (..., n, 3) and y of shape (..., n), "
                f"found {tuple(bands.shape)} and {tuple(y.shape)}."
            )
        half = (self.tau / 2).to(bands.dtype)
        half = half[:, None] if half.ndim else half
        below, middle, above = (y.unsqueeze(-1) - bands).unbind(-1)
        low, mid, high = _pinball(half, below), _pinball(0.5, middle), _pinball(1 - half, above)
        if self.power == 2:
            return low.square() + mid.square() + high.square()
        return low + (mid.square() if self.point == "mean" else mid) + high

    def take(self, members: Sequence[int]) -> IntervalLoss:
        """Return the loss of some of the stacked bands, in the order given."""
        if self.tau.ndim == 0:
            return self
        some = copy.copy(self)
        some._buffers = {"tau": self.tau[list(members)]}
        return some

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"tau={self.tau.tolist()}, power={self.power}, point={self.point!r}"


def _pinball(level: float | Tensor, residual: Tensor) -> Tensor:
    return torch.maximum(level * residual, (level - 1) * residual)
