"""The interval loss (paper, section 1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from guardband.nn.member_loss import MemberLoss, over_rows

Point = Literal["median", "mean"]


class IntervalLoss(MemberLoss):
    """The loss of intervals at level tau, ``(..., n, 3), (..., n) -> (...)``: a mean over rows.

    h_{tau/2}(y - lower) + h_{1/2}(y - point) + h_{1 - tau/2}(y - upper), where h_t(r) = max(t r, (t - 1) r).
    Its minimisers are the conditional quantiles, and it equals 1.5 times the weighted interval score at
    alpha = tau. Several taus, ``(K,)``, give each of K stacked networks ``(K, n, 3)`` its own level.

    With ``below`` the two tails differ: the lower bound learns the quantile ``below``, the upper the quantile
    ``1 - (tau - below)``.

    ``power=2`` squares all three terms: the paper's squared form. Its minimisers are expectiles, which lie
    further out than the quantiles: at tau = 0.1, 2.13 standard deviations for a Gaussian instead of 1.645.
    ``point="mean"`` squares the middle term alone: the prediction then estimates the conditional mean.

    Parameters
    ----------
    tau : float or sequence of float
        The level of the bounds: the quantiles ``tau / 2`` and ``1 - tau / 2``. A sequence gives each of several
        stacked networks its own.
    power : {1, 2}, default 1
        The power of the loss. 1 learns quantiles; 2 squares all terms, as in the paper's second form, and
        learns expectiles.
    point : {"median", "mean"}, default "median"
        What the prediction estimates. "mean" squares its term of the loss.
    below : float or sequence of float, default None
        How much of tau lies below the lower bound. None means half. Set it if the tails have different promises.

    Examples
    --------
    >>> bands, y = torch.tensor([[-1.0, 0.0, 1.0]]), torch.tensor([2.0])
    >>> round(IntervalLoss(tau=0.1)(bands, y).item(), 4)
    2.1
    """

    per_member = ("tau", "below")
    columns = 3
    tau: Tensor
    below: Tensor

    def __init__(
        self,
        tau: float | Sequence[float],
        power: Literal[1, 2] = 1,
        point: Point = "median",
        below: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        half: list[float] = (torch.as_tensor(tau, dtype=torch.float32) / 2).tolist()
        self._set_per_member(tau=tau, below=half if below is None else below)
        if not bool(((self.tau > 0) & (self.tau < 1)).all()):
            raise ValueError(f"tau must lie strictly between 0 and 1, found {tau}.")
        if not bool(((self.below > 0) & (self.below < self.tau)).all()):
            raise ValueError(f"below must lie strictly between 0 and tau, found {below}.")
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, found {power}.")
        if point not in ("median", "mean"):
            raise ValueError(f'point must be "median" or "mean", found {point!r}.')
        self.power = power
        self.point = point

    @property
    def above(self) -> Tensor:
        """How much of tau lies above the upper bound."""
        return self.tau - self.below

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 3), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        # cloned, since what was made in inference mode could not be kept for the gradient
        share_below, share_above = (over_rows(tail.clone()).to(outputs.dtype) for tail in (self.below, self.above))
        below, middle, above = (y.unsqueeze(-1) - outputs).unbind(-1)
        low, mid, high = _pinball(share_below, below), _pinball(0.5, middle), _pinball(1 - share_above, above)
        if self.power == 2:
            return low.square() + mid.square() + high.square()
        return low + (mid.square() if self.point == "mean" else mid) + high

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        below = "" if torch.equal(self.below, self.tau / 2) else f", below={self.below.tolist()}"
        return f"tau={self.tau.tolist()}, power={self.power}, point={self.point!r}{below}"


def _pinball(level: float | Tensor, residual: Tensor) -> Tensor:
    return torch.maximum(level * residual, (level - 1) * residual)
