"""The gradient of the pinball losses of ordered quantiles, by hand: a dozen small operations instead of fifty."""

from __future__ import annotations

import torch
from torch import Tensor

from guardband.nn.quantiles import OrderedQuantiles, QuantileLoss


class QuantileGradient:
    """The gradient of each member's mean loss with respect to its raw outputs.

    Quantiles are sums of the middle output and of gaps, which are taken away below and added above. So they are a
    matrix times these, and its transpose takes the slopes [r < 0] - t for residuals r = y - q back to them.
    """

    def __init__(self, loss: QuantileLoss, order: OrderedQuantiles) -> None:
        self._middle, self._levels = order.middle, loss.levels[:, None]
        ones, i = loss.levels.new_ones(order.columns, order.columns), order.middle
        self._sums = torch.zeros_like(ones)
        self._sums[:i, :i], self._sums[i + 1 :, i + 1 :] = -ones[:i, :i].triu(), ones[i + 1 :, i + 1 :].tril()
        self._sums[:, i] = 1

    def __call__(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the gradient ``(M, Q, n)`` for raw outputs ``(M, Q, n)``, responses and weights ``(M, n)``."""
        sums = self._sums.expand(len(z), -1, -1)
        gaps = torch.nn.functional.softplus(z)
        gaps[:, self._middle] = z[:, self._middle]
        residual = torch.baddbmm(y[:, None], sums, gaps, alpha=-1)
        slope = residual.lt_(0).sub_(self._levels)
        if weight is None:
            slope /= z.shape[-1]
        else:
            slope *= (weight / weight.sum(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny))[:, None]
        through = torch.sigmoid(z)
        through[:, self._middle] = 1
        return torch.bmm(sums.mT, slope).mul_(through)
