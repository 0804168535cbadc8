"""The interval loss (paper, section 1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from guardband.nn.member_loss import MemberLoss, over_rows

Point = Literal["median", "mean"]


class IntervalLoss(MemberLoss):
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

    per_member = ("tau",)
    columns = 3
    tau: Tensor

    def __init__(self, tau: float | Sequence[float], power: Literal[1, 2] = 1, point: Point = "median") -> None:
        super().__init__()
        self._set_per_member(tau=tau)
        if not bool(((self.tau > 0) & (self.tau < 1)).all()):
            raise ValueError(f"tau must lie strictly between 0 and 1, found {tau}.")
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, found {power}.")
        if point not in ("median", "mean"):
            raise ValueError(f'point must be "median" or "mean", found {point!r}.')
        self.power = power
        self.point = point

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 3), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        half = over_rows(self.tau / 2).to(outputs.dtype)
        below, middle, above = (y.unsqueeze(-1) - outputs).unbind(-1)
        low, mid, high = _pinball(half, below), _pinball(0.5, middle), _pinball(1 - half, above)
        if self.power == 2:
            return low.square() + mid.square() + high.square()
        return low + (mid.square() if self.point == "mean" else mid) + high

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"tau={self.tau.tolist()}, power={self.power}, point={self.point!r}"


def _pinball(level: float | Tensor, residual: Tensor) -> Tensor:
    return torch.maximum(level * residual, (level - 1) * residual)
