"""A task: networks of one architecture and everything that training them needs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from guardband.nn.mixed import LossFunction, take_losses
from guardband.training.batches import Draw, LoaderBatches, ResidentBatches, Rows, Source, mixed_seed
from guardband.training.dense import Dense, chain_of
from guardband.training.inputs import Inputs
from guardband.training.members import Members
from guardband.training.pace import Pace
from guardband.training.stack import Row, Stack, broadcasts, why_not_stacked
from guardband.training.streaming import StreamedBatches

Precision = Literal["float32", "tf32", "bf16"]
SMALL_STEP = 2**25
"""Multiplications in a step, forward, below which a second thread costs more than it brings."""
Engine = Literal["dense", "stack", "row"]


@dataclass(frozen=True)
class Task:
    """M networks with their losses, rows and pace. Members with the same ``Draw`` object see the same batches.

    The rows lie on the networks' device, or on the host if they are to be streamed. With a loader there are
    no rows or draws: all members see its batches.
    """

    networks: tuple[nn.Module, ...]
    loss: LossFunction
    pace: Pace
    device: torch.device
    rows: Rows | None = None
    draws: tuple[Draw, ...] = ()
    loader: Iterable[Any] | None = None
    batch_size: int = 256
    precision: Precision = "float32"
    engine: Engine = "row"
    averaging: float = 0.0
    seed: int = 0

    @property
    def small(self) -> bool:
        """Whether operations on a CPU, of a network or of a whole stack, are so small that one thread is best."""
        table = self.rows is not None and self.rows.x.ndim == 2
        numbers = sum(p.numel() for p in self.networks[0].parameters())
        at_once = self.size if self.engine == "stack" else 1
        return self.device.type == "cpu" and table and numbers * at_once * self.batch_size < SMALL_STEP

    @property
    def in_threads(self) -> bool:
        """Whether squads may run side by side: nothing in them depends on randomness that they share."""
        return self.engine == "dense" or (self.engine == "stack" and broadcasts(self.networks[0]))

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.networks)

    def take(self, members: Sequence[int]) -> Task:
        """Return the task of some members, in the order given."""
        return replace(
            self,
            networks=tuple(self.networks[i] for i in members),
            loss=take_losses(self.loss, members),
            pace=self.pace.take(members),
            rows=None if self.rows is None else self.rows.take(members),
            draws=tuple(self.draws[i] for i in members) if self.draws else (),
            seed=mixed_seed(self.seed, members[0]),
        )

    def members(self) -> Members:
        """Return fresh copies of the networks, ready to train."""
        if self.engine == "dense":
            chain = chain_of(self.networks[0])
            assert chain is not None
            return Dense(self.networks, chain, torch.bfloat16 if self.precision == "bf16" else torch.float32)
        if self.engine == "stack":
            return Stack(self.networks)
        return Row([copy.deepcopy(network) for network in self.networks])

    def source(self) -> Source:
        """Return where the batches come from."""
        if self.rows is None:
            assert self.loader is not None
            return LoaderBatches(self.loader, self.device, self.size)
        draws = grouped(self.draws)
        if self.rows.x.device.type == self.device.type:
            return ResidentBatches(self.rows, draws, self.size, self.batch_size)
        return StreamedBatches(self.rows, draws, self.size, self.batch_size, self.device)


def grouped(draws: Sequence[Draw]) -> list[Draw]:
    """Return one draw for each group of members, if equal groups follow one another, else one for each member."""
    runs: list[list[Draw]] = []
    for draw in draws:
        if runs and runs[-1][0] is draw:
            runs[-1].append(draw)
        else:
            runs.append([draw])
    return [run[0] for run in runs] if len({len(run) for run in runs}) == 1 else list(draws)


def best_engine(networks: Sequence[nn.Module], example: Inputs) -> tuple[Engine, str | None]:
    """Return how to run the networks, and why they cannot run as one if they cannot.

    ``example`` is a batch of rows ``(n, ...)`` to try.
    """
    if not isinstance(example, Tensor):
        return "row", None if len(networks) == 1 else "they take several inputs"
    chains = {chain_of(network) for network in networks}
    if len(chains) == 1 and None not in chains and example.ndim == 2:
        return "dense", None
    if len(networks) == 1:
        return "row", None
    reason = why_not_stacked(networks, example)
    return ("stack", None) if reason is None else ("row", reason)
