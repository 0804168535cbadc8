"""Networks for tables with a backward pass by hand: on a CPU a step on a few rows takes half of the time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from guardband.nn.mixed import LossFunction
from guardband.nn.tabular import ByteDropout, TabularNetwork, differ_in_numbers_alone
from guardband.training.adam import views
from guardband.training.batches import Batch
from guardband.training.by_hand import Dropout, Hidden, Linear, Parameter, Values
from guardband.training.output_gradient import OutputGradient
from guardband.training.stack import Stack, hold
from guardband.training.tabular_inputs import TabularInputs
from guardband.training.workspace import Workspace


def can_go_by_hand(networks: Sequence[nn.Module]) -> bool:
    """Whether ``Tabular`` can train these networks: on a GPU a captured step has no calls to save."""
    trained = all(p.requires_grad and p.device.type == "cpu" for p in networks[0].parameters())
    return trained and differ_in_numbers_alone(networks)


class Tabular(Stack):
    """Networks for tables on a CPU, stacked, with all parameters in one vector.

    They run and are differentiated by hand, with products in the precision of ``work``, by default the parameters'.
    """

    def __init__(self, networks: Sequence[nn.Module], work: torch.dtype | None = None) -> None:
        super().__init__(networks)
        assert isinstance(self._skeleton, TabularNetwork)
        self._network = self._skeleton
        every = list(self._parameters.values())
        flat = torch.cat([p.detach().flatten() for p in every])
        self._flat = flat, torch.zeros_like(flat)
        self._work = flat.to(flat.dtype if work is None else work)
        self._trained, self._gradients, in_work = (views(vector, every) for vector in (*self._flat, self._work))
        self._parameters = dict(zip(self._parameters, self._trained, strict=True))
        hold(self._network, self._parameters, self._buffers)
        parts = zip(self._parameters, self._trained, in_work, self._gradients, strict=True)
        self._by_name = {name: Parameter(*part) for name, *part in parts}
        self._space = Workspace()
        self._passes: dict[int, _Pass] = {}
        _, self._end = _last_linear(self._network)
        self._output_gradient = OutputGradient(self._end)

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs, ``(G, n, d) -> (M, n, C)``."""
        outputs: Tensor = self._end(self._forward(x).mT.clone())
        return outputs

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return self._trained

    def flat(self) -> tuple[Tensor, Tensor]:
        """Return all parameters and all gradients, each as one vector."""
        return self._flat

    @torch.no_grad()
    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, in buffers that the next call overwrites."""
        z = self._forward(batch.x)
        self._passes[z.shape[2]].backward(self._output_gradient(z, batch, loss))
        return self._gradients

    def _forward(self, x: Tensor) -> Tensor:
        """Return what the last linear layers put out, ``(G, n, d) -> (M, C, n)``, in a buffer."""
        n = x.shape[1]
        if n not in self._passes:
            self._passes[n] = _Pass(self._network, self._by_name, n, self._space)
        if self._work is not self._flat[0]:
            self._work.copy_(self._flat[0])
        return self._passes[n].forward(self._for_each(x))


class _Pass:
    """The way of n rows through the networks and back."""

    def __init__(self, network: TabularNetwork, parameters: dict[str, Parameter], n: int, space: Workspace) -> None:
        self._network, self._inputs = network, TabularInputs(network, parameters, n, space)
        last, _ = _last_linear(network)
        layers = [*(f"layers.{i}" for i in range(len(network.layers))), last]
        weights = [parameters[f"{name}.weight"] for name in layers]
        values = [
            Values.room(name, weight.value.shape[1], n, weight, space)
            for name, weight in zip(layers, weights, strict=True)
        ]
        linear = [
            Linear(weight, parameters[f"{name}.bias"], below, above, name, space)
            for name, weight, below, above in zip(layers, weights, [self._inputs.scaled, *values], values, strict=False)
        ]
        *hidden, self._slope = values
        self._hidden = [Hidden(own, network.activation, above) for own, above in zip(linear, hidden, strict=False)]
        self._last = linear[-1]
        dropout = network.dropout
        self._dropout = Dropout(dropout, hidden, space) if hidden and isinstance(dropout, ByteDropout) else None
        self._kept: Sequence[Tensor | None] = [None] * len(hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the last linear layer puts out, ``(M or 1, n, d) -> (M, C, n)``."""
        if self._dropout is not None:
            self._kept = self._dropout.draw() if self._network.training else [None] * len(self._hidden)
        self._inputs.forward(x)
        for layer, kept in zip(self._hidden, self._kept, strict=True):
            layer.forward(kept)
        self._last.forward()
        return self._last.out

    def backward(self, slope: Tensor) -> None:
        """Compute the gradients of all parameters from that of the last outputs, ``(M, C, n)``."""
        self._slope.full.copy_(slope)
        self._last.backward()
        for layer, kept in zip(reversed(self._hidden), reversed(self._kept), strict=True):
            layer.backward(kept)
        self._inputs.backward()


def _last_linear(network: TabularNetwork) -> tuple[str, nn.Module]:
    """Return the name of a network's last linear layer and what follows it."""
    children = list(network.last.named_children())
    if not children:
        return "last", nn.Identity()
    (name, _), (_, end) = children
    return f"last.{name}", end
