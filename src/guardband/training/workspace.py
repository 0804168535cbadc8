"""Memory for what a step computes by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor


class Workspace:
    """Memory for a step's layers, allocated once: a batch of fewer rows uses the front of it."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}
        self._outgrown: list[Tensor] = []  # a captured graph may still use it

    def like(self, name: str, shape: Sequence[int], example: Tensor) -> Tensor:
        """Return a tensor of this shape, and of the example's kind, that the next call of this name overwrites."""
        size, held = math.prod(shape), self._held.get(name)
        if held is None or held.numel() < size:
            self._outgrown += [] if held is None else [held]
            self._held[name] = held = example.new_empty(size)
        return held[:size].view(shape)

    def rows(self, name: str, shape: Sequence[int], row: Tensor) -> Tensor:
        """Return the same, whose rows were equal to ``row`` when they were allocated."""
        before = self._held.get(name)
        rows = self.like(name, shape, row)
        if self._held[name] is not before:
            rows.copy_(row)
        return rows
