"""The training loop: the only one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor

from guardband.training.batches import Batch
from guardband.training.stack import Members

AfterEpoch = Callable[[int], bool]


class RowLoss(Protocol):
    """A loss that can be asked for each row: ``(M, n, 3), (M, n) or (n,) -> (M, n)``."""

    def rows(self, bands: Tensor, y: Tensor, /) -> Tensor:
        """Return the loss of every row."""


def member_losses(members: Members, batch: Batch, loss: RowLoss) -> Tensor:
    """Return each member's weighted mean loss on a batch, ``(M,)``."""
    losses = loss.rows(members(batch.x, shared=batch.shared), batch.y)
    if batch.weight is None:
        return losses.mean(-1)
    return (losses * batch.weight).sum(-1) / batch.weight.sum(-1).clamp(min=torch.finfo(losses.dtype).tiny)


def train_loop(
    members: Members,
    batches: Iterable[Batch],
    loss: RowLoss,
    *,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
    after_epoch: AfterEpoch,
) -> None:
    """Train the members in place with Adam, until ``after_epoch`` says stop or the epochs are over.

    ``batches`` is iterated once per epoch. Decay is Adam's own (a term of the gradient)
    and applies to matrices, not to biases.
    """
    if not members.parameters():
        raise ValueError("A network must have parameters to train, found none.")
    optimiser = torch.optim.Adam(members.parameter_groups(weight_decay), lr=learning_rate, fused=True)
    for epoch in range(1, epochs + 1):
        members.train()
        for batch in batches:
            optimiser.zero_grad()
            torch.autograd.backward(member_losses(members, batch, loss).sum())
            optimiser.step()
        if after_epoch(epoch):
            break
