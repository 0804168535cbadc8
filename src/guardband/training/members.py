"""M networks of one architecture side by side: what training and prediction ask of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from guardband.nn.mixed import LossFunction
from guardband.training.batches import Batch

State = dict[str, Tensor]


class Members(ABC):
    """Networks side by side: each tensor of the state carries the member axis first.

    Members share no parameter, and Adam acts entry by entry, so that one step on the sum of their losses is
    each network's own step.
    """

    size: int
    random: bool = False
    """Whether a step needs keys."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Return all outputs for G groups of M / G members each, ``(G, n, ...) -> (M, n, C)``."""

    @abstractmethod
    def parameters(self) -> list[Tensor]:
        """Return the tensors to train, ``(M, ...)`` each; writing into them trains the networks."""

    def flat(self) -> tuple[Tensor, Tensor] | None:
        """Return all parameters and all gradients, each as one vector over the same memory, if they lie so."""
        return None

    def hidden(self) -> list[int]:
        """Return which of the parameters are matrices between hidden units, by position."""
        return []

    def matrices(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return what weight decay is for, of the parameters or of their gradients: matrices, not biases."""
        return [t for t in tensors if t.ndim >= 3]

    @abstractmethod
    def gradients(self, batch: Batch, loss: LossFunction) -> list[Tensor]:
        """Return the gradient of each member's loss with respect to its parameters, in their order."""

    @abstractmethod
    def train(self, mode: bool = True) -> None:
        """Switch dropout and the like on or off."""

    @abstractmethod
    def set_keys(self, keys: Tensor) -> None:
        """Let what is random in a step, such as dropout, depend on a key of each member ``(M,)`` and nothing else."""

    @abstractmethod
    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers, ``(M, ...)`` each, by their names in one network."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Set all parameters and buffers from a snapshot."""


def tensors_of(network: nn.Module) -> State:
    """Return the parameters and buffers that a network saves, by name, as views of its own memory."""
    return {name: t.detach() for name, t in network.state_dict().items() if isinstance(t, Tensor)}


def stacked_state(networks: Sequence[nn.Module]) -> State:
    """Return the networks' parameters and buffers, copied, ``(M, ...)`` each."""
    states = [tensors_of(network) for network in networks]
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}


@torch.no_grad()
def write_state(networks: Sequence[nn.Module], state: State) -> None:
    """Set the networks' parameters and buffers from a state, ``(M, ...)`` each."""
    for i, network in enumerate(networks):
        for name, t in tensors_of(network).items():
            t.copy_(state[name][i])


def member_losses(outputs: Tensor, batch: Batch, loss: LossFunction) -> Tensor:
    """Return each member's loss, ``(M, n, C) -> (M,)``."""
    losses = loss(outputs, batch.y) if batch.weight is None else loss(outputs, batch.y, batch.weight)
    if losses.shape != outputs.shape[:1]:
        raise ValueError(
            f"A loss must give one number per network, a mean over the last axis. For outputs {tuple(outputs.shape)} "
            f"and y {tuple(batch.y.shape)} it gave {tuple(losses.shape)}, not {tuple(outputs.shape[:1])}."
        )
    return losses


def at_least_float32(outputs: Tensor) -> Tensor:
    """Return outputs in a precision that losses can be computed in."""
    return outputs.float() if outputs.dtype.itemsize < 4 else outputs


def autograd(members: Members, parameters: list[Tensor], batch: Batch, loss: LossFunction) -> list[Tensor]:
    """Return the gradients of the members' losses with respect to the given tensors; unused ones get zero."""
    with torch.enable_grad():
        total = member_losses(at_least_float32(members(batch.x)), batch, loss).sum()
    gradients = torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True)
    return [(g.to_dense() if g.layout != torch.strided else g).contiguous() for g in gradients]
