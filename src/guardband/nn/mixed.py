"""Members with losses of different kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from guardband.nn.member_loss import MemberLoss

LossFunction = Callable[..., Tensor]
"""``(M, n, C), (M, n) or (n,) and perhaps weights (M, n) -> (M,)``."""


class MixedLoss:
    """One loss for networks that each have their own: members of a kind are computed together."""

    def __init__(self, losses: Sequence[LossFunction]) -> None:
        self._losses = tuple(losses)
        kinds: dict[object, list[int]] = {}
        for i, loss in enumerate(losses):
            kinds.setdefault(loss.kind() if isinstance(loss, MemberLoss) else id(loss), []).append(i)
        self._parts = [(members, _together([losses[i] for i in members])) for members in kinds.values()]
        order = [i for members, _ in self._parts for i in members]
        self._back = [order.index(i) for i in range(len(losses))]

    def __call__(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return each member's loss, ``(M, n, C), (M, n) or (n,) -> (M,)``."""
        every = [
            loss(outputs[members], *(t[members] if t.ndim == 2 else t for t in (y, weight) if t is not None))
            for members, loss in self._parts
        ]
        return torch.cat(every)[self._back]

    def take(self, members: Sequence[int]) -> LossFunction:
        """Return the loss of some members, in the order given."""
        return stack_losses([self._losses[i] for i in members])

    def to(self, device: torch.device) -> MixedLoss:
        """Return the loss on a device."""
        return MixedLoss([loss.to(device) if isinstance(loss, MemberLoss) else loss for loss in self._losses])


def stack_losses(losses: Sequence[LossFunction]) -> LossFunction:
    """Return one loss for as many members: one of its kind where all are of one kind, else a mixture."""
    mixed = MixedLoss(losses)
    return mixed._parts[0][1] if len(mixed._parts) == 1 else mixed


def take_losses(loss: LossFunction, members: Sequence[int]) -> LossFunction:
    """Return the loss of some members; a function that knows no members serves them all."""
    return loss.take(members) if isinstance(loss, MemberLoss | MixedLoss) else loss


def _together(losses: Sequence[LossFunction]) -> LossFunction:
    first = losses[0]
    return first.together(losses) if isinstance(first, MemberLoss) else first
