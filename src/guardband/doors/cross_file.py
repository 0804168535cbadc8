"""The networks of each fold of a table in a model file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guardband.learning.crossed import Crossed
from guardband.learning.learned import Learned
from guardband.training.members import State


def fold_entries(learned: Learned | Crossed) -> list[dict[str, Any]] | None:
    """Return what a file says of each fold, None without folds."""
    if isinstance(learned, Learned):
        return None
    return [
        {
            "encoder": own.encoder.to_dict(),
            "target": own.target.to_dict(),
            "in_features": own.in_features,
            "hidden": list(own.architecture.hidden),
            "dropout": own.architecture.dropout,
            "choices": own.choices,
        }
        for own in learned.each
    ]


def fold_tensors(learned: Learned | Crossed) -> State:
    """Return the weights of all networks; with folds their names begin with the number of the fold."""
    if isinstance(learned, Learned):
        return learned.members.snapshot()
    every = enumerate(learned.each)
    return {f"{i}.{name}": t for i, own in every for name, t in own.members.snapshot().items()}


def folds_of(
    entries: Mapping[str, Any], folds: int, epochs: tuple[int, ...], weights: State
) -> Iterator[tuple[Mapping[str, Any], tuple[int, ...], State]]:
    """Give the entries, epochs and weights of each fold; another number of folds than was asked for is refused."""
    each = entries["crossed"] or []
    if len(each) != folds or len(epochs) % folds:
        raise ValueError("it holds other folds than its arguments ask for")
    each = [{name: entry for name, entry in own.items() if entry is not None} for own in each]
    first = {name: entries[name] for name in each[0] if name != "target"}
    if first != {name: entry for name, entry in each[0].items() if name != "target"}:
        raise ValueError("its first fold is not what it says of the table")
    count = len(epochs) // folds
    for i, own in enumerate(each):
        prefix = f"{i}."
        kept = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
        weights = {name: t for name, t in weights.items() if not name.startswith(prefix)}
        if i == folds - 1 and weights:
            raise ValueError(f"it holds weights of no fold, {next(iter(weights))!r}")
        yield {**entries, **own}, epochs[i * count : (i + 1) * count], kept
