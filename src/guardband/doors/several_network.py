"""The calibration rows of a torch network with several targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from guardband.data.several_targets import read_targets
from guardband.training.inputs import split_target


def target_names(data: Any, targets: Any, target: str, batch_size: int) -> tuple[tuple[str, ...], Any]:
    """Return the names of several targets, none for one, and the data again: the first batch says how many."""
    if targets is None:
        return (), data
    if isinstance(data, tuple):
        return _named(split_target(data, target, several=True)[1]), data
    batches = iter(data)
    first = next(batches, None)
    if first is None:
        raise ValueError("There are no calibration rows. Pass at least one.")
    y = split_target(first, target, several=True)[1]
    if hasattr(data, "__getitem__") and not isinstance(data, Iterator):  # a dataset gives rows, one by one
        return _named(y[None] if y.ndim == 1 else y), data
    return _named(y), data if not isinstance(data, Iterator) else chain([first], batches)


def known_outcomes(y: Tensor, names: Sequence[str], targets: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return which rows of a batch calibrate, and their true values: all targets at once need all of them."""
    values, _ = read_targets(y, len(y), names)
    known = ~np.isnan(values)
    rows = np.flatnonzero(known.all(axis=1) if targets == "joint" else known.any(axis=1))
    return rows, values[rows]


def refuse_idle_arguments(arguments: Mapping[str, Any], networks: int) -> None:
    """Raise for what a network with several targets cannot use."""
    for name in ("groups", "weights", "max_weight"):
        if arguments.get(name) is not None:
            raise ValueError(f"Several targets cannot use {name}. Remove {name}.")
    if networks > 1:
        raise ValueError(f"Several targets need one network that puts out all of them, found {networks} networks.")


def _named(y: Tensor) -> tuple[str, ...]:
    if y.ndim != 2 or y.shape[1] < 2:
        raise ValueError(
            f"With several targets, y must have one column for each, (n, q), found shape {tuple(y.shape)}. Remove "
            "targets for one."
        )
    return tuple(f"target {j + 1}" for j in range(y.shape[1]))
