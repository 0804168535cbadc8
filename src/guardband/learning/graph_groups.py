"""The groups of rows inside a graph: found in the matrix of numbers that a table becomes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from guardband.data.grouping import NONE, UNKNOWN, GroupColumn, Grouping
from guardband.data.tree_groups import MISSING, Branch, TreeGroups


@dataclass(frozen=True)
class GraphGroups:
    """Finds groups in a matrix whose columns have these names; a category is its place in ``categories[name]``."""

    grouping: Grouping | TreeGroups
    names: Sequence[str]
    categories: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        by = self.grouping.by
        if by is None or callable(by):
            raise ValueError(
                "A graph of a table cannot hold a function that finds groups. Export a model whose groups are columns."
            )
        for name, values in self._named():
            lost = [value for value in values if value not in self.categories.get(name, ())]
            if lost:
                raise ValueError(
                    f"A graph cannot tell {lost[0]!r} in the column {name!r}, because it is too rare to be learnt by "
                    'itself. Export a model with small_groups="pool", or without these groups.'
                )

    def of(self, x: Tensor) -> Tensor:
        """Return the groups of rows by their numbers, ``(n, columns) -> (n, J)``."""
        if isinstance(self.grouping, TreeGroups):
            return self._leaf(self.grouping.root, x)[:, None]
        first, out = 0, []
        for column in self.grouping.columns:
            codes = self._codes(column, x[:, list(self.names).index(column.name)])
            out.append(torch.where(codes >= 0, codes + first, codes))
            first += len(column.labels)
        return torch.stack(out, dim=1)

    def _codes(self, column: GroupColumn, cells: Tensor) -> Tensor:
        count = len(column.values)
        other = count if column.has_pool else UNKNOWN
        codes = torch.full_like(cells, 0 if column.is_range else other, dtype=torch.int64)
        for i, value in enumerate(column.values):
            if column.is_range:
                codes = torch.where(cells >= float(value), i, codes)
            else:
                codes = torch.where(cells == self._number(column.name, value), i, codes)
        return torch.where(torch.isnan(cells), count + column.has_pool if column.has_missing else NONE, codes)

    def _leaf(self, branch: Branch | int, x: Tensor) -> Tensor:
        if isinstance(branch, int):
            return torch.full_like(x[:, 0], branch, dtype=torch.int64)
        cells = x[:, list(self.names).index(branch.column)]
        away = torch.isnan(cells)
        if branch.cut is not None:
            left = torch.where(away, branch.missing_left, cells < branch.cut)
        else:
            left = torch.zeros_like(away)
            for value in branch.values:
                left = left | (away if value == MISSING else cells == self._number(branch.column, value))
        return torch.where(left, self._leaf(branch.left, x), self._leaf(branch.right, x))

    def _number(self, name: str, value: str | float) -> float:
        return float(list(self.categories[name]).index(value)) if isinstance(value, str) else value

    def _named(self) -> list[tuple[str, Sequence[str]]]:
        """Return the categories that groups are told by, column by column."""
        if isinstance(self.grouping, Grouping):
            return [(own.name, [v for v in own.values if isinstance(v, str)]) for own in self.grouping.columns]
        return [(own.column, [v for v in own.values if v != MISSING]) for own in _branches(self.grouping.root)]


def _branches(branch: Branch | int) -> list[Branch]:
    return [] if isinstance(branch, int) else [branch, *_branches(branch.left), *_branches(branch.right)]
