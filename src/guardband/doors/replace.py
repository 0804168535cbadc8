"""Any network as an interval network: its last layer replaced."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from guardband.nn.ordering import Ordering, TripleHead


class FrozenBackbone(nn.Module):
    """A network of which only the head trains: the rest stays in eval mode, batch statistics and dropout included."""

    def __init__(self, network: nn.Module, layer: str) -> None:
        super().__init__()
        self.network, self._layer = network, layer
        network.requires_grad_(False)
        network.get_submodule(layer).requires_grad_(True)
        self.train()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the network puts out."""
        return self.network(*args, **kwargs)

    def train(self, mode: bool = True) -> FrozenBackbone:
        """Switch the head alone."""
        super().train(mode)
        self.network.eval()
        self.network.get_submodule(self._layer).train(mode)
        return self


def with_intervals(
    model: nn.Module,
    *,
    layer: str | None = None,
    head: nn.Module | None = None,
    freeze: bool = False,
    ordering: Ordering = "softplus",
) -> nn.Module:
    """Return a copy of a network whose last linear layer is replaced by a ``TripleHead``, ``(n, ...) -> (n, 3)``.

    A layer inside one of torch's own modules, such as ``nn.TransformerEncoderLayer``, is refused: it does not make the
    network's output.

    Parameters
    ----------
    model : torch.nn.Module
        The network. It is copied, not changed.
    layer : str, default None
        The layer to replace, as in ``model.named_modules()``. None means the last ``nn.Linear`` that was
        registered.
    head : torch.nn.Module, default None
        What to put in its place. None means a ``TripleHead``.
    freeze : bool, default False
        Whether to train the head alone and keep the rest in eval mode. Set it if you have few rows.
    ordering : {"softplus", "relu"}, default "softplus"
        How the three outputs are kept in order. "softplus" always has a gradient; "relu" is the paper's, and
        one side can stop learning.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"with_intervals takes a torch.nn.Module, found {type(model).__name__}.")
    modules = dict(model.named_modules(remove_duplicate=False))
    if layer is None:
        linear = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
        if not linear:
            raise ValueError(
                "The network has no linear layer to replace: name the last one by layer=..., and bring head=..."
            )
        layer = linear[-1]
    if layer not in modules or not layer:
        raise ValueError(
            f"layer must be the name of a module inside the network, found {layer!r}: see named_modules()."
        )
    inside = _goes_on_after(modules, layer)
    if inside is not None:
        raise ValueError(
            f"Layer {layer!r} is inside a {inside}, which does not end with it: add a linear layer at the end of the "
            "network, or name the one that ends it by layer=..."
        )
    old = modules[layer]
    if head is None:
        if not isinstance(old, nn.Linear):
            raise ValueError(
                f"layer must name a linear layer unless head is given, found {layer!r}, a {type(old).__name__}."
            )
        head = TripleHead(old.in_features, ordering).to(old.weight.device, old.weight.dtype)
    changed = copy.deepcopy(model)
    changed.set_submodule(layer, head)
    return FrozenBackbone(changed, layer) if freeze else changed


def _goes_on_after(modules: dict[str, nn.Module], layer: str) -> str | None:
    """Return the class of torch's own, if any, that a layer is a part of: of them only containers may end with it."""
    parts = layer.split(".")
    for depth in range(len(parts)):
        forward = type(modules[".".join(parts[:depth])]).forward
        container = forward in (nn.Sequential.forward, nn.Module.forward)
        if forward.__module__.startswith("torch.nn.modules.") and not container:
            return forward.__qualname__.split(".")[0]
    return None
