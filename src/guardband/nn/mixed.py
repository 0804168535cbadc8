"""Members with losses of different kinds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from guardband.nn.member_loss import MemberLoss

LossFunction = Callable[..., Tensor]
"""``(M, n, C), (M, n) and, if rows have weights, (M, n) -> (M,)``, for any number of members."""


class MixedLoss:
    """One loss for networks that each have their own, on one device: members of a kind are computed together."""

    def __init__(self, losses: Sequence[LossFunction], device: torch.device) -> None:
        self._losses, self._device = tuple(losses), device
        kinds: dict[object, list[int]] = {}
        for i, loss in enumerate(losses):
            kinds.setdefault(loss.kind() if isinstance(loss, MemberLoss) else id(loss), []).append(i)
        self.parts = [
            (torch.tensor(members, device=device), _together([losses[i] for i in members]))
            for members in kinds.values()
        ]
        self.of_a_batch = any(isinstance(loss, MemberLoss) and loss.of_a_batch for loss in losses)
        self._back = torch.cat([members for members, _ in self.parts]).argsort()

    def __call__(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return each member's loss, ``(M, n, C), (M, n) -> (M,)``."""
        given = [t for t in (y, weight) if t is not None]
        every = [loss(outputs[members], *(t[members] for t in given)) for members, loss in self.parts]
        return torch.cat(every)[self._back]

    def __repr__(self) -> str:
        return f"MixedLoss({', '.join(map(describe, self._losses))})"

    def take(self, members: Sequence[int]) -> LossFunction:
        """Return the loss of some members, in the order given."""
        return stack_losses([self._losses[i] for i in members], self._device)


def describe(thing: object) -> str:
    """Return words for a loss or a schedule that are the same in another process: no memory addresses."""
    if isinstance(thing, functools.partial):
        return f"partial({describe(thing.func)}, {thing.args}, {thing.keywords})"
    if isinstance(thing, nn.Module | MixedLoss) or thing is None or isinstance(thing, str):
        return repr(thing)
    held = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    plain = [value for value in held if isinstance(value, int | float | str | tuple)]
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}{plain or ''}"


def stack_losses(losses: Sequence[LossFunction], device: torch.device) -> LossFunction:
    """Return one loss for as many members: one of its kind where all are of one kind, else a mixture."""
    mixed = MixedLoss(losses, device)
    return mixed.parts[0][1] if len(mixed.parts) == 1 else mixed


def take_losses(loss: LossFunction, members: Sequence[int]) -> LossFunction:
    """Return the loss of some members; a function that knows no members serves them all."""
    return loss.take(members) if isinstance(loss, MemberLoss | MixedLoss) else loss


def _together(losses: Sequence[LossFunction]) -> LossFunction:
    first = losses[0]
    if not isinstance(first, MemberLoss):
        return first
    return first.together([loss for loss in losses if isinstance(loss, MemberLoss)])
