"""The gradient of the interval loss through the ordering, by hand: a dozen small operations instead of fifty."""

from __future__ import annotations

import torch
from torch import Tensor

from guardband.nn.loss import IntervalLoss
from guardband.nn.ordering import Ordering


class IntervalGradient:
    """The gradient of each member's mean loss with respect to its raw outputs.

    A band's slopes are [r < 0] - t for the residual r = y - q of the t-quantile q, and -2 r ([r < 0] - t)^2
    where its term is squared; the ordering's chain rule does the rest.
    """

    def __init__(self, loss: IntervalLoss, ordering: Ordering) -> None:
        self._squared = [loss.power == 2, loss.power == 2 or loss.point == "mean", loss.power == 2]
        self._ordering = ordering
        below, above = loss.below.reshape(-1, 1), loss.above.reshape(-1, 1)
        self._level = torch.stack([below, torch.full_like(below, 0.5), 1 - above], dim=1)

    def __call__(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the gradient ``(M, 3, n)`` for raw outputs ``(M, 3, n)``, responses and weights ``(M, n)``."""
        if self._ordering == "softplus":
            return self._softplus(z, y, weight)
        return self._relu(z, y, weight)

    def _softplus(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        outer, residual = z[:, ::2], torch.empty_like(z)
        width = torch.nn.functional.softplus(outer)
        torch.sub(y, z[:, 1], out=residual[:, 1])
        torch.add(residual[:, 1], width[:, 0], out=residual[:, 0])
        torch.sub(residual[:, 1], width[:, 1], out=residual[:, 2])
        slope, gradient = self._slope(residual, weight), torch.empty_like(z)
        torch.sum(slope, dim=1, out=gradient[:, 1])
        torch.mul(slope[:, ::2], torch.sigmoid(outer), out=gradient[:, ::2])
        gradient[:, 0].neg_()
        return gradient

    def _relu(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        band = z.cummax(dim=1).values
        lower, point, upper = self._slope(y[:, None] - band, weight).unbind(1)
        raised, widened = z[:, 1] > z[:, 0], z[:, 2] > band[:, 1]
        point = point + upper * ~widened
        return torch.stack([lower + point * ~raised, point * raised, upper * widened], dim=1)

    def _slope(self, residual: Tensor, weight: Tensor | None) -> Tensor:
        """Return the gradient with respect to the band, ``(M, 3, n)``."""
        share = 1 / residual.shape[-1]
        slope = torch.where(residual < 0, (1 - self._level) * share, -self._level * share)
        for i, squared in enumerate(self._squared):
            if squared:
                slope[:, i] *= slope[:, i] * residual[:, i] * (-2 / share)
        if weight is not None:
            tiny = torch.finfo(weight.dtype).tiny
            slope *= (weight / (weight.sum(-1, keepdim=True).clamp(min=tiny) * share))[:, None]
        return slope
