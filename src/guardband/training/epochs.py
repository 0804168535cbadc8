"""How long to train: a given number of epochs, cross-validation on D1, or early stopping on a part of D1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from guardband.training.batches import Rows, ShuffledBatches
from guardband.training.loop import AfterEpoch, RowLoss, train_loop
from guardband.training.recipe import Recipe
from guardband.training.stack import Members, State, stack

EVALUATION_BLOCK = 8192
FEWEST_TO_HOLD_OUT = 20

Build = Callable[[int], nn.Module]
Progress = Callable[[str, int, int], None]
"""Called after every epoch with what is being done, the epoch and their number."""


class MemberLoss(RowLoss, Protocol):
    """A loss whose members can be picked."""

    def take(self, members: Sequence[int], /) -> MemberLoss:
        """Return the loss of some of the members."""


@dataclass(frozen=True)
class Trained:
    """Trained members, each with the number of epochs that it kept."""

    members: Members
    epochs: tuple[int, ...]


def train_members(
    build: Build,
    seeds: Sequence[int],
    loss: MemberLoss,
    rows: Rows,
    recipe: Recipe,
    seed: int,
    progress: Progress,
) -> Trained:
    """Train one network per seed as a stack, all on the same rows, and return them.

    ``build(seed)`` gives a fresh network on the rows' device; equal seeds start equal. The loss has one
    level per member. The caller's random state is left alone.
    """
    devices = [rows.x.device] if rows.x.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        return _Job(build, tuple(seeds), loss, rows, recipe, seed, progress).train()


@dataclass(frozen=True)
class _Job:
    """One call of ``train_members``."""

    build: Build
    seeds: tuple[int, ...]
    loss: MemberLoss
    rows: Rows
    recipe: Recipe
    seed: int
    progress: Progress

    def train(self) -> Trained:
        recipe, n = self.recipe, len(self.rows)
        if recipe.epochs == "early" and n >= FEWEST_TO_HOLD_OUT:
            return self._early()
        if recipe.epochs == "cv" and n >= 2 * recipe.folds:
            return self._fixed(self._best_epochs())
        epochs = recipe.max_epochs if isinstance(recipe.epochs, str) else int(recipe.epochs)
        return self._fixed((epochs,) * len(self.seeds))

    def _fixed(self, epochs: tuple[int, ...]) -> Trained:
        """Train on all rows, each member for its own number of epochs."""
        members = self._members(self.seeds)
        keep = _Keeper(members)

        def after_epoch(epoch: int) -> bool:
            keep.where(torch.tensor([epoch == own for own in epochs]))
            self.progress("training", epoch, max(epochs))
            return False

        self._run(members, torch.arange(len(self.rows)), self.loss, max(epochs), after_epoch)
        keep.restore()
        return Trained(members, epochs)

    def _early(self) -> Trained:
        """Train on most rows, and keep each member as it was when it did best on the others."""
        n, recipe = len(self.rows), self.recipe
        held_out, kept = torch.randperm(n).tensor_split([max(1, round(recipe.validation_share * n))])
        members = self._members(self.seeds)
        keep, search = _Keeper(members), _Search(members.size, recipe.patience)

        def after_epoch(epoch: int) -> bool:
            keep.where(search.improved(epoch, _evaluate(members, self.rows, held_out, self.loss)))
            self.progress("training", epoch, recipe.max_epochs)
            return search.over

        self._run(members, kept, self.loss, recipe.max_epochs, after_epoch)
        keep.restore()
        return Trained(members, search.best)

    def _best_epochs(self) -> tuple[int, ...]:
        """Return each member's number of epochs with the least loss, on average over folds.

        The members of all folds train as one stack. Folds are of equal size; the few rows left over by the
        division train in every fold.
        """
        n, size, folds = len(self.rows), len(self.seeds), self.recipe.folds
        order = torch.randperm(n)
        held_out = order[: folds * (n // folds)].view(folds, -1)
        kept = torch.stack([order[~torch.isin(order, fold)] for fold in held_out])
        own = list(range(size)) * folds
        members, loss = self._members([self.seeds[i] for i in own]), self.loss.take(own)
        search = _Search(size, self.recipe.patience)

        def after_epoch(epoch: int) -> bool:
            losses = _evaluate(members, self.rows, held_out.repeat_interleave(size, 0), loss)
            search.improved(epoch, losses.view(folds, size).mean(0))
            self.progress("cross-validation", epoch, self.recipe.max_epochs)
            return search.over

        self._run(members, kept.repeat_interleave(size, 0), loss, self.recipe.max_epochs, after_epoch)
        return search.best

    def _members(self, seeds: Sequence[int]) -> Members:
        return stack([self.build(seed) for seed in seeds], self.rows.x[:2])

    def _run(self, members: Members, index: Tensor, loss: RowLoss, epochs: int, after_epoch: AfterEpoch) -> None:
        train_loop(
            members,
            ShuffledBatches(self.rows, index.to(self.rows.x.device), self.recipe.batch_size, self.seed),
            loss,
            epochs=epochs,
            learning_rate=self.recipe.learning_rate,
            weight_decay=self.recipe.weight_decay,
            after_epoch=after_epoch,
        )


class _Search:
    """Each member's search for its best epoch, which ends ``patience`` epochs after the last improvement."""

    def __init__(self, size: int, patience: int) -> None:
        self._patience = patience
        self._least = torch.full((size,), torch.inf)
        self._best = torch.ones(size, dtype=torch.int)
        self._searching = torch.ones(size, dtype=torch.bool)

    def improved(self, epoch: int, losses: Tensor) -> Tensor:
        """Return which members have a new least loss, ``(M,) -> (M,)``."""
        better = (losses < self._least) & self._searching
        self._least[better], self._best[better] = losses[better], epoch
        self._searching &= epoch - self._best < self._patience
        return better

    @property
    def over(self) -> bool:
        """Whether every member's search has ended."""
        return not bool(self._searching.any())

    @property
    def best(self) -> tuple[int, ...]:
        """Each member's best epoch so far; refused where no epoch had a finite loss."""
        if not self._least.isfinite().all():
            raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")
        return tuple(self._best.tolist())


class _Keeper:
    """Remembers members as they were at their own best epoch."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._kept: State = members.snapshot()

    def where(self, mask: Tensor) -> None:
        """Remember the marked members as they are now."""
        if mask.any():
            for name, now in self._members.snapshot().items():
                self._kept[name][mask] = now[mask]

    def restore(self) -> None:
        """Bring every member back to what was remembered."""
        self._members.restore(self._kept)


@torch.no_grad()
def _evaluate(members: Members, rows: Rows, index: Tensor, loss: RowLoss) -> Tensor:
    """Return each member's mean loss on the rows at ``(n,)`` or ``(M, n)`` positions, ``(M,)`` on the CPU."""
    members.train(False)
    total, mass = torch.zeros(members.size), torch.zeros(members.size)
    block = max(1, EVALUATION_BLOCK // (members.size if index.ndim == 2 else 1))
    for part in torch.split(index.to(rows.x.device), block, dim=-1):
        batch = rows.at(part)
        losses = loss.rows(members(batch.x, shared=batch.shared), batch.y)
        weight = torch.ones_like(batch.y) if batch.weight is None else batch.weight
        total += (losses * weight).sum(-1).cpu()
        mass += weight.sum(-1).cpu()
    return total / mass
