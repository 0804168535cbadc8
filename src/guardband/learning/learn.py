"""Learning: networks for sets of training rows, all of them trained as one fleet, and a look at their health."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from guardband.exceptions import DegenerateBandWarning, warn
from guardband.learning.architecture import Architecture
from guardband.learning.each_member import loss_of_each, recipe_of_each, seed_of
from guardband.learning.effort import LONGEST_EPOCH, Effort
from guardband.learning.learned import Learned
from guardband.learning.training_rows import Array, TrainingRows
from guardband.methods.method import NetworkSpec
from guardband.nn.each_target import EachTarget
from guardband.nn.heads import Head, Triple
from guardband.nn.mixed import take_losses
from guardband.training.batches import Draw, Rows
from guardband.training.deadline import NEVER, Deadline
from guardband.training.epochs import FEWEST_TO_HOLD_OUT, Job, Progress, Trained, folds_of
from guardband.training.health import DEAD_SHARE, dead_shares, mean_leaves, varied_targets
from guardband.training.members import Members
from guardband.training.predict import BLOCK, predict, rows_at_a_time
from guardband.training.recipe import Recipe
from guardband.training.stack import Stack, stack

Trainer = Callable[[Job], Trained]
"""Trains the networks of a job: here, or on other machines."""
ROWS_FOR_HEALTH = 10_000
MOST_HELD_OUT = 20_000
"""Rows by which a copy is stopped: more would say no more, and would not train."""
ROWS_TO_TIME = 8 * BLOCK
"""Rows that are predicted before training if time is limited, to see how long those after it will take."""
CAUTION = 1.1
"""How many times as long as that it may take on a busy machine."""


def learn(
    sets: Sequence[TrainingRows],
    specs: Sequence[NetworkSpec],
    architecture: Architecture,
    recipe: Recipe,
    effort: Effort,
    *,
    device: torch.device,
    progress: Progress,
    deadline: Deadline = NEVER,
    predicted_later: int = 0,
    trainer: Trainer = Job.train,
) -> list[Learned]:
    """Return what each set of training rows teaches, with a network for each spec and copy: all train as one fleet.

    The networks of a set start alike, those of a copy apart. The heads are of one kind. Sets whose tables have
    different numbers of columns once encoded train one after another. Before the ``deadline`` there is time to predict
    so many rows more; each network trains for at least one step. The ``trainer`` says where networks are trained.
    """
    widths = [rows.x.shape[1] for rows in sets]
    learned: dict[int, Learned] = {}
    for width in dict.fromkeys(widths):
        which = [i for i, own in enumerate(widths) if own == width]
        own = [sets[i] for i in which]
        fleet = _Fleet(own, specs, architecture, recipe, effort, device, progress, deadline, predicted_later, trainer)
        learned |= zip(which, fleet.train(), strict=True)
    return [learned[i] for i in range(len(sets))]


@dataclass(frozen=True)
class _Member:
    """One network of the fleet: of which set of rows, which copy, for which spec."""

    owner: int
    copy: int
    spec: NetworkSpec


@dataclass(frozen=True)
class _Fleet:
    """The networks of sets that have one number of inputs: those of the first set, of the second, ..."""

    sets: Sequence[TrainingRows]
    specs: Sequence[NetworkSpec]
    architecture: Architecture
    recipe: Recipe
    effort: Effort
    device: torch.device
    progress: Progress
    deadline: Deadline
    predicted_later: int
    trainer: Trainer

    @cached_property
    def training_ends(self) -> Deadline:
        """When training must end to leave time for what follows: a look at held-out rows, at health, predictions."""
        if not self.deadline.is_set:
            return self.deadline
        members = self._stack(0)
        some = self.sets[0].x[: max(ROWS_TO_TIME, rows_at_a_time(members, self.device))]
        predict(members, some[:BLOCK], self.device)  # the first call takes longer
        started = self.deadline.clock()
        predict(members, some, self.device)
        seconds = (self.deadline.clock() - started) / len(some)
        held_out = sum(max((len(fold.index) for _, fold in own if fold is not None), default=0) for own in self.draws)
        looked_at = held_out + 2 * len(self.sets) * self.rows_for_health
        return self.deadline.sooner(CAUTION * seconds * (looked_at + self.predicted_later))

    @cached_property
    def members(self) -> list[_Member]:
        copies = range(self.effort.copies)
        return [_Member(i, copy, spec) for i in range(len(self.sets)) for copy in copies for spec in self.specs]

    @cached_property
    def rows(self) -> Rows:
        """All rows of all sets, one behind the other, on the device."""
        weights = [np.ones(len(own.x)) if own.weight is None else own.weight for own in self.sets]
        weighted = any(own.weight is not None for own in self.sets)
        return Rows(
            torch.from_numpy(_behind_each_other([own.x for own in self.sets])).to(self.device),
            self.targets,
            torch.from_numpy(np.concatenate(weights)).float().to(self.device) if weighted else None,
        )

    @cached_property
    def targets(self) -> torch.Tensor:
        """What networks learn of all rows, ``(n,)``, or ``(M, n)`` if copies take turns with several scales.

        With q targets it is ``(M, n, q)``.
        """
        turns = max(len(own.y) for own in self.sets)
        each = [_behind_each_other([own.y[turn % len(own.y)] for own in self.sets]) for turn in range(turns)]
        y = [torch.from_numpy(own).float().to(self.device) for own in each]
        if turns > 1:
            return torch.stack([y[one.copy % turns] for one in self.members])
        return y[0] if y[0].ndim == 1 else y[0].expand(len(self.members), *y[0].shape)

    @cached_property
    def loss(self) -> Any:
        return loss_of_each([one.spec for one in self.members], self.device)

    @cached_property
    def recipes(self) -> Recipe:
        """The recipe with each member's own weight decay and limit of the gradient."""
        return recipe_of_each(self.recipe, [one.spec for one in self.members])

    @cached_property
    def draws(self) -> list[list[tuple[Draw, Draw | None]]]:
        """The rows that train each set's copies, and those that stop them, if they train on folds."""
        out: list[list[tuple[Draw, Draw | None]]] = []
        first, copies = 0, self.effort.copies
        least = max(copies, self.effort.folds)
        for own in self.sets:
            n = len(own.x)
            entity = None if own.entity is None else torch.from_numpy(own.entity)
            whole = Draw(torch.arange(first, first + n), own.seed, entity=entity)
            if least > 1 and self.recipe.epochs == "early" and n >= max(FEWEST_TO_HOLD_OUT, least):
                folds = folds_of(whole, max(least, math.ceil(n / MOST_HELD_OUT)), copies)
                parts = math.ceil(n / (self.recipe.batch_size * LONGEST_EPOCH))
                out.append([(replace(rest, parts=parts), fold) for fold, rest in folds])
            else:
                out.append([(whole, None)] * copies)
            first += n
        return out

    def train(self) -> list[Learned]:
        """Return the trained networks of each set; those with a dead side are trained again from another start."""
        if self.architecture.builder is not None:
            example = self._network(self.members[0], 0)
            _refuse_other_outputs(example, self.specs[0].head, self.rows.x[:256])
        ends = self.training_ends
        trained = self._trained(range(len(self.members)), 0)
        stacks = [self._stack(i) for i in range(len(self.sets))]
        dead = first = self._dead(trained, stacks)
        attempt = 0
        while dead.any() and attempt < self.effort.restarts and not ends.is_over:
            attempt += 1
            again = np.flatnonzero(dead).tolist()
            trained = _replaced(trained, again, self._trained(again, attempt))
            dead = self._dead(trained, stacks)
        if first.any() and self.effort.restarts:
            outcome = f"{dead.sum()} still have" if dead.any() else "none has"
            warn(
                f"{first.sum()} of {len(first)} networks had a side of no width on more than {DEAD_SHARE:.0%} of the "
                f'rows. After {attempt} restart(s) {outcome}. Use ordering="softplus", which always has two sides.',
                DegenerateBandWarning,
            )
        return [self._learned(i, trained, stacks[i], first) for i in range(len(self.sets))]

    def _trained(self, which: Sequence[int], attempt: int) -> Trained:
        own = [self.draws[self.members[i].owner][self.members[i].copy] for i in which]
        orders = {id(rest): replace(rest, seed=rest.seed + attempt) for rest, _ in own}  # equal ones stay one object
        held_out = tuple(fold for _, fold in own if fold is not None)
        job = Job(
            tuple(self._network(self.members[i], attempt) for i in which),
            take_losses(self.loss, which),
            self.recipes.take(which),
            self.device,
            self.rows.take(which),
            tuple(orders[id(rest)] for rest, _ in own),
            held_out=held_out if len(held_out) == len(own) else None,
            seeds=tuple(self._seed(self.members[i], attempt) for i in which),
            progress=self.progress,
            deadline=self.training_ends,
            squads="processes",
        )
        trained = self.trainer(job)
        if 0 in trained.epochs:
            raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")
        return trained

    def _seed(self, one: _Member, attempt: int) -> int:
        return seed_of(self.sets[one.owner].seed, one.copy, one.spec, attempt)

    def _network(self, one: _Member, attempt: int) -> nn.Module:
        return self.architecture.build(self.rows.x.shape[1], one.spec.head, self._seed(one, attempt), self.device)

    def _place(self, owner: int) -> slice:
        each = self.effort.copies * len(self.specs)
        return slice(owner * each, (owner + 1) * each)

    def _stack(self, owner: int) -> Members:
        networks = [self._network(one, 0) for one in self.members[self._place(owner)]]
        if self.architecture.builder is None:
            return Stack(networks)  # guardband's own networks can always be stacked
        return stack(networks, self.rows.x[:2])

    @property
    def rows_for_health(self) -> int:
        """Rows to look at after training: a block tells whether networks diverged, more tell which sides are dead."""
        head = self.specs[0].head
        one = head.base if isinstance(head, EachTarget) else head
        return ROWS_FOR_HEALTH if isinstance(one, Triple) else BLOCK

    def _outputs(self, owner: int, trained: Trained, members: Members) -> tuple[Array, NDArray[np.intp]]:
        """Return what a set's networks put out for some of its rows, ``(M, n, columns)``, and which rows these are."""
        rows, own = self.sets[owner], self._place(owner)
        looked_at = np.random.default_rng(rows.seed).permutation(len(rows.x))[: self.rows_for_health]
        members.restore({name: t[own] for name, t in trained.state.items()})
        outputs = predict(members, rows.x[looked_at], self.device).astype(np.float64)
        if not np.isfinite(outputs).all():
            raise ValueError(
                f"Training diverged: predictions are not finite. Lower learning_rate={self.recipe.learning_rate}."
            )
        return outputs, looked_at

    def _dead(self, trained: Trained, stacks: Sequence[Members]) -> NDArray[np.bool_]:
        """Return which networks have a dead side, ``(M,)``; only a triple can, where there is something to learn."""
        dead, head = np.zeros(len(self.members), dtype=bool), self.specs[0].head
        one, targets = (head.base, head.targets) if isinstance(head, EachTarget) else (head, 1)
        for i, rows in enumerate(self.sets):
            varied = varied_targets(rows.y, targets)
            if isinstance(one, Triple) and varied.any():
                outputs, _ = self._outputs(i, trained, stacks[i])
                bands = outputs.reshape(*outputs.shape[:2], targets, 3)[:, :, varied]
                dead[self._place(i)] = dead_shares(bands) > DEAD_SHARE
        return dead

    def _learned(self, owner: int, trained: Trained, members: Members, dead: NDArray[np.bool_]) -> Learned:
        rows, own = self.sets[owner], self._place(owner)
        outputs, looked_at = self._outputs(owner, trained, members)
        heads = [one.spec.head for one in self.members[own]]
        taus = [head.tau for head in heads if isinstance(head, Triple) and head.point == "mean"]
        if taus and mean_leaves(outputs, rows.y[0, looked_at], taus).any():
            warn(
                "The predicted mean lies outside its interval in some training rows, because the target is skewed. "
                'guardband widened these intervals. Use point="median" or target_transform="log" to avoid that.',
                DegenerateBandWarning,
            )
        folds = [fold for _, fold in self.draws[owner] if fold is not None]
        left_out, first = np.full(len(rows.x), -1), sum(len(before.x) for before in self.sets[:owner])
        for copy, fold in enumerate(folds):
            left_out[fold.index.numpy() - first] = copy
        return Learned(
            rows.encoder,
            rows.target,
            self.architecture,
            tuple(spec.head for spec in self.specs),
            self.effort.copies,
            members,
            trained.epochs[own],
            rows.x.shape[1],
            self.device,
            trained.losses[own],
            tuple(dead[own].tolist()),
            left_out if folds else None,
            ", ".join(filter(None, (f"the epochs of {self.effort.copies} copies" if folds else "", rows.choice))),
        )


def _behind_each_other(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as one; a single one, which may be large, is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _replaced(trained: Trained, which: Sequence[int], fresh: Trained) -> Trained:
    state = {name: t.clone() for name, t in trained.state.items()}
    epochs, losses = list(trained.epochs), list(trained.losses)
    for j, i in enumerate(which):
        epochs[i], losses[i] = fresh.epochs[j], fresh.losses[j]
        for name in state:
            state[name][i] = fresh.state[name][j]
    return Trained(state, tuple(epochs), tuple(losses))


def _refuse_other_outputs(network: nn.Module, head: Head, x: torch.Tensor) -> None:
    with torch.no_grad():
        out = network.eval()(x)
    found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
    if isinstance(head, Triple):
        crosses = found == (len(x), 3) and bool((out.diff(dim=-1) < 0).any())
        if found != (len(x), 3) or crosses:
            raise ValueError(
                "A network of your own must put out lower, point and upper in order, (n, 3), found "
                f"{'bounds that cross' if crosses else found}. End it with gb.nn.TripleHead."
            )
    elif found != (len(x), head.columns):
        raise ValueError(
            f"A network of your own must put out (n, {head.columns}) for this method, which reads a "
            f"{type(head).__name__} off it, found {found}."
        )
    else:
        predicted = head.read(out.cpu().numpy()[None, None])
        faults, holds = predicted.faults()
        if faults.any():
            raise ValueError(f"A network of your own must put out {holds} in every row. {predicted.hint}")
