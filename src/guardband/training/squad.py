"""A squad: members of a fleet that train as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from guardband.training.adam import Adam, along, clip_
from guardband.training.batches import Batch, HeldOut, LoaderBatches, mixed_seed
from guardband.training.dense import Dense
from guardband.training.graph import GraphedStep
from guardband.training.members import State, member_losses
from guardband.training.task import Task, grouped

BLOCKS = 4
"""Held-out rows are judged in blocks of so many batches."""


class Interrupted(Exception):
    """Another thread asked to stop."""


class Squad:
    """Networks, their optimiser and their batches. A step is a gather, forward, backward and Adam."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.members = task.members()
        if not self.members.parameters():
            raise ValueError("A network must have parameters to train, found none.")
        self._adam = Adam(self.members.parameters())
        self._source = task.source()
        self._decay = self._per_member(task.pace.weight_decay) if any(task.pace.weight_decay) else None
        self._clip = self._per_member(task.pace.clip) if min(task.pace.clip) < float("inf") else None
        self._step = GraphedStep(self._one_step) if task.device.type == "cuda" else self._one_step

    def epoch(self, epoch: int, stop: threading.Event) -> None:
        """Train for one pass over the batches."""
        self.members.train()
        if not isinstance(self.members, Dense):  # nothing in a dense network is random
            torch.manual_seed(mixed_seed(self._task.seed, epoch))
        rates = self._rates(epoch)
        for i, pieces in enumerate(self._source.pieces(epoch)):
            if stop.is_set():
                raise Interrupted
            self._step(*pieces, rates[min(i, len(rates) - 1)])

    @torch.no_grad()
    def losses(self, held_out: HeldOut) -> Tensor:
        """Return each member's mean loss on its held-out rows, or on a loader's, ``(M,)`` on the CPU."""
        self.members.train(False)
        total = torch.zeros(self._task.size, dtype=torch.float64, device=self._task.device)
        mass = torch.zeros_like(total)
        for batch in self._blocks(held_out):
            with self._autocast():
                outputs = self.members(batch.x).float()
            weight = torch.ones_like(batch.y) if batch.weight is None else batch.weight
            total += (member_losses(outputs, batch, self._task.loss) * weight.sum(-1)).double()
            mass += weight.sum(-1)
        return (total / mass).float().cpu()

    def _blocks(self, held_out: HeldOut) -> Iterator[Batch]:
        size, device, rows = self._task.size, self._task.device, self._task.rows
        if rows is None:
            source = LoaderBatches(held_out, device, size)
            yield from (source.batch(*pieces) for pieces in source.pieces(0))
            return
        index = torch.stack([draw.index for draw in grouped(list(held_out))])
        for part in index.split(BLOCKS * self._task.batch_size, dim=1):
            batch = rows.at(part, size)
            weight = None if batch.weight is None else batch.weight.to(device)
            yield Batch(batch.x.to(device), batch.y.to(device), weight)

    def try_gradients(self) -> None:
        """Compute one batch's gradients, to see what memory that takes."""
        pieces = next(iter(self._source.pieces(1)))
        with self._autocast():
            self.members.gradients(self._source.batch(*pieces), self._task.loss)

    def state(self) -> dict[str, State]:
        """Return all that a squad like this needs to go on from here."""
        return {"members": self.members.snapshot(), "adam": self._adam.state()}

    def load(self, state: dict[str, State], places: Sequence[int]) -> None:
        """Go on from where the members at these places of a saved squad were."""
        some = list(places)
        self.members.restore({name: t[some] for name, t in state["members"].items()})
        self._adam.load({name: t[some] if t.ndim else t for name, t in state["adam"].items()})

    def _one_step(self, *inputs: Tensor) -> None:
        *pieces, rate = inputs
        batch = self._source.batch(*pieces)
        with self._autocast():
            gradients = self.members.gradients(batch, self._task.loss)
        if self._clip is not None:
            clip_(gradients, self._clip)
        if self._decay is not None:
            matrices = self.members.matrices(self.members.parameters())
            for p, g in zip(matrices, self.members.matrices(gradients), strict=True):
                g.addcmul_(p, along(self._decay, p))
        self._adam.step(gradients, rate)

    def _rates(self, epoch: int) -> tuple[Tensor, ...]:
        """Return the learning rates of an epoch's steps: one number each, or ``(M,)`` where they differ."""
        pace = self._task.pace
        rates = torch.from_numpy(pace.rates(epoch, max(1, self._source.steps()))).to(self._task.device)
        return (rates[:, 0] if pace.same_for_all() else rates).unbind(0)

    def _per_member(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._task.device)

    def _autocast(self) -> torch.autocast:
        half = self._task.precision == "bf16" and not isinstance(self.members, Dense)
        return torch.autocast(self._task.device.type, torch.bfloat16, enabled=half, cache_enabled=False)
