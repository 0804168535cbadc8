"""Batches of rows, from tensors on the device or from a loader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Rows for one step: shared, ``(n, ...)`` and ``(n,)``, or each member's own, ``(M, n, ...)`` and ``(M, n)``."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None

    @property
    def shared(self) -> bool:
        """Whether all members see the same rows."""
        return self.y.ndim == 1


@dataclass(frozen=True)
class Rows:
    """Training rows on the device: inputs ``(n, ...)``, responses ``(n,)`` and perhaps weights ``(n,)``."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def at(self, index: Tensor) -> Batch:
        """Return the rows at ``(n,)`` or ``(M, n)`` positions."""
        return Batch(self.x[index], self.y[index], None if self.weight is None else self.weight[index])


class ShuffledBatches:
    """Passes over some rows in random order, in batches of nearly equal size.

    ``index`` is ``(n,)`` for rows that all members share, or ``(M, n)`` for each member's own.
    """

    def __init__(self, rows: Rows, index: Tensor, batch_size: int, seed: int) -> None:
        self._rows, self._index = rows, index
        self._n_batches = -(-index.shape[-1] // batch_size)
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.rand(self._index.shape, generator=self._generator).argsort(-1)
        shuffled = self._index.gather(-1, order.to(self._index.device))
        for part in shuffled.tensor_split(self._n_batches, dim=-1):
            yield self._rows.at(part)


@dataclass(frozen=True)
class LoaderBatches:
    """Passes over a loader of ``(x, y)`` pairs."""

    loader: Iterable[Any]
    device: torch.device

    def __iter__(self) -> Iterator[Batch]:
        empty = True
        for item in self.loader:
            x, y = pair(item)
            yield Batch(x.to(self.device), y.to(self.device))
            empty = False
        if empty:
            raise ValueError("The loader must give at least one batch in every pass, found none.")


def pair(item: Any) -> tuple[Tensor, Tensor]:
    """Return a loader's item as inputs and responses ``(n,)``."""
    if not isinstance(item, list | tuple) or len(item) != 2:
        raise ValueError(f"A loader must give pairs (x, y), found {type(item).__name__}.")
    x, y = (torch.as_tensor(part) for part in item)
    if y.ndim != 1:
        raise ValueError(f"A loader's y must have the shape (n,), found {tuple(y.shape)}: use y.squeeze(-1).")
    return x, y
