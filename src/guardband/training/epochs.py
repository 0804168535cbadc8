"""How long to train: a given number of epochs, cross-validation on D1, or early stopping on a part of D1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from guardband.exceptions import SlowTrainingWarning, warn
from guardband.nn.mixed import LossFunction, take_losses
from guardband.training.batches import Draw, HeldOut, LoaderBatches, Rows, seed_generators
from guardband.training.checkpoint import Checkpoint
from guardband.training.fleet import Fleet
from guardband.training.inputs import Inputs, map_tensors
from guardband.training.loop import train_loop
from guardband.training.members import State
from guardband.training.recipe import Recipe
from guardband.training.search import Keeper, Search
from guardband.training.squad import Squad
from guardband.training.task import Engine, Task, best_engine

FEWEST_TO_HOLD_OUT = 20

Progress = Callable[[str, int, int], None]
"""Called after every epoch with what is being done, the epoch and their number."""
AfterEpoch = Callable[[int, Callable[[], State]], bool]
"""Called after every epoch of the training proper with what copies the members as they are; true ends it."""
Judge = Callable[[int, Fleet], Tensor]
"""Looks at a fleet after an epoch and says which members, ``(M,)``, are finished."""


@dataclass(frozen=True)
class Trained:
    """Trained members: parameters and buffers ``(M, ...)``, and the number of epochs that each kept.

    A member of which no epoch had a finite held-out loss is as it was given, and has kept 0 epochs. ``losses`` are
    those on held-out rows by which the number of epochs was found, NaN where it was given.
    """

    state: State
    epochs: tuple[int, ...]
    losses: tuple[float, ...]


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``trained`` is what had been reached after the last whole epoch."""

    def __init__(self, trained: Trained) -> None:
        super().__init__("Training was interrupted.")
        self.trained = trained


@dataclass(frozen=True)
class Job:
    """Networks of one architecture on one device, and how they are to be trained.

    Each member has the rows of its ``Draw``; members with the same one see the same batches. With a loader
    there are no rows. ``held_out`` is what stops members early: a draw for each, or another loader; without
    it a recipe that stops early holds out rows of its own.
    """

    networks: tuple[nn.Module, ...]
    loss: LossFunction
    recipe: Recipe
    device: torch.device
    rows: Rows | None = None
    draws: tuple[Draw, ...] = ()
    loader: Iterable[Any] | None = None
    held_out: HeldOut | None = None
    seed: int = 0
    progress: Progress = lambda what, epoch, epochs: None
    after_epoch: AfterEpoch | None = None
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def take(self, members: Sequence[int]) -> Job:
        """Return the job of some members, in the order given."""
        return replace(
            self,
            networks=tuple(self.networks[i] for i in members),
            loss=take_losses(self.loss, members),
            recipe=self.recipe.take(members),
            rows=None if self.rows is None else self.rows.take(members),
            draws=tuple(self.draws[i] for i in members) if self.draws else (),
            held_out=tuple(self.held_out[i] for i in members) if isinstance(self.held_out, tuple) else self.held_out,
        )

    def train(self) -> Trained:
        """Train the members and return them; the networks and the caller's random state are left alone."""
        with self._apart():
            seed_generators(self.seed, self.device)
            return _Run(self).train()

    def try_a_step(self) -> None:
        """Compute gradients of the first network for two rows, to find what cannot be before anything is trained."""
        first = replace(self.task("row").take([0]), draws=(Draw(self.draws[0].index[:2], 0),))
        with self._apart():
            Squad(first).try_gradients()

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Leave the caller's random state alone, and let neither its device nor its gradient mode matter."""
        on_gpu = self.device.type == "cuda"
        with (
            torch.random.fork_rng(devices=[self.device] if on_gpu else []),
            torch.cuda.device(self.device) if on_gpu else nullcontext(),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            yield

    def task(self, engine: Engine) -> Task:
        """Return what a fleet of all members is to do."""
        return Task(
            self.networks,
            self.loss,
            self.recipe.pace(len(self.networks)),
            self.device,
            self.rows,
            self.draws,
            self.loader,
            self.recipe.batch_size,
            self.recipe.precision,
            engine,
            self.recipe.averaging,
            self.seed,
        )


class _Run:
    """One call of ``Job.train``."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._saved = job.checkpoint.load() or {"phase": None, "best": None}
        self._losses: list[float] = self._saved.get("losses", [math.nan] * len(job.networks))
        self._keeper = Keeper(job.networks)
        self._engine, reason = best_engine(job.networks, self._example())
        if reason is not None:
            warn(
                f"{len(job.networks)} networks cannot be stacked and train one after another: {reason}",
                SlowTrainingWarning,
            )

    def train(self) -> Trained:
        job, recipe = self._job, self._job.recipe
        if self._saved["phase"] == "done":
            self._keeper.load(self._saved["kept"], self._saved["kept_epochs"])
            return self._trained()
        try:
            rows = min((len(draw.index) for draw in job.draws), default=FEWEST_TO_HOLD_OUT)
            if recipe.epochs == "early" and (job.held_out is not None or rows >= FEWEST_TO_HOLD_OUT):
                self._early()
            elif recipe.epochs == "cv" and rows >= 2 * recipe.folds:
                self._fixed(self._best_epochs())
            else:
                self._fixed(recipe.pace(len(job.networks)).epochs)
            job.checkpoint.save({"phase": "done", **self._kept()})
        except KeyboardInterrupt:
            raise TrainingInterrupted(self._trained()) from None
        return self._trained()

    def _fixed(self, epochs: tuple[int, ...]) -> None:
        """Train on all rows, each member for its own number of epochs."""

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            self._keeper.keep(torch.tensor([epoch <= own for own in epochs]), fleet.snapshot(), epoch)
            return torch.tensor([epoch >= own for own in epochs])

        self._train("training", self._job.task(self._engine), max(epochs), judge)

    def _early(self) -> None:
        """Train on most rows, and keep each member as it was when it did best on the others."""
        job, recipe = self._job, self._job.recipe
        held_out: HeldOut
        if job.held_out is None:
            parts = {id(draw): _part(draw, recipe.validation_share) for draw in job.draws}
            held_out = tuple(parts[id(draw)][0] for draw in job.draws)
            task = replace(self._job.task(self._engine), draws=tuple(parts[id(draw)][1] for draw in job.draws))
        else:
            held_out, task = job.held_out, self._job.task(self._engine)
        search = Search(len(job.networks), recipe.patience)

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            better = search.improved(epoch, fleet.losses(held_out))
            if better.any():
                self._keeper.keep(better, fleet.snapshot(), epoch)
            return search.ended

        self._train("training", task, recipe.max_epochs, judge, search)
        self._losses = search.least()

    def _best_epochs(self) -> tuple[int, ...]:
        """Return each member's number of epochs with the least loss, on average over folds.

        The members of all folds train as one fleet. Folds are of equal size; the few rows left over by the
        division train in every fold.
        """
        if self._saved["best"] is not None:
            return tuple(self._saved["best"])
        job, recipe, size = self._job, self._job.recipe, len(self._job.networks)
        parts = {id(draw): folds_of(draw, recipe.folds) for draw in job.draws}
        held_out = tuple(parts[id(draw)][fold][0] for fold in range(recipe.folds) for draw in job.draws)
        kept = tuple(parts[id(draw)][fold][1] for fold in range(recipe.folds) for draw in job.draws)
        task = replace(self._job.task(self._engine).take(list(range(size)) * recipe.folds), draws=kept)
        search = Search(size, recipe.patience)

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            search.improved(epoch, fleet.losses(held_out).view(recipe.folds, size).mean(0))
            return search.ended.repeat(recipe.folds)

        self._train("cross-validation", task, recipe.max_epochs, judge, search)
        best, self._losses = search.best(), search.least()
        self._saved = {"phase": None, "best": list(best)}
        return best

    def _train(self, phase: str, task: Task, epochs: int, judge: Judge, search: Search | None = None) -> None:
        """Train a fleet, from its checkpoint if there is one, and save checkpoints on the way."""
        job, saved = self._job, self._saved
        if saved["phase"] == phase:
            fleet, first = Fleet(task, saved["fleet"], saved["epoch"]), saved["epoch"] + 1
            self._keeper.load(saved["kept"], saved["kept_epochs"])
            if search is not None:
                search.load(saved["search"])
        else:
            fleet, first = Fleet(task), 1

        def after_epoch(epoch: int) -> bool:
            finished = judge(epoch, fleet)
            over = bool(finished.all())
            job.progress(phase, epoch, epochs)
            if phase == "training" and job.after_epoch is not None:
                over |= job.after_epoch(epoch, lambda: self._as_they_are(fleet.snapshot(), finished))
            if not over:
                fleet.dismiss(finished)
            if not over and job.checkpoint.due():
                state = {"phase": phase, "epoch": epoch, "fleet": fleet.state(), "best": saved["best"], **self._kept()}
                job.checkpoint.save(state | ({"search": search.state()} if search is not None else {}))
            return over

        train_loop(fleet, first=first, epochs=epochs, after_epoch=after_epoch)

    def _as_they_are(self, now: State, finished: Tensor) -> State:
        """Return the members as they are, those that are finished as they were kept."""
        state = {name: t.clone() for name, t in now.items()}
        for name, t in self._keeper.kept.items():
            state[name][finished] = t[finished]
        return state

    def _trained(self) -> Trained:
        return Trained(self._keeper.kept, tuple(self._keeper.epochs.tolist()), tuple(self._losses))

    def _kept(self) -> dict[str, Any]:
        return {"kept": self._keeper.kept, "kept_epochs": self._keeper.epochs, "losses": self._losses}

    def _example(self) -> Inputs:
        job = self._job
        if job.rows is not None:
            return job.rows.x[:2].to(job.device)
        assert job.loader is not None
        source = LoaderBatches(job.loader, job.device, 1)
        pieces = next(source.pieces(0))
        return map_tensors(source.batch(*pieces).x, lambda t: t[0, :2])


def _part(draw: Draw, share: float) -> tuple[Draw, Draw]:
    """Return a share of the rows, at least one, and the others, at least one as well."""
    n = len(draw.index)
    held_out, kept = draw.order(0).tensor_split([min(n - 1, max(1, round(share * n)))])
    return Draw(held_out, draw.seed), Draw(kept, draw.seed)


def folds_of(draw: Draw, folds: int) -> list[tuple[Draw, Draw]]:
    """Return for every fold its rows and the others."""
    order = draw.order(0)
    held_out = order[: folds * (len(order) // folds)].view(folds, -1)
    each = held_out.shape[1]
    others = [torch.cat([order[: i * each], order[(i + 1) * each :]]) for i in range(folds)]
    return [(Draw(fold, draw.seed), Draw(rest, draw.seed)) for fold, rest in zip(held_out, others, strict=True)]
