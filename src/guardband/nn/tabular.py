"""The network for tables: numbers embedded by cosines, categories by vectors, then layers.

Embeddings of numbers follow Gorishniy et al. (2022), "On embeddings for numerical features", in the shape that
Holzmüller et al. (2024), "Better by default", give them; the layer of scales, learnt faster, is the latter's as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from guardband.nn.each_target import EachTargetHead
from guardband.nn.fully_connected import ACTIVATIONS, check_layers
from guardband.nn.gaussian import GaussianHead
from guardband.nn.keyed import Keyed
from guardband.nn.ordering import TripleHead
from guardband.nn.quantiles import QuantileHead

MOST_WAVES, FEWEST_WAVES, ALL_WAVES = 16, 4, 1024
"""Waves of a number: so many, or as many as make no more than the last in all; with fewer than the second, none."""
WIDTH = 4
VECTOR = 8
"""The length of a category's vector."""
FREQUENCY = 0.8
"""The deviation of the embedding's frequencies, of which one makes a whole wave over one unit of a robust scale."""
FASTER = 6.0
"""How much faster the scales of the inputs are learnt than all else."""


class TabularNetwork(nn.Module):
    """``(..., n, d) -> (..., n, C)``: the first ``numbers`` of d columns are embedded, the others taken as they are.

    The last columns, one for each of ``sizes``, are places in a list of so many vectors, which are learnt.

    Every tensor gets its axis of rows where it is used, so that the same code runs on parameters stacked along a
    new first axis: M networks on ``(M, n, d)`` are one call, without ``torch.func``. Inside, rows are the last axis:
    then neither a product nor its gradients transpose anything, which halves the time of a step on a CPU.
    """

    broadcasts = True

    def __init__(
        self,
        in_features: int,
        numbers: int,
        sizes: Sequence[int],
        hidden: Sequence[int],
        activation: str,
        dropout: float,
        last: Callable[[int], nn.Module],
    ) -> None:
        super().__init__()
        check_layers(hidden, activation, dropout)
        self.numbers = numbers
        self.activation = ACTIVATIONS[activation]()
        waves = min(MOST_WAVES, ALL_WAVES // numbers) if numbers else 0
        self.embedding = Waves(numbers, waves) if waves >= FEWEST_WAVES else None
        self.vectors = nn.ModuleList(Vectors(size) for size in sizes)
        width = in_features + (0 if self.embedding is None else numbers * (WIDTH - 1)) + len(sizes) * (VECTOR - 1)
        self.scale = nn.Parameter(torch.zeros(width))
        self.layers = nn.ModuleList(RowsLast(a, b) for a, b in pairwise([width, *hidden]))
        self.dropout = ByteDropout(dropout) if dropout else nn.Identity()
        self.last = last(hidden[-1] if hidden else width)
        for module in self.last.modules():
            if type(module) is nn.Linear:
                module.__class__ = BroadcastLinear  # the same parameters, used so that they broadcast
        self._start()

    @property
    def hidden_matrices(self) -> tuple[str, ...]:
        """The names of the matrices that hidden units come from."""
        return tuple(f"layers.{i}.weight" for i in range(len(self.layers)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        numbers, rest, places = x.mT.tensor_split([self.numbers, x.shape[-1] - len(self.vectors)], dim=-2)
        parts = [numbers if self.embedding is None else self.embedding(numbers), rest]
        parts += [own(places[..., i, :].long()) for i, own in enumerate(self.vectors)]
        stacked = max((part.shape[:-2] for part in parts), key=torch.Size.numel)
        h = torch.cat([part.expand(*stacked, -1, -1) for part in parts], dim=-2)
        h = h * (1 + FASTER * self.scale).unsqueeze(-1)
        for layer in self.layers:
            h = self.dropout(self.activation(layer(h)))
        out: Tensor = self.last(h.mT)
        return out

    @torch.no_grad()
    def _start(self) -> None:
        """Let layers keep the size of what passes through them; biases of the first are spread out."""
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            nn.init.normal_(layer.weight, std=math.sqrt((2 if i else 1) / layer.in_features))
            nn.init.normal_(layer.bias, std=0 if i else 0.5)
        for module in self.last.modules():
            if isinstance(module, BroadcastLinear):
                nn.init.normal_(module.weight, std=0.1 / math.sqrt(module.in_features))


class RowsLast(nn.Linear):
    """A linear layer whose rows are the last axis, ``(..., a, n) -> (..., b, n)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        return self.weight @ x + self.bias.unsqueeze(-1)


class BroadcastLinear(nn.Linear):
    """A linear layer that also runs on stacked parameters, ``(M, n, a) -> (M, n, b)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        # With rows last, as they lie in memory, a product of few outputs takes a fortieth of the time on a CPU.
        return (self.weight @ x.mT).mT + self.bias.unsqueeze(-2)


HEADS = (BroadcastLinear, TripleHead, GaussianHead, QuantileHead, EachTargetHead)
"""Last layers that are a linear layer, or one and what follows it without parameters; a user's may be anything."""


class Waves(nn.Module):
    """Each number with a few linear functions of cosines of itself, ``(..., k, n) -> (..., k * WIDTH, n)``."""

    def __init__(self, numbers: int, waves: int) -> None:
        super().__init__()
        self.frequency = nn.Parameter(2 * math.pi * FREQUENCY * torch.randn(numbers, waves))
        self.phase = nn.Parameter(math.pi * (2 * torch.rand(numbers, waves) - 1))
        self.weight = nn.Parameter(torch.randn(numbers, waves, WIDTH - 1) / math.sqrt(waves))
        self.bias = nn.Parameter(torch.zeros(numbers, WIDTH - 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedded numbers."""
        each = x.unsqueeze(-2)
        waves = self.frequency[..., None] * each  # (..., k, waves, n), the largest of all: not three times at once
        waves += self.phase[..., None]
        waves = waves.cos() if waves.requires_grad else waves.cos_()
        mixed = (self.weight.mT @ waves).to(x.dtype) + self.bias[..., None]
        return torch.cat([each.expand(*mixed.shape[:-2], 1, -1), mixed], dim=-2).flatten(-3, -2)


class Vectors(nn.Module):
    """A vector for each of many categories, ``(..., n) -> (..., VECTOR, n)``, zero until it is learnt."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size, VECTOR))

    def forward(self, place: Tensor) -> Tensor:
        """Return the vectors at these places."""
        # One list for all that are stacked: on a GPU the gradient of an embedding adds up in one order, a gather's not.
        every = self.weight.flatten(0, -2)
        first = torch.arange(0, len(every), self.weight.shape[-2], device=place.device)
        return functional.embedding(place + first.view(*self.weight.shape[:-2], 1), every).mT


class ByteDropout(Keyed):
    """Dropout at a rate in 256ths, which may differ between stacked networks.

    A byte is drawn for each unit, several at a time: on a CPU a draw for each takes longer than the layer's product.
    """

    keep: Tensor

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.keep_keys()
        self.register_buffer("keep", torch.tensor(float(max(1, round(256 * (1 - rate))))))

    def forward(self, x: Tensor) -> Tensor:
        """Return x, in training with some units at zero and the others enlarged."""
        if not self.training:
            return x
        keep = self.keep[..., None, None]
        kept = self.random_numbers(x.shape, torch.uint8, x.device) <= (keep - 1).to(torch.uint8)
        return x * (kept * (256 / keep)).to(x.dtype)


def differ_in_numbers_alone(networks: Sequence[nn.Module]) -> bool:
    """Whether these are networks for tables of one shape with one of our heads: such can be stacked without a trial."""
    shapes = {(repr(one), *((name, t.shape, t.dtype) for name, t in one.state_dict().items())) for one in networks}
    return len(shapes) == 1 and all(type(one) is TabularNetwork and type(one.last) in HEADS for one in networks)
