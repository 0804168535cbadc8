"""Batches of rows: which rows a step sees, and where they come from."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from guardband.training.inputs import Inputs, map_tensors, split_target, tensors_in


@dataclass(frozen=True)
class Batch:
    """Rows for one step of M members in G groups of equal size: ``x (G, n, ...)``, ``y`` and ``weight (M, n)``.

    With q targets y is ``(M, n, q)``.

    x may also be several such tensors, or some by name, as the loader gave them.
    """

    x: Inputs
    y: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True)
class Rows:
    """All rows: inputs ``(n, ...)``, responses ``(n,)`` or each member's own ``(M, n)``, perhaps weights ``(n,)``.

    Responses to q targets are always each member's own, ``(M, n, q)``, and may be a view of one copy.

    x is a tensor, or several of them as ``network(*x)`` or ``network(**x)`` takes them, all where y is.
    """

    x: Inputs
    y: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return self.y.shape[min(1, self.y.ndim - 1)]

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors in x."""
        return tensors_in(self.x)

    def to(self, device: torch.device) -> Rows:
        """Return the rows on a device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Rows(map_tensors(self.x, lambda t: t.to(device)), self.y.to(device), weight)

    def take(self, members: Sequence[int]) -> Rows:
        """Return the rows as some of the members see them."""
        if self.y.ndim == 1:
            return self
        is_view = self.y.stride(0) == 0  # of one copy, which stays one
        return Rows(self.x, self.y[: len(members)] if is_view else self.y[list(members)], self.weight)

    def at(self, index: Tensor, size: int, room: Sequence[Tensor] = ()) -> Batch:
        """Return a batch for ``size`` members of the rows at ``(G, n)`` positions, its inputs in ``room`` if given."""
        groups, n = index.shape
        flat, rooms = index.flatten(), iter(room)  # index_select is several times faster than indexing

        def for_members(values: Tensor) -> Tensor:
            return values.view(groups, 1, n).expand(groups, size // groups, n).reshape(size, n)

        def gathered(t: Tensor) -> Tensor:
            return torch.index_select(t, 0, flat, out=next(rooms, None)).view(groups, n, *t.shape[1:])

        x = map_tensors(self.x, gathered)
        if self.y.ndim == 1:
            y = for_members(self.y.index_select(0, flat))
        else:
            own = for_members(index)
            y = self.y.gather(1, own if self.y.ndim == 2 else own[..., None].expand(-1, -1, self.y.shape[2]))
        return Batch(x, y, None if self.weight is None else for_members(self.weight.index_select(0, flat)))


@dataclass(frozen=True)
class Draw:
    """Some rows, by position ``(n,)`` on the host, and the seed of the order in which they are drawn.

    An epoch is a pass over all of them, or one of several ``parts`` of a pass. Rows with the same number in ``entity``,
    ``(n,)``, belong together: no part of the rows that is held out divides them.
    """

    index: Tensor
    seed: int
    parts: int = 1
    entity: Tensor | None = None

    def order(self, epoch: int) -> Tensor:
        """Return the positions in this epoch's order, all for epoch 0: it depends on the seed and the epoch alone."""
        if self.parts == 1 or epoch == 0:
            return self._shuffled(epoch)
        passes, part = divmod(epoch - 1, self.parts)
        return self._shuffled(passes + 1).tensor_split(self.parts)[part].clone()  # a view would hold the whole pass

    def _shuffled(self, turn: int) -> Tensor:
        generator = torch.Generator().manual_seed(mixed_seed(self.seed, turn))
        return self.index.index_select(0, torch.randperm(len(self.index), generator=generator))


def grouped(draws: Sequence[Draw]) -> list[Draw]:
    """Return one draw for each group of members, if equal groups follow one another, else one for each member."""
    runs: list[list[Draw]] = []
    for draw in draws:
        if runs and runs[-1][0] is draw:
            runs[-1].append(draw)
        else:
            runs.append([draw])
    return [run[0] for run in runs] if len({len(run) for run in runs}) == 1 else list(draws)


def orders(draws: Sequence[Draw], epoch: int) -> Tensor:
    """Return the order of each group's rows in an epoch, ``(G, n)`` on the host."""
    return torch.stack([draw.order(epoch) for draw in draws])


class OrdersAhead:
    """The same, with the next epoch's drawn by other threads while a GPU is at work on this one."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws
        self._ahead: dict[int, list[Future[Tensor]]] = {}

    def of(self, epoch: int) -> Tensor:
        """Return the orders of an epoch, ``(G, n)`` on the host."""
        for soon in (epoch, epoch + 1):
            if soon not in self._ahead:
                self._ahead[soon] = [_shuffler().submit(draw.order, soon) for draw in self._draws]
        return torch.stack([order.result() for order in self._ahead.pop(epoch)])


@functools.cache
def _shuffler() -> ThreadPoolExecutor:
    threads = min(8, os.cpu_count() or 1)
    return ThreadPoolExecutor(threads, "guardband-orders", initializer=torch.set_num_threads, initargs=(1,))


def steps_of(draws: Sequence[Draw], batch_size: int) -> int:
    """Return the number of batches of nearly equal size that make an epoch."""
    return -(-len(draws[0].index) // (batch_size * draws[0].parts))


HeldOut = Sequence[Draw] | Iterable[Any]
"""Rows to judge members by: a draw for each, or a loader of pairs for all."""


class Source(Protocol):
    """Where a squad's batches come from: pieces are made outside a step, the batch of them inside."""

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield for each step of an epoch the tensors that make its batch."""

    def batch(self, *pieces: Tensor) -> Batch:
        """Return the batch."""

    def steps(self) -> int:
        """Return the number of steps in an epoch, 0 if unknown."""


@dataclass(frozen=True)
class ResidentBatches:
    """Rows on the device; each step gathers its own. One draw per group; all draws have equally many rows."""

    rows: Rows
    draws: Sequence[Draw]
    size: int
    batch_size: int

    @functools.cached_property
    def _ahead(self) -> OrdersAhead:
        return OrdersAhead(self.draws)

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield the positions ``(G, n)`` of each step's rows, in batches of nearly equal size."""
        if self.rows.y.is_cuda:  # from memory that is not pinned it would wait for the device
            order = self._ahead.of(epoch).pin_memory().to(self.rows.y.device, non_blocking=True)
        else:
            order = orders(self.draws, epoch)
        for part in torch.tensor_split(order, self.steps(), dim=1):
            yield (part,)

    def batch(self, *pieces: Tensor) -> Batch:
        """Return the rows at these positions."""
        return self.rows.at(pieces[0], self.size)

    def steps(self) -> int:
        """Return the number of steps in an epoch."""
        return steps_of(self.draws, self.batch_size)


class LoaderBatches:
    """A loader of pairs ``(x, y)``, whose batches all members see; x is a tensor, several of them, or some by name."""

    def __init__(self, loader: Iterable[Any], device: torch.device, size: int) -> None:
        self.loader, self.device, self.size = loader, device, size
        self._like: Inputs = None

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield the tensors of each pair, the responses last."""
        empty = True
        for item in self.loader:
            self._like, y = split_target(item, "y")
            tensors = tensors_in(self._like)
            rows = {len(t) for t in tensors}
            if rows != {len(y)}:
                found = ", ".join(map(str, sorted(rows)))
                raise ValueError(f"A loader's x and y must have the same number of rows, found {found} and {len(y)}.")
            yield tuple(t.to(self.device, non_blocking=True) for t in (*tensors, y))
            empty = False
        if empty:
            raise ValueError("The loader gave no batch. Pass one that gives its batches anew in every pass.")

    def batch(self, *pieces: Tensor) -> Batch:
        """Return the pair as a batch."""
        *tensors, y = pieces
        rest = iter(tensors)
        return Batch(map_tensors(self._like, lambda _: next(rest)[None]), y.expand(self.size, *y.shape))

    def steps(self) -> int:
        """Return the loader's length, 0 if it does not say."""
        try:
            return len(self.loader) if isinstance(self.loader, Sized) else 0
        except TypeError:  # a DataLoader of a stream has a length in name only
            return 0


def mixed_seed(seed: int, step: int) -> int:
    """Return a seed for one step of a sequence: other seeds and other steps give unrelated ones."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9) % 2**63


generators_lock = threading.RLock()
"""Held while torch's generators, which all threads share, are set, or must not be."""


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators of the CPU and of this device; ``torch.manual_seed`` would seed those of all devices."""
    with generators_lock:
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)


def generator_states(device: torch.device) -> list[Tensor]:
    """Return where the generators of the CPU and of this device are."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


@contextmanager
def generators_kept(device: torch.device) -> Iterator[None]:
    """Give back the generators of the CPU and of this device as they were."""
    before = generator_states(device)
    try:
        yield
    finally:
        with generators_lock:
            torch.set_rng_state(before[0])
            for state in before[1:]:
                torch.cuda.set_rng_state(state, device)
