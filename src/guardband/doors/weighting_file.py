"""Where the weights of rows come from, in a model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from guardband.doors.weights import Weighting
from guardband.exceptions import ModelFileError
from guardband.learning.shift import EstimatedWeights

WEIGHTING = "weighting."
"""How the names of arrays begin that estimate weights."""


def weighting_entries(weighting: Weighting | None) -> dict[str, Any] | None:
    """Return all but arrays, for JSON; a function is only marked."""
    if weighting is None:
        return None
    return {
        "is_function": weighting.function is not None,
        "max_weight": None if weighting.max_weight is None else float(weighting.max_weight),
        "column": weighting.column,
        "estimate": None if weighting.estimate is None else weighting.estimate.to_dict(),
    }


def weighting_tensors(weighting: Weighting | None) -> dict[str, Tensor]:
    """Return the arrays that estimate weights."""
    if weighting is None or weighting.estimate is None:
        return {}
    return {WEIGHTING + name: torch.from_numpy(own) for name, own in weighting.estimate.to_arrays().items()}


def restored_weighting(
    entries: Mapping[str, Any] | None,
    tensors: Mapping[str, Tensor],
    function: Callable[[Any], Any] | None,
    columns: int,
) -> Weighting | None:
    """Return what a file says of weights, for tables of so many columns; ``function`` is what the user brought."""
    arrays = {name.removeprefix(WEIGHTING): t.numpy() for name, t in tensors.items() if name.startswith(WEIGHTING)}
    needs = entries is not None and entries["is_function"]
    if needs and function is None:
        raise ModelFileError("it was made with a weights of your own: pass it as load(..., weights=...).")
    if function is not None and not needs:
        raise ModelFileError("it needs no function for weights: remove weights=...")
    if entries is None:
        if arrays:
            raise ValueError("it holds weights that its entries do not name")
        return None
    named = [bool(entries["is_function"]), entries["column"] is not None, entries["estimate"] is not None]
    if entries["estimate"] is not None and entries["max_weight"] is not None:
        raise ValueError("its estimated weights have a bound")
    if sum(named) > 1 or bool(arrays) != (entries["estimate"] is not None):
        raise ValueError("its weights come from more than one place")
    estimate = None
    if entries["estimate"] is not None:
        estimate = EstimatedWeights.restored(entries["estimate"], arrays, columns)
    return Weighting(function, entries["max_weight"], entries["column"], estimate)
