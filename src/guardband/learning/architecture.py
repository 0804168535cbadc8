"""The shape of a network, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from guardband.data.encoder import Encoder, TableEncoder
from guardband.nn import FullyConnected
from guardband.nn.heads import Head
from guardband.nn.ordering import Ordering
from guardband.nn.tabular import TabularNetwork
from guardband.training.batches import seed_generators

Builder = Callable[[int], nn.Module]


@dataclass(frozen=True)
class Architecture:
    """A fully connected network, the one for tables, or a function of the number of inputs that builds the user's own.

    Once its table is known, ``numbers`` are the columns that the one for tables embeds by waves, and ``sizes`` the
    numbers of places of those for which it learns vectors.
    """

    hidden: tuple[int, ...] = (200,)
    activation: str = "relu"
    dropout: float = 0.0
    ordering: Ordering = "softplus"
    builder: Builder | None = None
    tabular: bool = False
    numbers: int = 0
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.ordering not in get_args(Ordering):
            raise ValueError(f'ordering must be "softplus" or "relu", found {self.ordering!r}.')

    def for_table(self, encoder: Encoder) -> Architecture:
        """Return the architecture for what an encoder makes."""
        if not isinstance(encoder, TableEncoder):
            return self
        return replace(self, numbers=encoder.numbers, sizes=encoder.sizes)

    def build(self, in_features: int, head: Head, seed: int, device: torch.device) -> nn.Module:
        """Return a fresh network, without touching the caller's random state."""
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            seed_generators(seed, device)
            network: nn.Module
            shape, last = (self.hidden, self.activation, self.dropout), lambda width: head.last(width, self.ordering)
            if self.builder is not None:
                network = self.builder(in_features)
            elif self.tabular:
                network = TabularNetwork(in_features, self.numbers, self.sizes, *shape, last)
            else:
                network = FullyConnected(in_features, *shape, last=last)
        if not isinstance(network, nn.Module):
            raise TypeError(f"network must build a torch.nn.Module, found {type(network).__name__}.")
        if any(is_lazy(p) or p.dtype != torch.float32 for p in network.parameters()):
            raise ValueError("network must build a module with parameters of known shape in float32, found others.")
        return network.to(device)
