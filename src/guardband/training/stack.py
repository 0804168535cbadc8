"""Networks stacked by ``torch.func``, or in a row where they cannot be stacked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from guardband.nn.mixed import LossFunction
from guardband.nn.tabular import differ_in_numbers_alone
from guardband.training.batches import Batch, generators_kept, generators_lock, seed_generators
from guardband.training.inputs import Inputs, call, map_tensors, tensors_in
from guardband.training.members import Members, State, autograd, stacked_state, tensors_of, write_state
from guardband.training.randomness import take_over

TRIED = 7
"""Networks whose copies are tried at a time beside the first: all at once might not fit in memory."""


class Stack(Members):
    """Networks stacked by ``torch.func``: one call runs them all.

    A module with ``broadcasts = True`` runs as it is on stacked parameters ``(M, ...)`` and inputs ``(M, n, ...)``.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.size = len(networks)
        self._skeleton = copy.deepcopy(networks[0])
        self._parameters, self._buffers = stack_module_state(list(networks))
        self._keys = _no_keys(networks)
        keyed = take_over(self._skeleton, self._keys[0])
        self._buffers |= {f"{name}.key".lstrip("."): self._keys for name in keyed}
        self._keyed, self.random = list(keyed.values()), bool(keyed)
        self._trained = [p for p in self._parameters.values() if p.requires_grad]
        self._hidden = _hidden(networks[0])
        self._named = _saved_names(networks[0])
        self.broadcasts = broadcasts(networks[0])
        if self.broadcasts:
            hold(self._skeleton, self._parameters, self._buffers)

    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs, ``(G, n, ...) -> (M, n, C)``."""
        groups = len(x)
        if self.broadcasts:
            out: Tensor = self._skeleton(self._for_each(x))
        elif groups == 1:
            out = _each(self._one, None)(self._parameters, self._buffers, x[0])
        elif groups == self.size:
            out = _each(self._one, 0)(self._parameters, self._buffers, x)
        else:
            parameters, buffers = (
                {name: t.unflatten(0, (groups, -1)) for name, t in state.items()}
                for state in (self._parameters, self._buffers)
            )
            out = _each(_each(self._one, None), 0)(parameters, buffers, x).flatten(0, 1)
        return out

    def _for_each(self, x: Tensor) -> Tensor:
        """Return the rows of groups so that they broadcast over the networks, ``(G, n, ...) -> (M or 1, n, ...)``."""
        return x if len(x) in (1, self.size) else x.repeat_interleave(self.size // len(x), dim=0)

    def _one(self, parameters: State, buffers: State, x: Tensor) -> Tensor:
        out: Tensor = functional_call(self._skeleton, (parameters, buffers), (x,))
        return out

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return [p.detach() for p in self._trained]

    def hidden(self) -> list[int]:
        """Return which of the parameters the network says are matrices between hidden units."""
        return self._hidden

    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, by autograd."""
        return autograd(self, self._trained, batch, loss)

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        self._skeleton.train(mode)

    def set_keys(self, keys: Tensor) -> None:
        """Let dropout draw from these keys, ``(M,)``."""
        self._keys.copy_(keys)
        for module in self._keyed:
            module.calls = 0

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
        every = self._parameters | self._buffers
        return {name: every[first] for name, first in self._named.items()}


class Row(Members):
    """Networks run one after another, for modules that cannot be stacked; they are trained in place.

    Several networks become views into stacked tensors, so that they are trained through these. Networks with
    several inputs, or with inputs by name, run only here. ``seeded`` is for networks whose own code draws random
    numbers: torch's generators are seeded before each of them runs in training.
    """

    def __init__(self, networks: Sequence[nn.Module], seeded: bool = False) -> None:
        self.size = len(networks)
        self._networks = list(networks)
        self._keys, self._seeded = _no_keys(networks), seeded
        self._seeds: list[int] = []
        keyed = [] if seeded else [take_over(own, key) for own, key in zip(networks, self._keys, strict=True)]
        self._keyed = [module for own in keyed for module in own.values()]
        self.random = seeded or bool(self._keyed)
        self._own = [[p for p in network.parameters() if p.requires_grad] for network in networks]
        self._stacked = [_aliased(same) for same in zip(*self._own, strict=True)]
        self._hidden = _hidden(networks[0])

    def __call__(self, x: Inputs) -> Tensor:
        """Return all outputs, ``(G, n, ...) -> (M, n, C)``."""
        each = self.size // len(tensors_in(x)[0])
        groups = [map_tensors(x, lambda t, group=group: t[group]) for group in range(self.size // each)]  # type: ignore[misc]
        if not self._seeds:
            return torch.stack([call(network, groups[i // each]) for i, network in enumerate(self._networks)])
        outputs, device = [], self._keys.device
        with generators_lock, generators_kept(device):  # a loader that draws gives the same batches to any networks
            for i, network in enumerate(self._networks):
                seed_generators(self._seeds[i], device)
                outputs.append(call(network, groups[i // each]))
        return torch.stack(outputs)

    def parameters(self) -> list[Tensor]:
        """Return the stacked tensors to train."""
        return self._stacked

    def hidden(self) -> list[int]:
        """Return which of the parameters the networks say are matrices between hidden units."""
        return self._hidden

    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, by autograd."""
        flat = autograd(self, [p for own in self._own for p in own], batch, loss)
        each = len(self._stacked)
        return [torch.stack(flat[i::each]) for i in range(each)]

    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""
        for network in self._networks:
            network.train(mode)
        self._seeds = []

    def set_keys(self, keys: Tensor) -> None:
        """Let dropout draw from these keys, ``(M,)``, or let generators be seeded by them."""
        if self._seeded:
            self._seeds = keys.tolist()
            return
        self._keys.copy_(keys)
        for module in self._keyed:
            module.calls = 0

    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers."""
        return stacked_state(self._networks)

    def restore(self, state: State) -> None:
        """Set all parameters and buffers from a snapshot."""
        write_state(self._networks, state)


def stack(networks: Sequence[nn.Module], example: Tensor) -> Members:
    """Return copies of the networks as one; those that cannot be stacked stand in a row.

    ``example`` is a batch of rows ``(n, ...)``, on which a training step is tried out.
    """
    if why_not_stacked(networks, example) is None:
        return Stack(networks)
    return Row([copy.deepcopy(network) for network in networks])


def hold(network: nn.Module, parameters: State, buffers: State) -> None:
    """Let a network hold these tensors as its own: to lend them for each call takes longer than a small step."""
    for name, t in (parameters | buffers).items():
        path, _, last = name.rpartition(".")
        owner = network.get_submodule(path)
        (owner._parameters if name in parameters else owner._buffers)[last] = t  # type: ignore[assignment]


def broadcasts(network: nn.Module) -> bool:
    """Whether a network runs on stacked parameters as it is."""
    return bool(getattr(network, "broadcasts", False))


def why_not_stacked(networks: Sequence[nn.Module], example: Tensor) -> str | None:
    """Return why the networks cannot be stacked, or None if they can.

    Copies with parameters moved at random are tried, a few at a time beside the first, whose code a stack runs: a
    step, then whether the stack puts out what each network does, in eval mode and in training, and whether buffers
    end up the same. Networks for tables need no trial, which would take longer than to train them on a small one.
    """
    if differ_in_numbers_alone(networks):
        return None
    for start in range(1, max(2, len(networks)), TRIED):
        reason = _why_not([networks[0], *networks[start : start + TRIED]], example)
        if reason is not None:
            return reason
    return None


def _why_not(networks: Sequence[nn.Module], example: Tensor) -> str | None:
    with generators_kept(example.device), torch.enable_grad():
        try:
            copies, generator = [copy.deepcopy(network) for network in networks], torch.Generator().manual_seed(0)
            for p in (p for one in copies for p in one.parameters()):
                p.data += (0.1 * torch.randn(p.shape, generator=generator)).to(p)
            tried = Stack(copies)
            tried.train()
            torch.autograd.grad(tried(example[None]).sum(), tried._trained, allow_unused=True)
            alike = all(_runs_alike(copies, example, training) for training in (False, True))
        except Exception as error:  # whatever a user's code raises
            return f"{type(error).__name__}: {str(error).strip()}".split("\n")[0]
    return None if alike else "as a stack they do something else than each alone, so their code must differ"


@torch.no_grad()
def _runs_alike(networks: Sequence[nn.Module], x: Tensor, training: bool) -> bool:
    stacked, alone = Stack(networks), Row([copy.deepcopy(network) for network in networks])
    for members in (stacked, alone):
        members.train(training)
        members.set_keys(torch.arange(len(networks), device=x.device))
    outputs, own = stacked(x[None]), alone(x[None])
    ours, theirs = stacked.snapshot(), alone.snapshot()
    return _close(outputs, own) and all(_close(ours[name].float(), t.float()) for name, t in theirs.items())


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)


def _saved_names(network: nn.Module) -> dict[str, str]:
    """Return for each name in a network's state the first name of the same tensor: tied weights have several."""
    every = [*network.named_parameters(remove_duplicate=False), *network.named_buffers(remove_duplicate=False)]
    names = {name: id(t) for name, t in every}
    first: dict[int, str] = {}
    for name, number in names.items():
        first.setdefault(number, name)
    return {name: first[names[name]] for name in tensors_of(network)}


def _each(run: Callable[..., Tensor], x_axis: int | None) -> Callable[..., Tensor]:
    return vmap(run, in_dims=(0, 0, x_axis), randomness="error")


def _no_keys(networks: Sequence[nn.Module]) -> Tensor:
    """Return room for the keys of a step, ``(M,)`` on the networks' device."""
    device = next((p.device for p in networks[0].parameters()), None)
    return torch.zeros(len(networks), dtype=torch.int64, device=device)


def _aliased(same: Sequence[nn.Parameter]) -> Tensor:
    """Return one parameter of all networks as a tensor ``(M, ...)`` that shares their memory."""
    if len(same) == 1:
        return same[0].detach()[None]
    stacked = torch.stack([p.detach() for p in same])
    for p, own in zip(same, stacked, strict=True):
        p.data = own
    return stacked


def _hidden(network: nn.Module) -> list[int]:
    """Return which of the trained parameters a network says are matrices between hidden units, by position."""
    trained = [name for name, p in network.named_parameters() if p.requires_grad]
    named = getattr(network, "hidden_matrices", ())
    return [i for i, name in enumerate(trained) if name in named]
