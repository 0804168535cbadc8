"""Training rows as a stream: each process reads its own pieces, and holds and mixes a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.data.encoder import TableEncoder
from guardband.data.target import Target
from guardband.ray.survey import TrainingPart
from guardband.training.batches import Batch, mixed_seed
from guardband.training.shared import Stream

MIXED = 2
"""Pieces that are read at the same time. With four and lots of 32 MiB a process took 150 MiB more (docs/log.md)."""
BUFFER_BYTES = 1 << 23
"""Rows are shuffled in lots of so many bytes, or of so few batches."""
FEWEST_BATCHES = 16

Lot = tuple[np.ndarray[Any, Any], ...]
"""Encoded rows, their targets on each scale ``(n, S)``, and their folds."""


@dataclass(frozen=True)
class RowStream:
    """How one process reads its training rows.

    Parameters
    ----------
    part : TrainingPart
        Which rows train.
    encoder : TableEncoder
        How columns become numbers.
    target : Target
        On which scales the target is learnt.
    pieces : tuple
        The pieces of this process.
    folds : int
        Into how many folds rows fall.
    seed : int
        The seed of their order.
    """

    part: TrainingPart
    encoder: TableEncoder
    target: Target
    pieces: tuple[Any, ...]
    folds: int
    seed: int

    def rows(self, pieces: Sequence[Any]) -> Iterator[Lot]:
        """Yield the rows of pieces, a block of a file at a time, some files by turns.

        Parameters
        ----------
        pieces : sequence
            What to read, in this order.
        """
        waiting = list(pieces)[::-1]
        open_ones: list[Iterator[Lot]] = []
        while waiting or open_ones:
            while waiting and len(open_ones) < MIXED:
                open_ones.append(self._blocks(waiting.pop()))
            for own in list(open_ones):
                block = next(own, None)
                if block is None:
                    open_ones.remove(own)
                else:
                    yield block

    def forever(self, size: int) -> Iterator[Lot]:
        """Yield batches of so many rows in a random order, one pass over the pieces after another.

        Parameters
        ----------
        size : int
            The number of rows of a batch.
        """
        width = 4 * (self.encoder.width + len(self.target.scales)) + 8
        least = max(FEWEST_BATCHES * size, BUFFER_BYTES // width)
        held: list[Lot] = []
        turn = 0
        while True:
            turn += 1
            random = np.random.default_rng(mixed_seed(self.seed, turn))
            order = [self.pieces[i] for i in random.permutation(len(self.pieces))]
            read = 0
            for block in self.rows(order):
                held.append(block)
                read += len(block[0])
                if sum(len(own[0]) for own in held) >= least:
                    held = yield from _batches(held, size, random)
            # Rows that are left over are mixed with those of the next pass.
            held = yield from _batches(held, size, random)
            if not read:
                raise ValueError("A process has no training rows. Use fewer workers, or more and smaller files.")

    def _blocks(self, piece: Any) -> Iterator[Lot]:
        from ray import ObjectRef, get

        own = get(piece) if isinstance(piece, ObjectRef) else piece
        for block, work in self.part.blocks(own):
            y = np.stack([scale.forward(work) for scale in self.target.scales], axis=1).astype(np.float32)
            yield self.encoder.encode(block.table), y, self.part.rows.split.folds(block.prints, self.folds)


def _batches(held: Sequence[Lot], size: int, random: np.random.Generator) -> Generator[Lot, None, list[Lot]]:
    """Yield batches of rows in a random order, and return those that are too few for one."""
    if not held:
        return []
    lot = tuple(np.concatenate(own) for own in zip(*held, strict=True))
    order = random.permutation(len(lot[0]))
    whole = len(order) // size * size
    for start in range(0, whole, size):
        yield tuple(own[order[start : start + size]] for own in lot)
    rest = order[whole:]
    return [tuple(own[rest] for own in lot)] if len(rest) else []


class Tap:
    """Batches of an endless stream, wherever it is: an epoch takes the next ones.

    Training that goes on from a later epoch takes another order: rows that came first would train too often.

    Parameters
    ----------
    stream : RowStream
        Where rows come from.
    size : int
        The number of rows of a batch.
    """

    def __init__(self, stream: RowStream, size: int) -> None:
        self._stream, self._size = stream, size
        self._batches = stream.forever(size)
        self._first = next(self._batches)
        self._is_new = True

    @property
    def first(self) -> Lot:
        """The first batch, which training sees too."""
        return self._first

    def next(self, epoch: int) -> Lot:
        """Return the next batch.

        Parameters
        ----------
        epoch : int
            The epoch that it is for.
        """
        if self._is_new:
            self._is_new = False
            if epoch == 1:
                return self._first
            again = replace(self._stream, seed=mixed_seed(self._stream.seed, -epoch))
            self._batches = again.forever(self._size)
        return next(self._batches)


@dataclass(frozen=True, eq=False)
class TrainingStream(Stream):
    """What members train on.

    Parameters
    ----------
    tap : Tap
        Where batches come from.
    batches : int
        How many make an epoch.
    copies : tuple of int
        The copy that each member is of: it does not train on the fold with this number.
    device : torch.device
        Where members train.
    stops : bool
        Whether folds are left out to stop by.
    """

    tap: Tap
    batches: int
    copies: tuple[int, ...]
    device: torch.device
    stops: bool

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield the batches of an epoch."""
        for _ in range(self.batches):
            yield _on(self.device, self.tap.next(epoch))

    def batch(self, *pieces: Tensor) -> Batch:
        """Return a batch, with no weight for the rows that stop a member."""
        x, y, fold = pieces
        own = torch.tensor(self.copies, device=self.device)[:, None]
        weight = (fold[None] != own).float() if self.stops else torch.ones(len(own), len(x), device=self.device)
        return Batch(x[None], _by_turns(y, self.copies), weight)

    def steps(self) -> int:
        """Return how many batches make an epoch."""
        return self.batches

    def take(self, members: Sequence[int]) -> TrainingStream:
        """Return the same for some members."""
        return replace(self, copies=tuple(self.copies[i] for i in members))

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.from_numpy(self.tap.first[0][:2]).to(self.device)


@dataclass(frozen=True, eq=False)
class StoppingRows(Stream):
    """The rows that stop members, which are few: each member has its own fold.

    Parameters
    ----------
    lots : tuple
        Rows in batches.
    copies : tuple of int
        The copy that each member is of.
    device : torch.device
        Where members train.
    """

    lots: tuple[Lot, ...]
    copies: tuple[int, ...]
    device: torch.device

    @classmethod
    def of(cls, stream: RowStream, copies: tuple[int, ...], size: int, device: torch.device) -> StoppingRows:
        """Return the rows of the folds that stop a member."""
        kept: list[Lot] = []
        for lot in stream.rows(stream.pieces):
            some = np.flatnonzero(np.isin(lot[2], copies))
            kept.append(tuple(own[some] for own in lot))
        if not kept:
            return cls((), copies, device)
        whole = tuple(np.concatenate(own) for own in zip(*kept, strict=True))
        starts = range(0, len(whole[0]), size)
        return cls(tuple(tuple(own[i : i + size] for own in whole) for i in starts), copies, device)

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield all rows."""
        for lot in self.lots:
            yield _on(self.device, lot)

    def batch(self, *pieces: Tensor) -> Batch:
        """Return a batch, with weight for the rows of each member's own fold."""
        x, y, fold = pieces
        own = torch.tensor(self.copies, device=self.device)[:, None]
        return Batch(x[None], _by_turns(y, self.copies), (fold[None] == own).float())

    def steps(self) -> int:
        """Return how many batches there are."""
        return len(self.lots)

    def take(self, members: Sequence[int]) -> StoppingRows:
        """Return the same for some members."""
        return replace(self, copies=tuple(self.copies[i] for i in members))

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.from_numpy(self.lots[0][0][:2]).to(self.device)


def _on(device: torch.device, lot: Lot) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(own).to(device) for own in lot)


def _by_turns(y: Tensor, copies: Sequence[int]) -> Tensor:
    """Return the targets of each member, ``(n, S) -> (M, n)``: copies take turns with scales."""
    return y.T[[copy % y.shape[1] for copy in copies]]
