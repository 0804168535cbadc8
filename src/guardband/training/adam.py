"""Adam (Kingma & Ba, 2015) for members with learning rates, decay and clipping of their own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Steps of stacked parameters ``(M, ...)``; what it does to one member does not depend on the others.

    Where all members have one rate, torch's fused kernel does all in one pass over memory; ``torch.optim``
    around it takes longer in Python than the kernel, and knows no rate per member.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self._first = [torch.zeros_like(p) for p in parameters]
        self._second = [torch.zeros_like(p) for p in parameters]
        self._steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: Tensor) -> None:
        """Step once, with one learning rate ``()`` for all members or ``(M,)`` for each its own."""
        torch._foreach_add_(self._steps, 1)
        if rate.ndim == 0:
            torch._fused_adam_(
                self._parameters,
                gradients,
                self._first,
                self._second,
                [],
                self._steps,
                lr=rate,
                beta1=BETA1,
                beta2=BETA2,
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )
            return
        count = self._steps[0].double()
        first_mass, second_mass = 1 - BETA1**count, (1 - BETA2**count).sqrt()
        step_size = -(rate * second_mass / first_mass).float()
        epsilon = (EPSILON * second_mass).float()
        for p, g, first, second in zip(self._parameters, gradients, self._first, self._second, strict=True):
            first.lerp_(g, 1 - BETA1)
            second.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            p.addcmul_(first / second.sqrt().add_(epsilon), along(step_size, p).to(p.dtype))

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the moments and the number of steps."""
        moments = {
            f"{name}.{i}": t.clone()
            for name, tensors in (("first", self._first), ("second", self._second))
            for i, t in enumerate(tensors)
        }
        return moments | {"steps": self._steps[0].clone()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Set the moments and the number of steps."""
        for i, (first, second, steps) in enumerate(zip(self._first, self._second, self._steps, strict=True)):
            first.copy_(state[f"first.{i}"])
            second.copy_(state[f"second.{i}"])
            steps.copy_(state["steps"])


def clip_(gradients: Sequence[Tensor], limit: Tensor) -> None:
    """Scale each member's gradient to a norm of at most its limit ``(M,)``, over all its parameters."""
    squares = torch.stack([g.float().square().flatten(1).sum(1) for g in gradients])
    scale = (limit / squares.sum(0).sqrt().clamp(min=1e-30)).clamp(max=1)
    for g in gradients:
        g.mul_(along(scale, g))


def along(per_member: Tensor, like: Tensor) -> Tensor:
    """Return ``(M,)`` so that it broadcasts over a tensor ``(M, ...)``."""
    return per_member.reshape(-1, *[1] * (like.ndim - 1))
