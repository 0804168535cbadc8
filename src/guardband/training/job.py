"""A job: networks of one architecture, and everything that training them needs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from guardband.nn.mixed import LossFunction, take_losses
from guardband.training.batches import (
    Draw,
    HeldOut,
    LoaderBatches,
    ResidentBatches,
    Rows,
    Source,
    generators_kept,
    grouped,
)
from guardband.training.checkpoint import Checkpoint
from guardband.training.deadline import NEVER, Deadline
from guardband.training.dense import Dense, chain_of
from guardband.training.inputs import Inputs
from guardband.training.members import Members, State
from guardband.training.randomness import needs_seeds
from guardband.training.recipe import Recipe, for_each
from guardband.training.shared import Stream, Together
from guardband.training.stack import Row, Stack, broadcasts, why_not_stacked
from guardband.training.streaming import StreamedBatches
from guardband.training.tabular import Tabular, can_go_by_hand

SMALL_STEP = 2**25
"""Multiplications in a step, forward, below which a second thread costs more than it brings."""

DRAWS = "their code draws random numbers, as torch.nn.functional.dropout does. Use torch.nn.Dropout to make it faster."

Engine = Literal["dense", "tabular", "stack", "row", "seeded"]
"""How members run: by hand, if they are fully connected or for tables; stacked by ``torch.func``; one after another; or
so with generators seeded for each."""
Squads = Literal["threads", "processes", "one"]
"""How members are divided: squads on threads, squads in processes where the system allows it, or all as one squad."""
Progress = Callable[[str, int, int], None]
"""Called after every epoch with what is being done, the epoch and their number."""
AfterEpoch = Callable[[int, Callable[[], State]], bool]
"""Called after every epoch of the training proper with what copies the members as they are; true ends it."""


@dataclass(frozen=True)
class Trained:
    """Trained members: parameters and buffers ``(M, ...)``, and the number of epochs that each kept.

    A member that diverged is as it was given, and has kept 0 epochs: no held-out loss was finite, or, if its number
    of epochs was given, not all parameters are in the end. ``losses`` are those on held-out rows by which the number
    of epochs was found, NaN where it was given.
    """

    state: State
    epochs: tuple[int, ...]
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Job:
    """Networks of one architecture on one device, and how they are to be trained.

    Each member has the rows of its ``Draw``; members with the same one see the same batches. Rows lie on the
    device, or on the host if they are to be streamed. With a loader there are no rows, and all members see its
    batches; it may be a ``Stream``, and several processes may train ``together``. ``held_out`` is what stops members
    early: a draw for each, or another loader; without it a recipe that stops early holds out rows of its own. The
    recipe has one entry per member in all that may differ.
    ``seeds`` are what makes members random, one for each: two equal members with equal seeds end equal. At the
    ``deadline`` the epoch ends, though not all rows were seen; what was learnt until then counts as one.
    """

    networks: tuple[nn.Module, ...]
    loss: LossFunction
    recipe: Recipe
    device: torch.device
    rows: Rows | None = None
    draws: tuple[Draw, ...] = ()
    loader: Iterable[Any] | Stream | None = None
    held_out: HeldOut | Stream | None = None
    seeds: tuple[int, ...] = ()
    progress: Progress = lambda what, epoch, epochs: None
    after_epoch: AfterEpoch | None = None
    deadline: Deadline = NEVER
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    engine: Engine = "row"
    squads: Squads = "threads"
    together: Together | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", self.recipe.for_members(self.size))
        object.__setattr__(self, "seeds", for_each(self.seeds or 0, self.size, "seeds"))

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.networks)

    @property
    def small(self) -> bool:
        """Whether operations on a CPU, of a network or of a whole stack, are so small that one thread is best."""
        table = self.rows is not None and isinstance(self.rows.x, Tensor) and self.rows.x.ndim == 2
        numbers = sum(p.numel() for p in self.networks[0].parameters())
        at_once = self.size if self.engine in ("tabular", "stack") else 1
        return self.device.type == "cpu" and table and numbers * at_once * self.recipe.batch_size < SMALL_STEP

    @property
    def in_threads(self) -> bool:
        """Whether squads may run side by side."""
        return self.engine in ("dense", "tabular") or (self.engine == "stack" and broadcasts(self.networks[0]))

    def take(self, members: Sequence[int]) -> Job:
        """Return the job of some members, in the order given."""
        return replace(
            self,
            networks=tuple(self.networks[i] for i in members),
            loss=take_losses(self.loss, members),
            recipe=self.recipe.take(members),
            rows=None if self.rows is None else self.rows.take(members),
            draws=tuple(self.draws[i] for i in members) if self.draws else (),
            loader=self.loader.take(members) if isinstance(self.loader, Stream) else self.loader,
            held_out=taken(self.held_out, members),
            seeds=tuple(self.seeds[i] for i in members),
        )

    def train(self) -> Trained:
        """Train the members and return them; the networks and the caller's random state are left alone."""
        from guardband.training.epochs import train  # which knows jobs

        return train(self)

    def members(self) -> Members:
        """Return fresh copies of the networks, ready to train."""
        half = torch.bfloat16 if self.recipe.precision == "bf16" else None
        if self.engine == "dense":
            chain = chain_of(self.networks[0])
            assert chain is not None
            return Dense(self.networks, chain, half or torch.float32)
        if self.engine == "tabular":
            return Tabular(self.networks, half)
        if self.engine == "stack":
            return Stack(self.networks)
        return Row([copy.deepcopy(network) for network in self.networks], seeded=self.engine == "seeded")

    def source(self) -> Source:
        """Return where the batches come from."""
        if isinstance(self.loader, Stream):
            return self.loader
        if self.rows is None:
            assert self.loader is not None
            return LoaderBatches(self.loader, self.device, self.size)
        draws, batch_size = grouped(self.draws), self.recipe.batch_size
        if self.rows.y.device.type == self.device.type:
            return ResidentBatches(self.rows, draws, self.size, batch_size)
        return StreamedBatches(self.rows, draws, self.size, batch_size, self.device)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Leave the caller's random state alone, and let neither its device nor its gradient mode matter."""
        on_gpu = self.device.type == "cuda"
        with (
            generators_kept(self.device),
            torch.cuda.device(self.device) if on_gpu else nullcontext(),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            yield


def taken(held_out: Any, members: Sequence[int]) -> Any:
    """Return what stops some of the members."""
    if isinstance(held_out, Stream):
        return held_out.take(members)
    return tuple(held_out[i] for i in members) if isinstance(held_out, tuple) else held_out


def best_engine(networks: Sequence[nn.Module], example: Inputs) -> tuple[Engine, str | None]:
    """Return how to run the networks, and why they cannot run as one if they cannot.

    ``example`` is a batch of rows ``(n, ...)`` to try.
    """
    one, device = len(networks) == 1, next(networks[0].parameters()).device
    if can_go_by_hand(networks):
        return "tabular", None
    chains = {chain_of(network) for network in networks}
    if len(chains) == 1 and None not in chains and isinstance(example, Tensor) and example.ndim == 2:
        return "dense", None
    reason = None
    if not isinstance(example, Tensor):
        reason = "they take several inputs"
    elif not one and not needs_seeds(networks[0], example, device):
        reason = why_not_stacked(networks, example)
        if reason is None:
            return "stack", None
    if any(needs_seeds(network, example, device) for network in networks):
        return "seeded", None if one else DRAWS
    return "row", None if one else reason
