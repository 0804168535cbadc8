"""Networks stacked by ``torch.func``, or in a row where they cannot be stacked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from guardband.nn.mixed import LossFunction
from guardband.training.batches import Batch
from guardband.training.members import Members, State, autograd


class Stack(Members):
    """Networks stacked by ``torch.func``: one call runs them all."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.size = len(networks)
        self._skeleton = copy.deepcopy(networks[0]).to("meta")
        self._parameters, self._buffers = stack_module_state(list(networks))
        self._trained = [p for p in self._parameters.values() if p.requires_grad]

    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs, ``(G, n, ...) -> (M, n, C)``."""
        groups = len(x)
        if groups == 1:
            out: Tensor = _each(self._one, None)(self._parameters, self._buffers, x[0])
        elif groups == self.size:
            out = _each(self._one, 0)(self._parameters, self._buffers, x)
        else:
            parameters, buffers = (
                {name: t.unflatten(0, (groups, -1)) for name, t in state.items()}
                for state in (self._parameters, self._buffers)
            )
            out = _each(_each(self._one, None), 0)(parameters, buffers, x).flatten(0, 1)
        return out

    def _one(self, parameters: State, buffers: State, x: Tensor) -> Tensor:
        out: Tensor = functional_call(self._skeleton, (parameters, buffers), (x,))
        return out

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return [p.detach() for p in self._trained]

    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, by autograd."""
        return autograd(self, self._trained, batch, loss)

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
    """Networks run one after another: for modules that cannot be stacked, and for training one in place.

    Several networks become views into stacked tensors, so that they are trained through these.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.size = len(networks)
        self._networks = list(networks)
        self._own = [[p for p in network.parameters() if p.requires_grad] for network in networks]
        self._stacked = [_aliased(same) for same in zip(*self._own, strict=True)]

    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs, ``(G, n, ...) -> (M, n, C)``."""
        each = self.size // len(x)
        return torch.stack([network(x[i // each]) for i, network in enumerate(self._networks)])

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return self._stacked

    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, by autograd."""
        flat = autograd(self, [p for own in self._own for p in own], batch, loss)
        each = len(self._stacked)
        return [torch.stack(flat[i::each]) for i in range(each)]

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


def stack(networks: Sequence[nn.Module], example: Tensor) -> Members:
    """Return copies of the networks as one; those that cannot be stacked stand in a row.

    ``example`` is a batch of rows ``(n, ...)``, on which a training step is tried out.
    """
    if why_not_stacked(networks, example) is None:
        return Stack(networks)
    return Row([copy.deepcopy(network) for network in networks])


def why_not_stacked(networks: Sequence[nn.Module], example: Tensor) -> str | None:
    """Return why the networks cannot be stacked, or None if they can: a step is tried, and outputs compared."""
    try:
        tried = Stack(networks)
        with torch.random.fork_rng(devices=[example.device] if example.is_cuda else []):
            torch.autograd.grad(tried(example[None]).sum(), tried._trained, allow_unused=True)
        tried = Stack(networks)
        tried.train(False)
        with torch.no_grad():
            together, alone = tried(example[None]), _eval_outputs(networks, example)
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error).strip().split("\n")[0]
    if together.shape != alone.shape or not torch.allclose(together, alone, rtol=1e-3, atol=1e-4, equal_nan=True):
        return "as a stack they put out something else than each alone, so their code must differ"
    return None


def _eval_outputs(networks: Sequence[nn.Module], x: Tensor) -> Tensor:
    """Return what each network puts out in eval mode, ``(M, n, C)``, and leave its mode alone."""
    outputs = []
    for network in networks:
        modes = {module: module.training for module in network.modules()}
        outputs.append(network.eval()(x))
        for module, mode in modes.items():
            module.training = mode
    return torch.stack(outputs)


def _each(run: Callable[..., Tensor], x_axis: int | None) -> Callable[..., Tensor]:
    return vmap(run, in_dims=(0, 0, x_axis), randomness="different")


def _aliased(same: Sequence[nn.Parameter]) -> Tensor:
    """Return one parameter of all networks as a tensor ``(M, ...)`` that shares their memory."""
    if len(same) == 1:
        return same[0].detach()[None]
    stacked = torch.stack([p.detach() for p in same])
    for p, own in zip(same, stacked, strict=True):
        p.data = own
    return stacked
