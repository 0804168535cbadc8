"""Training by several processes, each with its own rows: their gradients and losses are added up at every step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from guardband.training.batches import Batch


class Stream(ABC):
    """Rows that come from elsewhere, with a weight for each member: a copy does not train on its own fold.

    All processes have equally many steps in an epoch.
    """

    @abstractmethod
    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield for each step of an epoch the tensors that make its batch."""

    @abstractmethod
    def batch(self, *pieces: Tensor) -> Batch:
        """Return the batch, with weights ``(M, n)``."""

    @abstractmethod
    def steps(self) -> int:
        """Return the number of steps in an epoch."""

    @abstractmethod
    def take(self, members: Sequence[int]) -> Stream:
        """Return the same rows for some of the members."""

    @abstractmethod
    def example(self) -> Tensor:
        """Return two rows as networks see them."""


class Together(ABC):
    """The processes that train the same members."""

    @abstractmethod
    def added(self, numbers: Tensor) -> Tensor:
        """Return the sum over all processes, which may take the place of the numbers."""

    def gradients(self, own: list[Tensor], batch: Batch) -> list[Tensor]:
        """Return the gradients of the mean over the rows of all processes, in place of a process's own."""
        assert batch.weight is not None
        mass = batch.weight.sum(-1)
        flat = torch.cat([mass, *(_times(g, mass).flatten() for g in own)])
        flat = self.added(flat)
        total, first = flat[: len(mass)].clamp_min(torch.finfo(flat.dtype).tiny), len(mass)
        for g in own:
            g.copy_(_times(flat[first : first + g.numel()].view_as(g), 1 / total))
            first += g.numel()
        return own


def _times(gradient: Tensor, factor: Tensor) -> Tensor:
    """Return a gradient ``(M, ...)`` times a number for each member; a member without rows has none."""
    factor = factor.view(-1, *([1] * (gradient.ndim - 1)))
    return torch.where(factor > 0, gradient * factor, 0.0)
