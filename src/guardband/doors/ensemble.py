"""The default for tables: copies over folds of D1, each stopped by the rows that it did not see, and averaged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from guardband.doors.learning import (
    ROWS_FOR_HEALTH,
    SEEDS_OF_A_COPY,
    Architecture,
    Learned,
    Lesson,
    refuse_divergence,
    refuse_infinite,
)
from guardband.methods.method import NetworkSpec
from guardband.nn.heads import Head, Nest, Triple
from guardband.nn.mixed import stack_losses
from guardband.training.batches import Draw, Rows
from guardband.training.epochs import FEWEST_TO_HOLD_OUT, Job, Progress, folds_of
from guardband.training.members import State
from guardband.training.predict import predict
from guardband.training.recipe import Recipe
from guardband.training.stack import stack

LARGEST_BATCH, SMALLEST_BATCH, BATCHES = 256, 32, 32
FEWEST_STEPS, MOST_STEPS = 200, 4000
FEWEST_EPOCHS = 8
"""A copy goes on for so many epochs beyond its best one, but for no fewer and, if that is more than two epochs, no more
than so many steps."""
LONGEST_EPOCH = 1000
"""An epoch has at most so many steps: those of long tables are parts of a pass."""
MOST_HELD_OUT = 20_000
"""Rows by which a copy is stopped: more would say no more, and would not train."""


@dataclass(frozen=True)
class Ensemble:
    """So many copies, trained for at most so many seconds."""

    copies: int
    seconds: float = math.inf


def nest_of(specs: Sequence[NetworkSpec], architecture: Architecture) -> Nest | None:
    """Return the head that puts out all bands of these networks at once, if there is one: they must be triples."""
    heads = [spec.head for spec in specs]
    triples = [head for head in heads if isinstance(head, Triple) and head.power == 1 and head.point == "median"]
    if not architecture.tabular or architecture.ordering != "softplus" or len(triples) < len(heads):
        return None
    return Nest(tuple(head.tau for head in triples))


def learn_ensemble(
    lesson: Lesson,
    head: Head,
    architecture: Architecture,
    recipe: Recipe,
    ensemble: Ensemble,
    *,
    device: torch.device,
    progress: Progress,
    keeps_held_out: bool = False,
) -> Learned:
    """Return the copies, with bands of held-out rows if asked. Given a number of epochs, all train on all rows."""
    n, width = lesson.x.shape
    rows = Rows(
        torch.from_numpy(lesson.x).to(device),
        torch.from_numpy(lesson.y).float().to(device),
        None if lesson.weight is None else torch.from_numpy(lesson.weight).float().to(device),
    )
    whole = Draw(torch.arange(n), lesson.seed)
    draws, held_out = (whole,) * ensemble.copies, None
    if recipe.epochs == "early" and n >= max(FEWEST_TO_HOLD_OUT, ensemble.copies):
        folds = folds_of(whole, max(ensemble.copies, math.ceil(n / MOST_HELD_OUT)))[: ensemble.copies]
        parts = math.ceil(n / (recipe.batch_size * LONGEST_EPOCH))
        draws = tuple(replace(rest, parts=parts) for _, rest in folds)
        held_out = tuple(fold for fold, _ in folds)
    seeds = [lesson.seed + SEEDS_OF_A_COPY * copy for copy in range(ensemble.copies)]
    networks = tuple(architecture.build(width, head, seed, device) for seed in seeds)
    ends = time.monotonic() + ensemble.seconds

    def is_over(epoch: int, state: Callable[[], State]) -> bool:
        return time.monotonic() > ends

    trained = Job(
        networks,
        stack_losses([head.loss().to(device) for _ in networks], device),
        recipe,
        device,
        rows,
        draws,
        held_out=held_out,
        seeds=tuple(seeds),
        progress=progress,
        after_epoch=is_over if ensemble.seconds < math.inf else None,
    ).train()
    refuse_divergence(trained)
    members = stack(networks, rows.x[:2])
    members.restore(trained.state)
    learned = Learned(
        lesson.encoder,
        lesson.target,
        architecture,
        (head,) * ensemble.copies,
        members,
        trained.epochs,
        width,
        device,
        trained.losses,
        (False,) * ensemble.copies,
    )
    refuse_infinite(learned.bands_of(lesson.x[:ROWS_FOR_HEALTH]), recipe)
    if held_out is None:
        return learned
    learned = replace(learned, choices=f"the epochs of {ensemble.copies} copies")
    if not keeps_held_out:
        return learned
    unseen = np.concatenate([draw.index.numpy() for draw in held_out])
    copy = np.repeat(np.arange(ensemble.copies), [len(draw.index) for draw in held_out])
    outputs = predict(members, lesson.x[unseen], device)[copy, np.arange(len(unseen))].astype(np.float64)
    return replace(learned, held_out=(lesson.target.bands_to_work(head.bands(outputs)), unseen))


def suited(recipe: Recipe, n: int, batch_size: int | None, patience: int | None) -> Recipe:
    """Return the recipe with a batch size and a patience that suit so many rows, where they are not given."""
    if batch_size is None:
        batch_size = min(LARGEST_BATCH, max(SMALLEST_BATCH, 2 ** round(math.log2(n / BATCHES))))
    if patience is None:
        steps = min(LONGEST_EPOCH, max(1, n // batch_size))
        patience = max(2, min(FEWEST_EPOCHS, math.ceil(MOST_STEPS / steps)), math.ceil(FEWEST_STEPS / steps))
    return replace(recipe, batch_size=batch_size, patience=patience)
