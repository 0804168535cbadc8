"""Fully connected networks with a backward pass by hand, into buffers that are allocated once.

A stack by ``vmap`` spends most of its time on the CPU in allocating and filling temporaries of megabytes, and
on a GPU in launching small kernels (docs/log.md has the figures). Units are kept as rows, ``(M, units, n)``:
so members that share their input need one product for all of their first layers, and each of a band's three
columns is contiguous.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from guardband.nn.mixed import LossFunction
from guardband.training.adam import views
from guardband.training.batches import Batch
from guardband.training.members import Members, State
from guardband.training.output_gradient import OutputGradient
from guardband.training.workspace import Workspace

ALIGNMENT = 4
ACTIVATIONS = (nn.ReLU, nn.GELU, nn.SiLU, nn.Mish, nn.ELU, nn.Tanh)


@dataclass(frozen=True)
class Chain:
    """The layers of a fully connected network: how names in its linear ones begin, what is between and at its end.

    A module may end it whose class says ``ends_network = True``: it has neither parameters nor buffers, is not
    random, and maps the last axis of ``(..., C)``.
    """

    linear: tuple[str, ...]
    activation: str
    end_settings: tuple[object, ...]
    end: nn.Module | None = field(compare=False)


def chain_of(network: nn.Module) -> Chain | None:
    """Return the network's layers if it is linear layers with one kind of activation between them, and nothing else."""
    leaves = _leaves(network, "")
    if leaves is None:
        return None
    end = leaves.pop()[1] if leaves and _may_end(leaves[-1][1]) else None
    linear = [(name, module) for name, module in leaves[::2] if isinstance(module, nn.Linear)]
    between = {repr(module) for _, module in leaves[1::2]}
    if not all(isinstance(module, ACTIVATIONS) for _, module in leaves[1::2]):
        return None
    if len(leaves) != 2 * len(linear) - 1 or len(between) > 1:
        return None
    if not all(m.bias is not None and m.weight.requires_grad and m.bias.requires_grad for _, m in linear):
        return None
    if any(p.dtype != torch.float32 for p in network.parameters()) or list(network.buffers()):
        return None
    if len(list(network.parameters())) != 2 * len(linear):
        return None
    names, activation = tuple(name for name, _ in linear), between.pop() if between else ""
    return Chain(names, activation, () if end is None else (type(end), *_settings(end)), end)


def _may_end(module: nn.Module) -> bool:
    """Whether a module says that it ends networks and holds nothing but plain settings."""
    holds = [*module.parameters(), *module.buffers(), *module.children()]
    plain = all(_plain(value) for _, value in _settings(module))
    return bool(getattr(type(module), "ends_network", False)) and not holds and plain


def _plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str | None) or (isinstance(value, tuple) and all(map(_plain, value)))


def _settings(module: nn.Module) -> list[tuple[str, object]]:
    """Return what a module has beyond what all modules have."""
    return sorted((name, value) for name, value in vars(module).items() if name not in vars(nn.Module()))


class Dense(Members):
    """Fully connected networks, run and differentiated by hand; activations other than ReLU by autograd.

    The first layer's bias is its last used column, against an input that is always one; columns of zeros
    fill up to a multiple of four, which products like.
    """

    def __init__(self, networks: Sequence[nn.Module], chain: Chain, work: torch.dtype = torch.float32) -> None:
        self.size = len(networks)
        self._chain, self._work = chain, work
        self._activation = next((m for m in networks[0].modules() if isinstance(m, ACTIVATIONS)), nn.ReLU())
        self._end = nn.Identity() if chain.end is None else copy.deepcopy(chain.end)
        states = [network.state_dict() for network in networks]
        self._names = tuple(states[0])
        weights = [torch.stack([state[f"{name}weight"] for state in states]) for name in chain.linear]
        biases = [torch.stack([state[f"{name}bias"] for state in states]) for name in chain.linear]
        self._in_features = weights[0].shape[2]
        padded = -(-(self._in_features + 1) // ALIGNMENT) * ALIGNMENT
        first = weights[0].new_zeros(self.size, weights[0].shape[1], padded)
        first[..., : self._in_features], first[..., self._in_features] = weights[0], biases[0]
        parameters = [first, *weights[1:], *(bias[..., None] for bias in biases[1:])]
        self._flat = torch.cat([p.flatten() for p in parameters]), first.new_zeros(sum(p.numel() for p in parameters))
        layers = len(weights)
        own, gradients = (views(flat, parameters) for flat in self._flat)
        self._weights, self._biases = own[:layers], own[layers:]
        self._weight_gradients, self._bias_gradients = gradients[:layers], gradients[layers:]
        self._constants = first.new_zeros(padded, dtype=work)
        self._constants[self._in_features] = 1
        self._workspace = Workspace()
        self._output_gradient = OutputGradient(self._end)

    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs, ``(G, n, d) -> (M, n, C)``."""
        space = Workspace()
        z = self._forward(self._augment(x, space), self._work_weights(), space, [])[-1].mT.float()
        outputs: Tensor = self._end(z)
        return outputs

    def parameters(self) -> list[Tensor]:
        """Return the tensors to train."""
        return [*self._weights, *self._biases]

    def flat(self) -> tuple[Tensor, Tensor]:
        """Return all parameters and all gradients, each as one vector."""
        return self._flat

    def matrices(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return the weights without the first layer's biases."""
        return [tensors[0][..., : self._in_features], *tensors[1 : len(self._weights)]]

    @torch.no_grad()
    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradients, in buffers that the next call overwrites."""
        space, weights = self._workspace, self._work_weights()
        x = self._augment(batch.x, space)
        tape: list[tuple[Tensor, Tensor]] = []
        *hidden, z = self._forward(x, weights, space, tape)
        slope = self._output_gradient(z.float(), batch, loss).to(self._work)
        for i in range(len(weights) - 1, 0, -1):
            below = hidden[i - 1]
            torch.sum(slope, 2, keepdim=True, out=self._bias_gradients[i - 1])
            _product(slope, below.mT, self._weight_gradients[i])
            passed = space.like(f"gradient {i}", below.shape, below)
            torch.bmm(weights[i].mT, slope, out=passed)
            if tape:
                before, after = tape.pop()
                slope = torch.autograd.grad(after, before, passed)[0]
            else:
                torch.ops.aten.threshold_backward.grad_input(passed, below, 0, grad_input=passed)
                slope = passed
        groups = len(x)
        _product(_grouped(slope, groups), x, _grouped(self._weight_gradients[0], groups))
        return [*self._weight_gradients, *self._bias_gradients]

    def train(self, mode: bool = True) -> None:
        """Nothing in these networks depends on it."""

    def set_keys(self, keys: Tensor) -> None:
        """Nothing in these networks is random."""

    def snapshot(self) -> State:
        """Return a copy of all parameters."""
        return {name: t.clone() for name, t in self._state().items()}

    def restore(self, state: State) -> None:
        """Set all parameters from a snapshot."""
        for name, t in self._state().items():
            t.copy_(state[name])

    def _state(self) -> State:
        first = self._weights[0]
        weights = [first[..., : self._in_features], *self._weights[1:]]
        biases = [first[..., self._in_features], *(b.squeeze(-1) for b in self._biases)]
        state = {f"{name}weight": w for name, w in zip(self._chain.linear, weights, strict=True)}
        state |= {f"{name}bias": b for name, b in zip(self._chain.linear, biases, strict=True)}
        return {name: state[name] for name in self._names}

    def _work_weights(self) -> list[Tensor]:
        return [w.to(self._work) for w in self._weights]

    def _augment(self, x: Tensor, space: Workspace) -> Tensor:
        """Return the inputs with a column of ones and zeros to fill up, ``(G, n, d) -> (G, n, padded)``."""
        if x.shape[2] != self._in_features:
            raise ValueError(f"These networks take {self._in_features} inputs, found rows of {x.shape[2]}.")
        augmented = space.rows("input", (*x.shape[:2], len(self._constants)), self._constants)
        augmented[..., : self._in_features] = x
        return augmented

    def _forward(
        self, x: Tensor, weights: list[Tensor], space: Workspace, tape: list[tuple[Tensor, Tensor]]
    ) -> list[Tensor]:
        """Return every layer's output after its activation, and the last one's as it is, ``(M, units, n)`` each.

        An activation other than ReLU is noted on the tape, with what went in and what came out.
        """
        groups, n = x.shape[:2]
        layers: list[Tensor] = []
        for i, w in enumerate(weights):
            out = space.like(f"output {i}", (*w.shape[:2], n), w)
            if i == 0:
                torch.bmm(_grouped(w, groups), x.mT, out=_grouped(out, groups))
            else:
                torch.baddbmm(self._biases[i - 1].to(self._work), w, layers[-1], out=out)
            if i == len(weights) - 1:
                layers.append(out)
            elif isinstance(self._activation, nn.ReLU):
                layers.append(out.clamp_(min=0))
            else:
                with torch.enable_grad():
                    before = out.detach().requires_grad_()
                    tape.append((before, self._activation(before)))
                layers.append(tape[-1][1].detach())
        return layers


def _grouped(t: Tensor, groups: int) -> Tensor:
    """Return the members of each group as one, ``(M, units, n) -> (G, M / G * units, n)``."""
    return t.view(groups, -1, t.shape[2])


def _product(a: Tensor, b: Tensor, out: Tensor) -> None:
    if a.dtype == out.dtype:
        torch.bmm(a, b, out=out)
    else:
        out.copy_(torch.bmm(a, b))


def _leaves(module: nn.Module, name: str) -> list[tuple[str, nn.Module]] | None:
    """Return the modules that a nest of ``nn.Sequential`` runs, in order, or None if it is anything else."""
    hooks = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    if any(hooks) or "forward" in vars(module):
        return None
    if not isinstance(module, nn.Sequential):
        overwrites = getattr(module, "inplace", False) and not isinstance(module, nn.ReLU)
        known = (type(module) in (nn.Linear, *ACTIVATIONS) or _may_end(module)) and not overwrites
        return [(name and f"{name}.", module)] if known else None
    if type(module).forward is not nn.Sequential.forward:
        return None
    leaves: list[tuple[str, nn.Module]] = []
    for child_name, child in module._modules.items():  # named_children leaves out what comes again
        inner = None if child is None else _leaves(child, f"{name}.{child_name}" if name else child_name)
        if inner is None:
            return None
        leaves += inner
    return leaves
