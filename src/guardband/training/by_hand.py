"""Layers of stacked networks, forward and backward by hand, in memory that is allocated once.

Autograd calls into torch four times as often, and what it allocates on the way is cold in the cache; on a small table
that is half of a step (docs/log.md has the figures). Rows are the last axis. All tensors stay where they are, so that
a layer knows from the start what it multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from guardband.nn.keyed import counters, hashed
from guardband.nn.tabular import ByteDropout
from guardband.training.workspace import Workspace


@dataclass(frozen=True)
class Parameter:
    """A parameter ``(M, ...)``, the same in the precision of products, and its gradient."""

    value: Tensor
    work: Tensor
    gradient: Tensor


@dataclass(frozen=True)
class Values:
    """What passes between layers, ``(M, units, n)``, and the same in the precision of products.

    On the way back its gradient takes its place, once the layer above has used it.
    """

    full: Tensor
    work: Tensor

    @classmethod
    def room(cls, name: str, units: int, n: int, weight: Parameter, space: Workspace) -> Values:
        """Return room for the values of so many units and n rows, of the kinds of numbers that a parameter has."""
        shape = (len(weight.value), units, n)
        full = space.like(name, shape, weight.value)
        is_same = weight.work.dtype == weight.value.dtype
        return cls(full, full if is_same else space.like(f"{name} to multiply", shape, weight.work))

    def cast(self) -> None:
        """Get them ready to be multiplied."""
        if self.work is not self.full:
            self.work.copy_(self.full)


class Product:
    """A product of stacked matrices that stay where they are, in the result's precision."""

    def __init__(self, a: Tensor, b: Tensor, out: Tensor, space: Workspace) -> None:
        self._factors, self._out = (a, b), out
        self._room = out if out.dtype == a.dtype else space.like("product", out.shape, a)

    def __call__(self) -> None:
        """Compute it."""
        torch.bmm(*self._factors, out=self._room)
        if self._room is not self._out:
            self._out.copy_(self._room)


class Linear:
    """A linear layer between values."""

    def __init__(
        self, weight: Parameter, bias: Parameter, below: Values, above: Values, name: str, space: Workspace
    ) -> None:
        self._below, self._above = below, above
        self._bias, self._bias_gradient = bias.value.unsqueeze(-1), bias.gradient
        self.out = space.like(f"{name} linear", above.full.shape, above.full)
        self._output = Product(weight.work, below.work, self.out, space)
        self._weight_gradient = Product(above.work, below.work.mT, weight.gradient, space)
        self._passed = Product(weight.work.mT, above.work, below.full, space)

    def forward(self) -> None:
        """Compute the output of the values below."""
        self._below.cast()
        self._output()
        self.out.add_(self._bias)

    def backward(self) -> None:
        """Compute the gradients of the parameters and of the values below, from the output's in the values above."""
        torch.sum(self._above.full, -1, out=self._bias_gradient)
        self._above.cast()
        self._weight_gradient()
        self._passed()


class Hidden:
    """A linear layer, the activation, and dropout if there is any; activations other than SiLU go by autograd."""

    def __init__(self, linear: Linear, activation: nn.Module, above: Values) -> None:
        self._linear, self._activation, self._above = linear, activation, above.full
        self._is_silu = type(activation) is nn.SiLU
        self._tape: tuple[Tensor, Tensor] | None = None

    def forward(self, kept: Tensor | None) -> None:
        """Compute the values above; ``kept`` is what dropout multiplies them by."""
        self._linear.forward()
        if self._is_silu:
            torch.ops.aten.silu.out(self._linear.out, out=self._above)
        else:
            with torch.enable_grad():
                before = self._linear.out.detach().requires_grad_()
                self._tape = before, self._activation(before)
            self._above.copy_(self._tape[1].detach())
        if kept is not None:
            self._above.mul_(kept)

    def backward(self, kept: Tensor | None) -> None:
        """Compute the gradients of the parameters and of the values below, from that of the values above."""
        if kept is not None:
            self._above.mul_(kept)
        if self._tape is None:
            torch.ops.aten.silu_backward.grad_input(self._above, self._linear.out, grad_input=self._above)
        else:
            before, after = self._tape
            self._above.copy_(torch.autograd.grad(after, before, self._above)[0])
        self._linear.backward()


class Dropout:
    """What ``ByteDropout`` multiplies each layer's values by, drawn for all layers at once."""

    def __init__(self, module: ByteDropout, layers: Sequence[Values], space: Workspace) -> None:
        self._module = module
        sizes = [values.full[0].numel() for values in layers]
        words = [-(-size // 4) for size in sizes]
        streams = [counters((module.number << 32) + i, own, layers[0].full.device) for i, own in enumerate(words, 1)]
        self._numbers, self._high = (torch.cat(same) for same in zip(*streams, strict=True))
        first = layers[0].full
        self._kept = space.like("kept", (len(first), 4 * sum(words)), first)
        parts = torch.split(self._kept, [4 * own for own in words], dim=1)
        self._layers = [
            part[:, :size].view(values.full.shape) for part, size, values in zip(parts, sizes, layers, strict=True)
        ]

    def draw(self) -> Sequence[Tensor]:
        """Return the factors of this step, one tensor for each layer."""
        assert self._module.key is not None
        keep = self._module.keep[..., None]
        drawn = hashed(self._module.key, self._numbers, self._high).view(torch.uint8)
        # In place, since a comparison into another kind of number is a dozen times slower.
        self._kept.copy_(drawn.le_((keep - 1).to(torch.uint8))).mul_(256 / keep)
        return self._layers
