"""M networks of one architecture, run as one."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

State = dict[str, Tensor]


class Members(ABC):
    """Networks side by side: each tensor of the state carries the member axis first.

    Members share no parameter, and Adam acts entry by entry, so that one step on the sum of their losses is
    each network's own step.
    """

    size: int

    @abstractmethod
    def __call__(self, x: Tensor, *, shared: bool) -> Tensor:
        """Return all outputs, ``(M, n, 3)``, for shared rows ``(n, ...)`` or own rows ``(M, n, ...)``."""

    @abstractmethod
    def parameters(self) -> list[Tensor]:
        """Return the tensors to train."""

    @abstractmethod
    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return the tensors to train for an optimiser: decay is for matrices, not for biases."""

    @abstractmethod
    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""

    @abstractmethod
    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers, ``(M, ...)`` each."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Set all parameters and buffers from a snapshot."""


class Stack(Members):
    """Networks stacked by ``torch.func``: one call runs them all."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.size = len(networks)
        self._skeleton = copy.deepcopy(networks[0]).to("meta")
        self._parameters, self._buffers = stack_module_state(list(networks))

    def __call__(self, x: Tensor, *, shared: bool) -> Tensor:
        """Return all outputs, ``(M, n, 3)``."""
        run = vmap(self._one, in_dims=(0, 0, None if shared else 0), randomness="different")
        out: Tensor = run(self._parameters, self._buffers, x)
        return out

    def _one(self, parameters: State, buffers: State, x: Tensor) -> Tensor:
        out: Tensor = functional_call(self._skeleton, (parameters, buffers), (x,))
        return out

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return list(self._parameters.values())

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return matrices ``(M, out, in)`` and vectors ``(M, out)`` as two groups."""
        return _groups(self.parameters(), 3, weight_decay)

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        self._skeleton.train(mode)

    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers."""
        return {name: t.detach().clone() for name, t in self._state().items()}

    def restore(self, state: State) -> None:
        """Set all parameters and buffers from a snapshot."""
        own = self._state()
        shapes, given = ({name: tuple(t.shape) for name, t in s.items()} for s in (own, state))
        if shapes != given:
            raise ValueError(f"A state must fit the networks, whose tensors are {shapes}, found {given}.")
        with torch.no_grad():
            for name, t in own.items():
                t.copy_(state[name])

    def _state(self) -> State:
        return self._parameters | self._buffers


class Row(Members):
    """Networks run one after another: for modules that cannot be stacked, and for training in place."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.size = len(networks)
        self._networks = list(networks)

    def __call__(self, x: Tensor, *, shared: bool) -> Tensor:
        """Return all outputs, ``(M, n, 3)``."""
        rows = [x] * self.size if shared else x
        return torch.stack([network(own) for network, own in zip(self._networks, rows, strict=True)])

    def parameters(self) -> list[Tensor]:
        """Return the tensors to train, network by network."""
        return [p for network in self._networks for p in network.parameters() if p.requires_grad]

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return matrices and vectors as two groups."""
        return _groups(self.parameters(), 2, weight_decay)

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        for network in self._networks:
            network.train(mode)

    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers."""
        states = [network.state_dict() for network in self._networks]
        return {name: torch.stack([state[name] for state in states]) for name in states[0]}

    def restore(self, state: State) -> None:
        """Set all parameters and buffers from a snapshot."""
        for i, network in enumerate(self._networks):
            network.load_state_dict({name: t[i] for name, t in state.items()})


def _groups(parameters: list[Tensor], matrix_axes: int, weight_decay: float) -> list[dict[str, Any]]:
    matrices = [p for p in parameters if p.ndim >= matrix_axes]
    vectors = [p for p in parameters if p.ndim < matrix_axes]
    return [
        {"params": params, "weight_decay": decay}
        for params, decay in ((matrices, weight_decay), (vectors, 0.0))
        if params
    ]


def stack(networks: Sequence[nn.Module], example: Tensor) -> Members:
    """Return copies of the networks as one; a module that ``vmap`` cannot run falls back to a row.

    ``example`` is a batch of shared rows, on which a training step is tried out.
    """
    try:
        stacked = Stack(networks)
        before = stacked.snapshot()
        with torch.random.fork_rng(devices=[example.device] if example.is_cuda else []):
            torch.autograd.backward(stacked(example, shared=True).sum())
    except (RuntimeError, ValueError):
        return Row([copy.deepcopy(network) for network in networks])
    stacked.restore(before)
    for p in stacked.parameters():
        p.grad = None
    return stacked
