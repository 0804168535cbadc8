"""The gradient of the losses of several targets, by hand: that of one target, for each."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Gradient(Protocol):
    """The gradient of each member's mean loss with respect to its raw outputs."""

    def __call__(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the gradient ``(M, C, n)`` for raw outputs ``(M, C, n)``, responses and weights ``(M, n)``."""


class EachGradient:
    """The same for q targets: raw outputs ``(M, q C, n)`` and responses ``(M, n, q)``, NaN for a missing one."""

    def __init__(self, base: Gradient) -> None:
        self._base = base

    def __call__(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the gradient, zero for the outputs of a target that is missing."""
        parts = z.reshape(len(z), y.shape[-1], -1, z.shape[-1]).unbind(1)
        every = [self._of_target(part, own, weight) for part, own in zip(parts, y.unbind(-1), strict=True)]
        return torch.cat(every, dim=1)

    def _of_target(self, z: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        known = ~y.isnan()
        return self._base(z, y.nan_to_num(), weight).mul_(known[:, None])
