"""How long to train: a number of epochs, cross-validation on the training rows, or early stopping on a part of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from guardband.exceptions import SlowTrainingWarning, warn
from guardband.training.batches import Draw, HeldOut, LoaderBatches, seed_generators
from guardband.training.fleet import Fleet
from guardband.training.inputs import Inputs, map_tensors
from guardband.training.job import DRAWS, best_engine
from guardband.training.job import AfterEpoch as AfterEpoch
from guardband.training.job import Job as Job
from guardband.training.job import Progress as Progress
from guardband.training.job import Trained as Trained
from guardband.training.loop import train_loop
from guardband.training.members import State, stacked_state
from guardband.training.processes import processes_for, train_in_processes
from guardband.training.resume import fits, fleet_fits
from guardband.training.search import Keeper, Search
from guardband.training.shared import Stream
from guardband.training.squad import Squad

FEWEST_TO_HOLD_OUT = 20
MOST_LEFT_OUT = 0.1
"""The share of rows by which folds of whole entities may differ and still be made equal by leaving rows out."""

UNFIT = "holds networks of other shapes than this run"

Judge = Callable[[int, Fleet], Tensor]
"""Looks at a fleet after an epoch and says which members, ``(M,)``, are finished."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``trained`` is what had been reached after the last whole epoch."""

    def __init__(self, trained: Trained) -> None:
        super().__init__("Training was interrupted.")
        self.trained = trained


def train(job: Job) -> Trained:
    """Train the members of a job and return them; the networks and the caller's random state are left alone."""
    with job.apart():
        seed_generators(job.seeds[0], job.device)
        return _Run(job).train()


def try_a_step(job: Job) -> None:
    """Compute gradients of the first network for two rows, to find what cannot be before anything is trained."""
    first = replace(job.take([0]), draws=(Draw(job.draws[0].index[:2], 0),), engine="row")
    with job.apart():
        Squad(first).try_gradients()


class _Run:
    """One call of ``train``."""

    def __init__(self, job: Job) -> None:
        engine, reason = best_engine(job.networks, _example(job))
        self._job = job = replace(job, engine=engine)
        self._saved = job.checkpoint.load() or {"phase": None, "best": None}
        if not fits(self._saved, job):
            raise job.checkpoint.unusable(UNFIT)
        self._losses: list[float] = self._saved.get("losses", [math.nan] * len(job.networks))
        self._keeper = Keeper(job.networks)
        if reason is not None:
            warn(
                f"{len(job.networks)} networks cannot be trained together, and are trained one after another: {reason}",
                SlowTrainingWarning,
            )
        if engine == "seeded" and job.device.type == "cuda":
            warn(
                f"A training step is not captured as a CUDA graph and runs piece by piece: {DRAWS}", SlowTrainingWarning
            )

    def train(self) -> Trained:
        job, recipe = self._job, self._job.recipe
        if self._saved["phase"] == "done":
            self._keeper.load(self._saved["kept"], self._saved["kept_epochs"])
            return self._trained()
        processes = processes_for(job)
        if processes > 1:
            return train_in_processes(job, processes)
        try:
            rows = min((len(draw.index) for draw in job.draws), default=FEWEST_TO_HOLD_OUT)
            if recipe.epochs == "early" and (job.held_out is not None or rows >= FEWEST_TO_HOLD_OUT):
                self._early()
            elif recipe.epochs == "cv" and rows >= 2 * recipe.folds:
                self._fixed(self._best_epochs())
            else:
                self._fixed(recipe.horizons())
            job.checkpoint.save({"phase": "done", **self._kept()})
        except KeyboardInterrupt:
            raise TrainingInterrupted(self._trained()) from None
        return self._trained()

    def _fixed(self, epochs: tuple[int, ...]) -> None:
        """Train on all rows, each member for its own number of epochs."""

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            self._keeper.keep(torch.tensor([epoch <= own for own in epochs]), fleet.snapshot(), epoch)
            return torch.tensor([epoch >= own for own in epochs])

        self._train("training", self._job, max(epochs), judge)
        trained = [name for name, p in self._job.networks[0].named_parameters() if p.requires_grad]
        diverged = torch.zeros(self._job.size, dtype=torch.bool)
        for t in (t for name, t in self._keeper.kept.items() if name in trained):
            diverged |= ~t.isfinite().flatten(1).all(1).cpu()
        self._keeper.keep(diverged, stacked_state(self._job.networks), 0)

    def _early(self) -> None:
        """Train on most rows, and keep each member as it was when it did best on the others."""
        job, recipe = self._job, self._job.recipe
        held_out: HeldOut | Stream
        if job.held_out is None:
            parts = {id(draw): _part(draw, recipe.validation_share) for draw in job.draws}
            held_out = tuple(parts[id(draw)][0] for draw in job.draws)
            job = replace(job, draws=tuple(parts[id(draw)][1] for draw in job.draws))
        else:
            held_out = job.held_out
        search = Search(len(job.networks), recipe.patience)

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            better = search.improved(epoch, fleet.losses(held_out))
            if better.any():
                self._keeper.keep(better, fleet.snapshot(), epoch)
            return search.ended

        self._train("training", job, recipe.max_epochs, judge, search)
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
        # Training on all rows for as many epochs takes as long as one fold of these.
        deadline = job.deadline.share(recipe.folds / (recipe.folds + 1))
        fold_job = replace(job.take(list(range(size)) * recipe.folds), draws=kept, deadline=deadline)
        search = Search(size, recipe.patience)

        def judge(epoch: int, fleet: Fleet) -> Tensor:
            search.improved(epoch, fleet.losses(held_out).view(recipe.folds, size).mean(0))
            return search.ended.repeat(recipe.folds)

        self._train("cross-validation", fold_job, recipe.max_epochs, judge, search)
        best, self._losses = search.best(), search.least()
        self._saved = {"phase": None, "best": list(best), "losses": self._losses}
        return best

    def _train(self, phase: str, job: Job, epochs: int, judge: Judge, search: Search | None = None) -> None:
        """Train a fleet, from its checkpoint if there is one, and save checkpoints on the way and at Ctrl-C."""
        saved = whole = self._saved
        if saved["phase"] == phase:
            if not fleet_fits(saved, job, epochs, None if search is None else self._job.size):
                raise job.checkpoint.unusable(UNFIT)
            fleet, first = Fleet(job, saved["fleet"], saved["epoch"]), saved["epoch"] + 1
            self._keeper.load(saved["kept"], saved["kept_epochs"])
            if search is not None:
                search.load(saved["search"])
        else:
            fleet, first = Fleet(job), 1

        def after_epoch(epoch: int) -> bool:
            nonlocal whole
            finished = judge(epoch, fleet)
            over = bool(finished.all())
            if not over:
                fleet.dismiss(finished)
            if job.checkpoint.wanted:
                state = {"phase": phase, "epoch": epoch, "fleet": fleet.state(), "best": saved["best"], **self._kept()}
                whole = state | ({"search": search.state()} if search is not None else {})
            job.progress(phase, epoch, epochs)
            if phase == "training" and job.after_epoch is not None:
                over |= job.after_epoch(epoch, lambda: self._as_they_are(fleet.snapshot(), finished))
            if not over and job.checkpoint.due():
                job.checkpoint.save(whole)
            return over

        try:
            train_loop(fleet, first=first, epochs=epochs, after_epoch=after_epoch)
        except KeyboardInterrupt:
            job.checkpoint.save(whole)
            raise

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


def _example(job: Job) -> Inputs:
    """Return two rows as networks see them."""
    if job.rows is not None:
        return map_tensors(job.rows.x, lambda t: t[:2].to(job.device))
    if isinstance(job.loader, Stream):
        return job.loader.example()
    assert job.loader is not None
    source = LoaderBatches(job.loader, job.device, 1)
    pieces = next(source.pieces(0))
    return map_tensors(source.batch(*pieces).x, lambda t: t[0, :2])


def _part(draw: Draw, share: float) -> tuple[Draw, Draw]:
    """Return a share of the rows, at least one, and the others, at least one as well; entities stay whole."""
    n = len(draw.index)
    if draw.entity is not None:
        ((held_out, kept), *_) = _folds_of_entities(draw, max(2, round(1 / share)))
        return held_out, kept
    taken, kept_rows = draw.order(0).tensor_split([min(n - 1, max(1, round(share * n)))])
    return Draw(taken, draw.seed), Draw(kept_rows, draw.seed)


def _folds_of_entities(draw: Draw, folds: int, most: int | None = None) -> list[tuple[Draw, Draw]]:
    """Return for every fold the rows of some entities and those of the others, the folds about equally large.

    The largest entities are dealt first, each to the fold with the fewest rows. If that leaves folds nearly equal, the
    last rows beyond the smallest are left out, so that all members can train as one. With fewer entities than folds
    some folds are the same.
    """
    assert draw.entity is not None
    shuffle = torch.randperm(len(draw.index), generator=torch.Generator().manual_seed(draw.seed))
    index = draw.index[shuffle]
    _, number = torch.unique(draw.entity[shuffle], return_inverse=True)
    sizes = number.bincount()
    deal = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(draw.seed))
    deal = deal[sizes[deal].argsort(descending=True, stable=True)]
    different = min(folds, len(sizes))
    rows, fold_of = [0] * different, torch.zeros(len(sizes), dtype=torch.long)
    for entity in deal.tolist():
        fold_of[entity] = least = rows.index(min(rows))
        rows[least] += int(sizes[entity])
    even = max(rows) - min(rows) <= MOST_LEFT_OUT * len(index)
    fewest = (min(rows), len(index) - max(rows)) if even else (len(index), len(index))
    wanted = folds if most is None else min(folds, most)
    out = []
    for i in range(min(different, wanted)):
        inside = fold_of[number] == i
        held_out, kept = index[inside][: fewest[0]], index[~inside][: fewest[1]]
        out.append((Draw(held_out, draw.seed), Draw(kept, draw.seed)))
    return [out[i % different] for i in range(wanted)]


def folds_of(draw: Draw, folds: int, most: int | None = None) -> list[tuple[Draw, Draw]]:
    """Return for every fold its rows and the others, or for the first ``most`` of them: the others are many."""
    if draw.entity is not None:
        return _folds_of_entities(draw, folds, most)
    order = draw.order(0)
    held_out = order[: folds * (len(order) // folds)].view(folds, -1)
    each = held_out.shape[1]
    held_out = held_out[:most]
    others = [torch.cat([order[: i * each], order[(i + 1) * each :]]) for i in range(len(held_out))]
    return [(Draw(fold.clone(), draw.seed), Draw(rest, draw.seed)) for fold, rest in zip(held_out, others, strict=True)]
