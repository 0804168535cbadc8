"""``gb.train``: trains your own network on your own loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from guardband.training.batches import LoaderBatches
from guardband.training.loop import RowLoss, train_loop
from guardband.training.recipe import Recipe
from guardband.training.stack import Row


def train(
    network: nn.Module,
    loader: Iterable[Any],
    loss: RowLoss,
    *,
    epochs: int = 20,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    after_epoch: Callable[[int], object] | None = None,
) -> nn.Module:
    """Train a network in place with Adam and return it, in eval mode.

    ``loader`` gives pairs ``(x, y)`` with y of shape ``(n,)`` and can be iterated many times, such as a
    ``DataLoader``. ``after_epoch(epoch)`` is called after every epoch; returning ``True`` ends the training.
    """
    if isinstance(epochs, str):
        raise ValueError(f"epochs must be a whole number of at least 1, found {epochs!r}.")
    Recipe(epochs, learning_rate, weight_decay)
    if not hasattr(loss, "rows"):
        raise TypeError(f"loss must have a method rows, as gb.nn.IntervalLoss has, found {type(loss).__name__}.")
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    train_loop(
        Row([network]),
        LoaderBatches(loader, device),
        loss,
        epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        after_epoch=lambda epoch: after_epoch is not None and after_epoch(epoch) is True,
    )
    return network.eval()
