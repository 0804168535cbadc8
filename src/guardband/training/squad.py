"""A squad: members of a fleet that train as one."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from guardband.training.adam import Adam, coefficients, copy_each_, lerp_each_
from guardband.training.batches import Batch, Draw, HeldOut, LoaderBatches, Rows, grouped, mixed_seed, seed_generators
from guardband.training.deadline import NEVER, Deadline
from guardband.training.dense import Dense
from guardband.training.graph import GraphedStep, out_of_memory
from guardband.training.inputs import map_tensors
from guardband.training.job import Job
from guardband.training.members import State, at_least_float32, member_losses
from guardband.training.muon import Muon
from guardband.training.randomness import step_keys
from guardband.training.shared import Stream
from guardband.training.step import Step
from guardband.training.tabular import Tabular

WARM_UP = 10
"""An average of parameters looks back over a share of the steps so far until these are many times as many."""
BLOCKS = 4
"""Held-out rows are judged in blocks of so many batches; of one if memory is short or the loss is one of a batch."""


class Interrupted(Exception):
    """Another thread asked to stop."""


@dataclass(frozen=True)
class SquadState:
    """Parameters and buffers, the same averaged, Adam's moments, each ``(M, ...)``, and the number of steps done."""

    members: State
    averaged: State
    adam: State
    done: int

    def kept(self) -> State:
        """Return what a snapshot is made of: parameters, averaged if they are, and buffers."""
        return self.averaged or self.members

    def take(self, positions: Sequence[int]) -> SquadState:
        """Return the state of the members at some positions in the squad, in the order given."""
        some = list(positions)
        return self._each(lambda t: t[some])

    def to(self, device: torch.device) -> SquadState:
        """Return the state on a device."""
        return self._each(lambda t: t.to(device))

    def _each(self, work: Callable[[Tensor], Tensor]) -> SquadState:
        parts = (self.members, self.averaged, self.adam)
        members, averaged, adam = ({name: work(t) for name, t in part.items()} for part in parts)
        return SquadState(members, averaged, adam, self.done)


class Squad:
    """Networks, their optimiser and their batches."""

    def __init__(self, job: Job) -> None:
        self._job, recipe = job, job.recipe
        self.members = job.members()
        if not self.members.parameters():
            raise ValueError("The network has no parameters to train. Pass one that has some.")
        flat = self.members.flat()
        self._optimiser: Adam | Muon = Adam(self.members.parameters(), flat)
        if recipe.muon:
            half = recipe.precision == "bf16"
            self._optimiser = Muon(self.members.parameters(), self.members.hidden(), recipe.muon, half=half)
        self._trained = self.members.parameters() if flat is None else [flat[0]]
        self._source = job.source()
        self._step = Step(
            self.members,
            self._source,
            job.loss,
            self._optimiser,
            self._per_member(recipe.decays()) if any(recipe.decays()) else None,
            self._per_member(recipe.limits()) if min(recipe.limits()) < math.inf else None,
            job.device,
            half=recipe.precision == "bf16" and not isinstance(self.members, Dense | Tabular),
            together=job.together,
        )
        captured = job.device.type == "cuda" and job.engine != "seeded" and job.together is None
        self._run: Callable[..., None] = GraphedStep(self._step) if captured else self._step
        self._done = 0
        self._average = [p.clone() for p in self._trained] if recipe.averaging else None
        self._judged_by: tuple[list[Draw], Tensor] | None = None

    def epoch(self, epoch: int, stop: threading.Event, until: Deadline = NEVER) -> None:
        """Train for one pass over the batches, or for as many steps as there is time for, at least one."""
        self.members.train()
        if self._job.rows is None:  # a loader may draw from torch's generator
            seed_generators(mixed_seed(mixed_seed(self._job.seeds[0], 0), epoch), self._job.device)
        per_step = self._per_step(epoch, 0)
        for i, pieces in enumerate(self._source.pieces(epoch)):
            if stop.is_set():
                raise Interrupted
            if i == len(per_step):  # a loader that did not say how long it is
                per_step += self._per_step(epoch, i)
            self._run(*pieces, *per_step[i])
            self._done += 1
            if self._average is not None:
                self._follow(self._average, self._job.recipe.averaging * len(per_step))
            if until.is_set and self._is_over(until):
                break

    def _is_over(self, until: Deadline) -> bool:
        if self._job.device.type == "cuda":
            torch.cuda.synchronize(self._job.device)  # steps that only wait for the device have taken no time yet
        return until.is_over

    @torch.no_grad()
    def losses(self, held_out: HeldOut | Stream) -> Tensor:
        """Return each member's mean loss on its held-out rows, or on a loader's, ``(M,)`` on the CPU."""
        self.members.train(False)
        with self._averaged():
            try:
                return self._losses(held_out, 1 if getattr(self._job.loss, "of_a_batch", False) else BLOCKS)
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
            return self._losses(held_out, 1)

    def _losses(self, held_out: HeldOut | Stream, blocks: int) -> Tensor:
        total = torch.zeros(self._job.size, dtype=torch.float64, device=self._job.device)
        mass = torch.zeros_like(total)
        for batch in self._blocks(held_out, blocks):
            with self._step.autocast():
                outputs = at_least_float32(self.members(batch.x))
            weight = outputs.new_ones(outputs.shape[:2]) if batch.weight is None else batch.weight
            own = weight.sum(-1)
            losses = member_losses(outputs, batch, self._job.loss)
            total += torch.where(own > 0, losses * own, 0.0).double()
            mass += own
        if self._job.together is not None:
            total, mass = self._job.together.added(torch.stack([total, mass]))
        return (total / mass).float().cpu()

    def try_gradients(self) -> None:
        """Compute one batch's gradients, to see what memory that takes."""
        self._step.gradients(*next(iter(self._source.pieces(1))))

    def snapshot(self) -> State:
        """Return a copy of the parameters, averaged if they are, and the buffers."""
        with self._averaged():
            return self.members.snapshot()

    def state(self) -> SquadState:
        """Return all that a squad like this needs to go on from here."""
        averaged = {} if self._average is None else self.snapshot()
        return SquadState(self.members.snapshot(), averaged, self._optimiser.state(), self._done)

    def load(self, state: SquadState) -> None:
        """Go on from there."""
        if self._average is not None:
            self.members.restore(state.averaged)
            self._average = [p.clone() for p in self._trained]
        self.members.restore(state.members)
        self._optimiser.load(state.adam)
        self._done = state.done

    @torch.no_grad()
    def _follow(self, average: list[Tensor], steps: float) -> None:
        """Move the average towards the parameters: it looks back over so many steps, over fewer in the beginning."""
        weight = max(1 / steps, WARM_UP / (self._done + WARM_UP)) if steps > 1 else 1.0
        lerp_each_(average, self._trained, weight)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Let the members have their averaged parameters."""
        if self._average is None:
            yield
            return
        own = [p.clone() for p in self._trained]
        with torch.no_grad():
            copy_each_(self._trained, self._average)
        try:
            yield
        finally:
            with torch.no_grad():
                copy_each_(self._trained, own)

    def _blocks(self, held_out: HeldOut | Stream, blocks: int) -> Iterator[Batch]:
        size, device, rows = self._job.size, self._job.device, self._job.rows
        if isinstance(held_out, Stream):
            yield from (held_out.batch(*pieces) for pieces in held_out.pieces(0))
            return
        if rows is None:
            source = LoaderBatches(held_out, device, size)
            yield from (source.batch(*pieces) for pieces in source.pieces(0))
            return
        for part in torch.split(self._positions(list(held_out), rows), blocks * self._job.recipe.batch_size, dim=1):
            batch = rows.at(part, size)
            weight = None if batch.weight is None else batch.weight.to(device)
            yield Batch(map_tensors(batch.x, lambda t: t.to(device)), batch.y.to(device), weight)

    def _positions(self, draws: list[Draw], rows: Rows) -> Tensor:
        """Return the positions of held-out rows, ``(G, n)`` where the rows lie; they are the same in every epoch."""
        if self._judged_by is None or any(a is not b for a, b in zip(self._judged_by[0], draws, strict=True)):
            index = torch.stack([draw.index for draw in grouped(draws)])
            self._judged_by = draws, index.to(rows.y.device)
        return self._judged_by[1]

    def _per_step(self, epoch: int, done: int) -> list[tuple[Tensor, ...]]:
        """Return for the next steps of an epoch the members' keys, if anything is random, and Adam's coefficients.

        These are one set for all members if their rates agree.
        """
        recipe, steps = self._job.recipe, max(1, self._source.steps())
        rates = recipe.rates(epoch, steps)
        values = coefficients(rates[:, 0] if recipe.one_rate() else rates, self._done)
        tables = [self._on_device(torch.from_numpy(values))]
        if self.members.random:
            keys = step_keys(self._job.seeds, epoch, range(done, done + steps))
            tables.insert(0, keys if self._job.engine == "seeded" else self._on_device(keys))
        return list(zip(*(table.unbind(0) for table in tables), strict=True))

    def _on_device(self, table: Tensor) -> Tensor:
        if self._job.device.type != "cuda":
            return table
        return table.pin_memory().to(self._job.device, non_blocking=True)  # else it would wait for the device

    def _per_member(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._job.device)
