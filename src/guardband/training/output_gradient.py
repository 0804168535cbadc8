"""The gradient of a loss with respect to what the last linear layer puts out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from guardband.nn.each_gradient import EachGradient, Gradient
from guardband.nn.each_target import EachOrder, EachTargetLoss
from guardband.nn.interval_gradient import IntervalGradient
from guardband.nn.loss import IntervalLoss
from guardband.nn.mixed import LossFunction
from guardband.nn.ordering import OrderedTriple
from guardband.nn.quantile_gradient import QuantileGradient
from guardband.nn.quantiles import OrderedQuantiles, QuantileLoss
from guardband.training.batches import Batch
from guardband.training.members import member_losses


class OutputGradient:
    """By hand for intervals and for quantiles, by autograd for all else.

    ``end`` is what follows the last linear layer, ``(..., C) -> (..., C)``.
    """

    def __init__(self, end: nn.Module) -> None:
        self._end = end
        self._by_hand: tuple[LossFunction, Gradient | None] | None = None

    def __call__(self, z: Tensor, batch: Batch, loss: LossFunction) -> Tensor:
        """Return the gradient with respect to the raw outputs, ``(M, C, n)`` as they are."""
        if self._by_hand is None or self._by_hand[0] is not loss:
            self._by_hand = loss, self._gradient_of(loss, self._end)
        gradient = self._by_hand[1]
        if gradient is not None:
            return gradient(z, batch.y, batch.weight)
        raw = z.mT.detach().requires_grad_()
        with torch.enable_grad():
            total = member_losses(self._end(raw), batch, loss).sum()
        return torch.autograd.grad(total, raw)[0].mT.contiguous()

    def _gradient_of(self, loss: LossFunction, end: nn.Module) -> Gradient | None:
        if type(loss) is EachTargetLoss and type(end) is EachOrder:
            of_one = self._gradient_of(loss.base, end.order)
            return None if of_one is None else EachGradient(of_one)
        if type(loss) is IntervalLoss and type(end) is OrderedTriple:
            return IntervalGradient(loss, end.ordering)
        if type(loss) is QuantileLoss and type(end) is OrderedQuantiles and loss.columns == end.columns:
            return QuantileGradient(loss, end)
        return None
