"""What every loss here can do: serve one network or many at once, be picked apart and put together."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

Loss = TypeVar("Loss", bound="MemberLoss")


class MemberLoss(nn.Module):
    """A loss of outputs and responses, ``(..., n, C), (..., n) -> (...)``, which reduces the last axis alone.

    Each of ``per_member`` is a buffer: one number for all networks, or ``(M,)`` to give each of M networks
    with outputs ``(M, n, C)`` its own.
    """

    per_member: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[int]
    of_a_batch: ClassVar[bool] = False
    """Whether it judges a batch as a whole, so that batches of other sizes are judged otherwise."""

    @abstractmethod
    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, C), (..., n) -> (..., n)``.

        Parameters
        ----------
        outputs : tensor of shape (..., n, columns)
            What the network puts out.
        y : tensor of shape (..., n)
            The targets.
        """

    def forward(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the mean over rows, weighted by ``(..., n)`` where weights are given."""
        return weighted_mean(self.rows(outputs, y), weight)

    def kind(self) -> object:
        """Return what must be equal for two losses to be put together: the class and its plain settings."""
        settings = {name: value for name, value in vars(self).items() if name[0] != "_" and name != "training"}
        return type(self), repr(sorted(settings.items()))

    def take(self: Loss, members: Sequence[int]) -> Loss:
        """Return the loss of some of the networks, in the order given.

        Parameters
        ----------
        members : sequence of int
            The positions of the networks.
        """
        some = copy.copy(self)
        own = {name: getattr(self, name) for name in self.per_member}
        taken = {name: value[list(members)] if value.ndim else value for name, value in own.items()}
        some._buffers = self._buffers | taken
        return some

    def together(self: Loss, others: Sequence[Loss]) -> Loss:
        """Return one loss for several networks: of this kind, with the numbers of each of the others.

        Parameters
        ----------
        others : sequence of losses
            The losses of further networks, of the same class.
        """
        one = copy.copy(self)
        one._buffers = self._buffers | {
            name: torch.stack([getattr(other, name).reshape(()) for other in others]) for name in self.per_member
        }
        return one

    def _set_per_member(self, **values: float | Sequence[float]) -> None:
        tensors = {name: torch.as_tensor(value, dtype=torch.float32) for name, value in values.items()}
        size = max(t.numel() for t in tensors.values())
        for name, t in tensors.items():
            if t.ndim > 1 or t.numel() not in (1, size) or not size:
                raise ValueError(f"{name} must be a number or one number per network, found {values[name]}.")
            one_for_all = all(own.ndim == 0 for own in tensors.values())
            self.register_buffer(name, t if one_for_all else t.expand(size).clone(), persistent=False)

    def _check_shapes(self, outputs: Tensor, y: Tensor) -> None:
        if outputs.shape[-1] != self.columns or y.ndim >= outputs.ndim or y.shape[-1:] != outputs.shape[-2:-1]:
            raise ValueError(
                f"{type(self).__name__} needs outputs of shape (..., n, {self.columns}) and y of shape (..., n), "
                f"found {tuple(outputs.shape)} and {tuple(y.shape)}."
            )


def over_rows(per_member: Tensor) -> Tensor:
    """Return a setting so that it broadcasts over rows, ``() or (M,) -> () or (M, 1)``."""
    return per_member[:, None] if per_member.ndim else per_member


def weighted_mean(rows: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over the last axis, ``(..., n) -> (...)``; rows that all weigh nothing give zero."""
    if weight is None:
        return rows.mean(-1)
    return (rows * weight).sum(-1) / weight.sum(-1).clamp(min=torch.finfo(rows.dtype).tiny)
