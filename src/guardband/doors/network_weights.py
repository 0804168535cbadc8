"""Weights of a network's inputs: a function of them, inside the network too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from guardband.training.inputs import Inputs, call


def weights_of(function: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Return the weights that a function gives rows, ``(n,)``, in double precision."""
    weights = call(function, inputs)
    if not isinstance(weights, Tensor) or weights.ndim != 1 or weights.is_complex():
        found = f"shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(f"weights must return a tensor with one number for each row, found {found}.")
    return weights.double()
