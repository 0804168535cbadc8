"""Tensors to train on: which rows each network sees, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from guardband.training.batches import Draw, Rows
from guardband.training.epochs import FEWEST_TO_HOLD_OUT
from guardband.training.inputs import Inputs, map_tensors, tensors_in
from guardband.training.recipe import for_each

RESIDENT_SHARE = 0.5
"""Rows stay on the host if they would fill more than this share of a GPU's free memory."""


@dataclass(frozen=True)
class TrainingTable:
    """All rows, each network's draw of them, and what each is stopped by, if it was given."""

    rows: Rows
    draws: tuple[Draw, ...]
    held_out: tuple[Draw, ...] | None

    @classmethod
    def of(cls, data: tuple[Any, ...], validation: Any, rows: Any, seeds: Sequence[int]) -> TrainingTable:
        """Return the table of one network per seed; what cannot be is refused."""
        size, table = len(seeds), _rows(data, len(seeds))
        draws = _draws(rows, seeds, len(table))
        if isinstance(validation, float):
            fewest = min(len(draw.index) for draw in draws)
            if fewest < FEWEST_TO_HOLD_OUT:
                raise ValueError(
                    f"A share for validation needs at least {FEWEST_TO_HOLD_OUT} rows for each network, found {fewest}."
                )
        if validation is None or isinstance(validation, float):
            return cls(table, draws, None)
        if not isinstance(validation, tuple):
            raise ValueError(f"validation must be a share or tensors, as data are, found {type(validation).__name__}.")
        other = _rows(validation, size)
        if (other.weight is None) != (table.weight is None) or other.y.ndim != table.y.ndim:
            raise ValueError("validation must have weights, or a y for each network, if and only if data have.")
        if other.weight is not None and not other.weight.any():
            raise ValueError("No row of validation has a positive weight. Give some rows a positive weight.")
        weight = None if table.weight is None or other.weight is None else torch.cat([table.weight, other.weight])
        if [t.shape[1:] for t in other.inputs] != [t.shape[1:] for t in table.inputs]:
            raise ValueError("The inputs of validation have other shapes than those of data. Pass the same shapes.")
        more = iter(other.inputs)
        x = map_tensors(table.x, lambda t: torch.cat([t, next(more)]))
        every = Rows(x, torch.cat([table.y, other.y], -1), weight)
        return cls(every, draws, (Draw(torch.arange(len(table), len(every)), 0),) * size)

    def on(self, device: torch.device) -> TrainingTable:
        """Return the table with its rows on the device if they fit there, else on the host."""
        tensors = [*self.rows.inputs, self.rows.y]
        if device.type == "cuda" and tensors[0].device.type != "cuda":
            free = torch.cuda.mem_get_info(device)[0]
            device = torch.device("cpu") if sum(t.nbytes for t in tensors) > RESIDENT_SHARE * free else device
        return TrainingTable(self.rows.to(device), self.draws, self.held_out)


def _rows(data: tuple[Any, ...], size: int) -> Rows:
    if len(data) not in (2, 3):
        raise ValueError(f"data must be a loader or tensors (x, y) or (x, y, weight), found {len(data)} of them.")
    x, inputs = _inputs(data[0])
    n = len(inputs[0])
    y = torch.as_tensor(data[1]).float()
    if not all(map(_finite, [*inputs, y])):
        raise ValueError("x or y holds a value that is not finite. Correct it, or remove the row.")
    if tuple(y.shape) not in ((n,), (size, n)):
        raise ValueError(f"y must have the shape ({n},) or ({size}, {n}), found {tuple(y.shape)}.")
    weight = torch.as_tensor(data[2]).float() if len(data) == 3 else None
    if weight is not None and (tuple(weight.shape) != (n,) or bool((weight < 0).any())):
        raise ValueError(f"weight must have the shape ({n},) and not be negative, found {tuple(weight.shape)}.")
    return Rows(x, y, weight)


def _inputs(x: Any) -> tuple[Inputs, list[Tensor]]:
    """Return the inputs, and the tensors in them: one ``(n, ...)``, or a tuple or mapping of them."""
    if isinstance(x, Mapping) or (isinstance(x, tuple) and any(t.ndim for t in tensors_in(x))):
        x = map_tensors(x, lambda t: t)
        inputs = tensors_in(x)
        rows = sorted({len(t) if t.ndim else 0 for t in inputs})
        if len(rows) != 1 or rows == [0]:
            raise ValueError(f"The tensors of x must have the same number of rows, at least one, found {rows}.")
        return x, inputs
    x = torch.as_tensor(x)
    if x.ndim < 2 or len(x) == 0:
        raise ValueError(f"x must have the shape (n, ...) with at least one row, found {tuple(x.shape)}.")
    return x, [x]


def _finite(values: Tensor) -> bool:
    """Whether all numbers are finite, without a copy of them: the extremes of any that are not are not."""
    if not values.is_floating_point():
        return True
    least, most = values.aminmax()
    return bool(least.isfinite() & most.isfinite())


def _draws(rows: Any, seeds: Sequence[int], n: int) -> tuple[Draw, ...]:
    """Return each network's draw; networks with the same rows and seed get the same object."""
    one_for_each = isinstance(rows, list | tuple) and not all(isinstance(row, Integral) for row in rows)
    given = for_each(rows if one_for_each else [rows] * len(seeds), len(seeds), "rows")
    positions = {id(own): _positions(own, n) for own in given}
    draws: dict[tuple[int, int], Draw] = {}
    for own, seed in zip(given, seeds, strict=True):
        draws.setdefault((id(own), seed), Draw(positions[id(own)], int(seed)))
    return tuple(draws[id(own), seed] for own, seed in zip(given, seeds, strict=True))


def _positions(rows: Any, n: int) -> Tensor:
    if rows is None:
        return torch.arange(n)
    index = torch.as_tensor(rows)
    if index.dtype == torch.bool and index.shape == (n,):
        index = index.nonzero().squeeze(-1)
    whole = index.ndim == 1 and not index.is_floating_point() and index.dtype != torch.bool
    if not whole or not len(index) or int(index.min()) < 0 or int(index.max()) >= n:
        raise ValueError(f"rows must hold positions from 0 to {n - 1}, at least one, or be a mask of {n} rows.")
    return index.long().cpu()
