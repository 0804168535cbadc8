"""What a network takes: one tensor, several of them, or some by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

Inputs = Any
"""A tensor, a tuple or list of inputs for ``network(*inputs)``, or a mapping of them for ``network(**inputs)``."""


def call(network: Callable[..., Any], inputs: Inputs) -> Any:
    """Return what the network puts out for a batch."""
    if isinstance(inputs, Mapping):
        return network(**inputs)
    return network(*inputs) if isinstance(inputs, tuple | list) else network(inputs)


def map_tensors(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    """Return the same inputs with every tensor changed; arrays become tensors, all else is left alone."""
    if isinstance(inputs, Mapping):
        return {name: map_tensors(own, change) for name, own in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(map_tensors(own, change) for own in inputs)
    return change(torch.as_tensor(inputs)) if isinstance(inputs, Tensor) or hasattr(inputs, "__array__") else inputs


def tensors_in(inputs: Inputs) -> list[Tensor]:
    """Return the tensors of a batch of inputs, in the order in which ``map_tensors`` meets them."""
    found: list[Tensor] = []
    map_tensors(inputs, lambda t: found.append(t) or t)  # type: ignore[func-returns-value]
    return found


def rows_in(inputs: Inputs) -> int:
    """Return the number of rows of a batch of inputs."""
    found = tensors_in(inputs)
    if not found:
        raise TypeError(f"x must be a tensor, or a tuple or mapping of tensors, found {type(inputs).__name__}.")
    return len(found[0])


def split_target(item: Any, target: str, several: bool = False) -> tuple[Inputs, Tensor]:
    """Return a batch as inputs and responses ``(n,)``: a pair ``(inputs, y)``, or a mapping that names them.

    In a mapping the responses stand under ``target``, and everything else is an input by its name. Of ``several``
    targets responses may have any shape.
    """
    if isinstance(item, Mapping):
        if target not in item:
            raise ValueError(
                f"A batch has no entry {target!r} for y, found {list(item)}. Name the entry that holds y by target=..."
            )
        inputs: Inputs = {name: own for name, own in item.items() if name != target}
        y = item[target]
    elif isinstance(item, tuple | list) and len(item) == 2:
        inputs, y = item
    else:
        what = f"{type(item).__name__} of {len(item)}" if isinstance(item, tuple | list) else type(item).__name__
        raise ValueError(f"A loader must give pairs (x, y), or mappings, found {what}: write ((x1, x2), y).")
    if any(isinstance(own, PackedSequence) for own in _each(inputs)):
        raise TypeError(
            "A PackedSequence cannot be cut into batches. Give padded sequences and their lengths, as ((x, lengths), "
            "y), and pack them inside the network."
        )
    y = torch.as_tensor(y)
    if y.ndim != 1 and not several:
        each = 'Calibrate several targets with targets="joint", or one network for each column of y'
        mend = {
            0: "Wrap the data in a DataLoader, which makes batches",
            1: "Use y.squeeze(-1)",
        }.get(y.ndim and y.shape[-1], each)
        raise ValueError(f"A loader's y must have the shape (n,), found {tuple(y.shape)}. {mend}.")
    return inputs, y


def _each(inputs: Inputs) -> Iterable[Any]:
    if isinstance(inputs, Mapping):
        return inputs.values()
    return inputs if isinstance(inputs, tuple | list) and not isinstance(inputs, PackedSequence) else [inputs]
