"""Groups of a network's inputs: a function of them says which group a row belongs to, inside the network too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from guardband.data.group_labels import unnamed_columns
from guardband.data.grouping import MOST_VALUES, NONE, UNKNOWN
from guardband.training.inputs import Inputs, call

GroupsOf = Callable[..., Any]
"""From what the network takes to a label for each row: truth or whole numbers, ``(n,)`` or ``(n, J)``."""


def labels_of(function: GroupsOf, inputs: Inputs, n: int | None = None) -> Tensor:
    """Return the labels that a function gives rows, ``(n, J)``."""
    labels = call(function, inputs)
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        raise TypeError(
            "groups must return a tensor of truth or of whole numbers for each row, found "
            f"{labels.dtype if isinstance(labels, Tensor) else type(labels).__name__}. Compare, or round, what it uses."
        )
    if labels.ndim not in (1, 2) or (n is not None and len(labels) != n):
        raise ValueError(
            f"groups must return one label for each of {n:,} rows, or several, found shape {tuple(labels.shape)}."
        )
    return labels[:, None] if labels.ndim == 1 else labels


@dataclass(frozen=True, eq=False)
class NetworkGroups:
    """The groups of a network: for each column of labels those that are groups, rising.

    ``members`` says that labels are several columns of truth, each of which is one group.
    """

    function: GroupsOf
    values: tuple[tuple[int, ...], ...]
    members: bool = False

    @classmethod
    def learn(cls, function: GroupsOf, labels: Sequence[Tensor]) -> NetworkGroups:
        """Return the groups that labels of calibration rows name."""
        every = torch.cat([own.cpu() for own in labels])
        if every.dtype == torch.bool and every.shape[1] > 1:
            return cls(function, ((1,),) * every.shape[1], members=True)
        values = tuple(tuple(torch.unique(column.long()).tolist()) for column in every.unbind(1))
        most = max(map(len, values))
        if most > 100 * MOST_VALUES:
            raise ValueError(f"groups must return few different labels, found {most:,}. Divide by more than that.")
        return cls(function, values)

    @classmethod
    def restored(cls, function: GroupsOf, values: Sequence[Sequence[int]], members: bool) -> NetworkGroups:
        """Return the groups that a file holds; raise if no labels could have named them."""
        for own in values:
            if (members and list(own) != [1]) or not own or any(low >= high for low, high in pairwise(own)):
                raise ValueError("its groups are no different labels in order")
            if not -(2**63) <= own[0] <= own[-1] < 2**63:
                raise ValueError("its groups are larger than any label")
        return cls(function, tuple(map(tuple, values)), members)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, in words, by their numbers."""
        if self.members:
            return tuple(unnamed_columns(len(self.values)))
        columns = ["group"] if len(self.values) == 1 else unnamed_columns(len(self.values))
        return tuple(f"{name} = {value}" for name, own in zip(columns, self.values, strict=True) for value in own)

    def of(self, labels: Tensor) -> Tensor:
        """Return the groups of rows by their numbers, ``(n, J) -> (n, J)``."""
        first, out = 0, []
        for own, column in zip(self.values, labels.long().unbind(1), strict=True):
            codes = torch.full_like(column, NONE if self.members else UNKNOWN)
            for i, value in enumerate(own):
                codes = torch.where(column == value, first + i, codes)
            out.append(codes)
            first += len(own)
        return torch.stack(out, dim=1)

    def of_inputs(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the groups of the rows of a batch."""
        return self.of(labels_of(self.function, kwargs or args))
