"""Muon (Jordan et al., 2024) for matrices between hidden units of stacked networks, Adam for all else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from guardband.training.adam import Adam, along

MOMENTUM = 0.95
POLYNOMIALS = ((7.711, -22.1138, 16.2487), (3.2153, -2.4112, 0.5013), (2.2183, -1.594, 0.4107))
"""Coefficients of x, x^3 and x^5: one after another these bring singular values from 0.02 to 1 within 0.1 of 1.

Each is the best of its degree for what the one before leaves, as Amsel et al. (2025), "The Polar Express", propose.
"""


class Muon:
    """Steps of stacked parameters ``(M, ...)``; what it does to one member does not depend on the others.

    A matrix moves by its momentum with all singular values brought close to 1, so that no direction is learnt slowly.
    """

    def __init__(self, parameters: Sequence[Tensor], hidden: Sequence[int], ratio: float, *, half: bool) -> None:
        """``hidden`` are the positions of matrices ``(M, a, b)``; their rate is Adam's times ``ratio``.

        ``half`` multiplies them in 16 bits, which their directions need no more than those of gradients.
        """
        self._matrices = [parameters[i] for i in hidden]
        self._hidden, self._ratio, self._half = list(hidden), ratio, half
        self._rest = [i for i in range(len(parameters)) if i not in self._hidden]
        self._adam = Adam([parameters[i] for i in self._rest])
        self._momentum = [torch.zeros_like(p) for p in self._matrices]

    @torch.no_grad()
    def step(self, gradients: list[Tensor], coefficients: Tensor) -> None:
        """Step once with ``coefficients`` of this step, ``(3,)`` for all members or ``(3, M)`` for each its own."""
        self._adam.step([gradients[i] for i in self._rest], coefficients)
        own, rate = [gradients[i] for i in self._hidden], coefficients[2] * self._ratio
        for momentum, g in zip(self._momentum, own, strict=True):
            momentum.lerp_(g, 1 - MOMENTUM)
        ahead = [torch.lerp(g, momentum, MOMENTUM) for momentum, g in zip(self._momentum, own, strict=True)]
        for p, turned in zip(self._matrices, orthogonal_each(ahead, half=self._half), strict=True):
            p.sub_(turned * along(rate * math.sqrt(max(1, p.shape[-2] / p.shape[-1])), p))

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the moments by the names that Adam's have; the second ones of matrices stay zero."""
        own = self._adam.state()
        out = {f"{name}.{i}": own[f"{name}.{k}"] for name in ("first", "second") for k, i in enumerate(self._rest)}
        for i, momentum in zip(self._hidden, self._momentum, strict=True):
            out |= {f"first.{i}": momentum.clone(), f"second.{i}": torch.zeros_like(momentum)}
        return out

    def load(self, state: dict[str, Tensor]) -> None:
        """Set the moments."""
        for i, momentum in zip(self._hidden, self._momentum, strict=True):
            momentum.copy_(state[f"first.{i}"])
        rest = {f"{name}.{k}": state[f"{name}.{i}"] for name in ("first", "second") for k, i in enumerate(self._rest)}
        self._adam.load(rest)


def orthogonal_each(matrices: Sequence[Tensor], *, half: bool) -> list[Tensor]:
    """Return the matrices ``(M, a, b)`` with singular values close to 1: those of one shape by the same products."""
    out: dict[int, Tensor] = {}
    for shape in dict.fromkeys(t.shape for t in matrices):
        which = [i for i, t in enumerate(matrices) if t.shape == shape]
        together = torch.cat([matrices[i] for i in which])
        out |= zip(which, torch.split(orthogonal(together, half=half), shape[0]), strict=True)
    return [out[i] for i in range(len(matrices))]


def orthogonal(matrices: Tensor, *, half: bool = False) -> Tensor:
    """Return matrices ``(N, a, b)`` with singular values close to 1, by products in 16 bits if asked for."""
    x = matrices / matrices.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None]
    x = x.bfloat16() if half else x
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    for a, b, c in POLYNOMIALS:
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    turned: Tensor = x if wide else x.mT
    return turned.to(matrices.dtype)
