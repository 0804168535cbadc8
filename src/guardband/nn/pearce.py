"""The loss of high-quality intervals (Pearce, Zaki, Brintrup & Neely, 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from guardband.nn.member_loss import MemberLoss, over_rows, weighted_mean


class PearceLoss(MemberLoss):
    """Captured width plus a penalty for too little coverage, ``(..., n, 2), (..., n) -> (...)``.

    sum k_i (u_i - l_i) / sum k_i + penalty n / (tau (1 - tau)) max(0, 1 - tau - mean s_i)^2 for lower and
    upper bounds, where k_i says whether y_i is captured and s_i = sigmoid(softness (y_i - l_i))
    sigmoid(softness (u_i - y_i)) is its soft form (their equations 9 to 15). It judges a batch as a whole:
    no mean over rows has these minimisers, and ``rows`` is a row's width where captured.

    Parameters
    ----------
    tau : float or sequence of float
        One minus the coverage that the bounds aim at.
    softness : float or sequence of float, default 160.0
        How steep the smooth form of "inside" is.
    penalty : float or sequence of float, default 15.0
        How much too little coverage costs.
    """

    per_member = ("tau", "softness", "penalty")
    columns = 2
    of_a_batch = True
    tau: Tensor
    softness: Tensor
    penalty: Tensor

    def __init__(
        self,
        tau: float | Sequence[float],
        softness: float | Sequence[float] = 160.0,
        penalty: float | Sequence[float] = 15.0,
    ) -> None:
        super().__init__()
        self._set_per_member(tau=tau, softness=softness, penalty=penalty)
        if not bool(((self.tau > 0) & (self.tau < 1)).all()):
            raise ValueError(f"tau must lie strictly between 0 and 1, found {tau}.")
        if not bool(((self.softness > 0) & (self.penalty > 0)).all()):
            raise ValueError(f"softness and penalty must be positive, found {softness} and {penalty}.")

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return every row's width where it captures y, else zero, ``(..., n, 2), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        lower, upper = outputs.unbind(-1)
        return (upper - lower) * ((lower <= y) & (y <= upper))

    def forward(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the loss of the batch; rows count by their weights ``(..., n)`` where these are given."""
        width = self.rows(outputs, y)
        lower, upper = outputs.unbind(-1)
        captured = weighted_mean(((lower <= y) & (y <= upper)).to(outputs.dtype), weight)
        softness = over_rows(self.softness)
        soft = weighted_mean(torch.sigmoid(softness * (y - lower)) * torch.sigmoid(softness * (upper - y)), weight)
        n = outputs.shape[-2]
        shortfall = (1 - self.tau - soft).clamp(min=0).square()
        penalty = self.penalty * n / (self.tau * (1 - self.tau)) * shortfall
        return weighted_mean(width, weight) / captured.clamp(min=1e-3 / n) + penalty

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"tau={self.tau.tolist()}, softness={self.softness.tolist()}, penalty={self.penalty.tolist()}"
