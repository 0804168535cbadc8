"""Distillation: a small network learns to predict what the average of all copies predicts.

Buciluă, Caruana & Niculescu-Mizil (2006), "Model compression". On rows that trained them, copies predict some of their
noise. So the small network mostly sees rows whose cells come from two training rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.data.encoder import TableEncoder
from guardband.data.table import Table
from guardband.learning.learned import Learned
from guardband.learning.presets import MUON
from guardband.nn.matching import MatchingLoss
from guardband.training.batches import Draw, Rows
from guardband.training.job import Job, Progress
from guardband.training.predict import predict_parts
from guardband.training.recipe import Recipe
from guardband.training.stack import Stack

HIDDEN = (128, 128, 128)
RECIPE = Recipe(epochs=20, learning_rate=0.004, schedule="cosine", averaging=2.0, muon=MUON)
STEPS = 200
"""An epoch has so many steps, whatever the rows are."""
TIMES = 40
"""So many rows are made of each training row, most of them mixed, if that is not more than the next."""
MOST_ROWS = 200_000
MOST_NUMBERS = 2**25
"""Rows of many columns are fewer: together they take at most 128 MiB."""
FROM_ANOTHER = 0.2
"""The share of a mixed row's cells that come from its second row."""


def distill(learned: Learned, table: Table, rows: NDArray[np.intp], turns: int, seed: int, show: Progress) -> Learned:
    """Return the same with one network in place of all copies, or one for each of the ``turns`` that copies take.

    ``rows`` are positions of training rows in the table. No other row is looked at.
    """
    (head,) = learned.heads
    x = _mixed(learned, table, rows, np.random.default_rng(seed))

    def average(outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.stack([outputs[turn::turns].mean(0) for turn in range(turns)])

    parts = predict_parts(learned.members, len(x), x.__getitem__, learned.device, average)
    wanted = np.concatenate([outputs[:, :n] for outputs, n in parts], axis=1)  # (turns, n, columns)
    architecture = replace(learned.architecture, hidden=HIDDEN, dropout=0.0)
    seeds = tuple(range(seed, seed + turns))
    networks = tuple(architecture.build(learned.in_features, head, own, learned.device) for own in seeds)
    job = Job(
        networks,
        MatchingLoss(head.columns),
        replace(RECIPE, batch_size=max(1, len(x) // STEPS)),
        learned.device,
        Rows(torch.from_numpy(x).to(learned.device), torch.from_numpy(wanted).to(learned.device)),
        (Draw(torch.arange(len(x)), seed),) * turns,
        seeds=seeds,
        progress=lambda _, epoch, epochs: show("distilling", epoch, epochs),
    )
    trained = job.train()
    if 0 in trained.epochs:
        raise ValueError("Distillation diverged. Remove distill=True.")
    members = Stack(networks)
    members.restore(trained.state)
    return replace(
        learned,
        architecture=architecture,
        copies=turns,
        members=members,
        epochs=trained.epochs,
        losses=trained.losses,
        dead=(False,) * turns,
        left_out=None,
    )


def _mixed(learned: Learned, table: Table, rows: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.float32]:
    """Return encoded rows: training rows, at most half of all, and rows that are mixed from two of them."""
    assert isinstance(learned.encoder, TableEncoder)
    n = min(TIMES * len(rows), MOST_ROWS, MOST_NUMBERS // learned.in_features)
    some = random.permutation(rows)[:n]
    cells = learned.encoder.rows(table.take(some))
    plain = min(len(some), n // 2)
    first, second = (random.integers(len(some), size=n) for _ in range(2))
    first[:plain] = second[:plain] = np.arange(plain)
    swapped = random.random((n, cells.shape[1])) < FROM_ANOTHER
    mixed: NDArray[np.float32] = learned.encoder.encode_rows(np.where(swapped, cells[second], cells[first]), np)
    return mixed
