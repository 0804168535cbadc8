"""Adam (Kingma & Ba, 2015) for members with learning rates of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
LEAST_RATE = 1e-30
CORRECTED = 1e9
"""A number of steps after which the corrections for the moments' start at zero are exactly one."""


class Adam:
    """Steps of stacked parameters ``(M, ...)``; what it does to one member does not depend on the others.

    ``torch.optim`` knows no rate per member. Its fused kernel does on the CPU in one pass over memory what takes
    six otherwise, where all members have one rate; on a GPU it starts too few blocks for one large tensor, and
    six passes are faster (docs/log.md).
    """

    def __init__(self, parameters: Sequence[Tensor], flat: tuple[Tensor, Tensor] | None = None) -> None:
        """``flat``: all parameters and all their gradients, each as one vector, where they lie so in memory."""
        self._parameters = list(parameters)
        self._first, self._second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        self._whole: tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]] | None = None
        if flat is not None:
            first, second = (torch.zeros_like(flat[0]) for _ in range(2))
            self._first, self._second = views(first, parameters), views(second, parameters)
            self._whole = [flat[0]], [flat[1]], [first], [second]
        self._corrected = [torch.full((), CORRECTED, device=p.device) for p in parameters]

    @torch.no_grad()
    def step(self, gradients: list[Tensor], coefficients: Tensor) -> None:
        """Step once with ``coefficients`` of this step, ``(3,)`` for all members or ``(3, M)`` for each its own."""
        scale, offset, _ = coefficients
        tensors = self._parameters, gradients, self._first, self._second
        if scale.ndim == 0 and self._whole is not None:
            tensors = self._whole
        fused = getattr(torch, "_fused_adam_", None)  # private: what follows does the same, only slower
        if fused is not None and scale.ndim == 0 and scale.device.type == "cpu":
            fused(
                *tensors,
                [],
                self._corrected[: len(tensors[0])],
                lr=1 / scale.item(),
                beta1=BETA1,
                beta2=BETA2,
                weight_decay=0.0,
                eps=(offset / scale).item(),
                amsgrad=False,
                maximize=False,
            )
            return
        for p, g, first, second in zip(*tensors, strict=True):
            first.lerp_(g, 1 - BETA1)
            second.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            p.addcdiv_(first, torch.addcmul(along(offset, p), second.sqrt(), along(scale, p)), value=-1)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the moments."""
        named = (("first", self._first), ("second", self._second))
        return {f"{name}.{i}": t.clone() for name, tensors in named for i, t in enumerate(tensors)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Set the moments."""
        for i, (first, second) in enumerate(zip(self._first, self._second, strict=True)):
            first.copy_(state[f"first.{i}"])
            second.copy_(state[f"second.{i}"])


def coefficients(rates: NDArray[np.float64], done: int) -> NDArray[np.float32]:
    """Return what the next steps need, ``(S, ...) -> (S, 3, ...)``, after ``done`` of them.

    The t-th step with rate r changes a parameter by -m / (a sqrt(v) + b): m and v are the moments,
    a = (1 - beta1^t) / (r c), b = epsilon a c and c = sqrt(1 - beta2^t), computed here in double precision. The rate
    itself comes last.
    """
    t = np.arange(done + 1, done + 1 + len(rates)).reshape(-1, *[1] * (rates.ndim - 1))
    corrected = np.sqrt(1 - BETA2**t)
    scale = (1 - BETA1**t) / (np.maximum(rates, LEAST_RATE) * corrected)
    return np.stack([scale, EPSILON * corrected * scale, rates], axis=1).astype(np.float32)


def views(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return parts of a vector in the shapes of these tensors, one after another."""
    parts = torch.split(flat, [t.numel() for t in like])
    return [part.view(t.shape) for part, t in zip(parts, like, strict=True)]


def lerp_each_(tensors: list[Tensor], towards: list[Tensor], weight: float) -> None:
    """Move each tensor a part of the way towards another: on a GPU all by one kernel, where torch has it."""
    together = getattr(torch, "_foreach_lerp_", None)
    if together is not None:
        together(tensors, towards, weight)
        return
    for t, other in zip(tensors, towards, strict=True):
        t.lerp_(other, weight)


def copy_each_(tensors: list[Tensor], sources: list[Tensor]) -> None:
    """Copy each source into its tensor, likewise."""
    together = getattr(torch, "_foreach_copy_", None)
    if together is not None:
        together(tensors, sources)
        return
    for t, source in zip(tensors, sources, strict=True):
        t.copy_(source)


def clip_(gradients: Sequence[Tensor], limit: Tensor) -> None:
    """Scale each member's gradient to a norm of at most its limit ``(M,)``, over all its parameters."""
    squares = torch.stack([g.float().square().flatten(1).sum(1) for g in gradients])
    scale = (limit / squares.sum(0).sqrt().clamp(min=1e-30)).clamp(max=1)
    scale = torch.where(limit.isinf(), 1.0, scale)  # also of a gradient that is infinite
    for g in gradients:
        g.mul_(along(scale, g))


def along(per_member: Tensor, like: Tensor) -> Tensor:
    """Return ``()`` or ``(M,)`` so that it broadcasts over a tensor ``(M, ...)``."""
    return per_member.reshape(-1, *[1] * (like.ndim - 1)).to(like.dtype)
