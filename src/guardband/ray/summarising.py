"""What workers tell of pieces of calibration rows; scores and fingerprints stay in the object store."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from guardband.calibration.rejection_cut import seed_of
from guardband.calibration.summary import Array, Summary
from guardband.calibration.weighted_search import WeightTotals
from guardband.data.entities import seed_of as seed_of_entities
from guardband.data.fingerprint import Prints, count_overlap, smallest_prints
from guardband.ray.cluster import Shared, in_order, task, workers
from guardband.ray.models import NONE, Asked
from guardband.ray.pieces import Reader, Source, name_of, pieces_of
from guardband.ray.spread import Held

SAMPLE = 1 << 14
"""So many fingerprints are kept of rows that are only counted: an audit knows such rows again."""
AHEAD = 4
"""So many pieces for each worker are under way at most."""


@dataclass(frozen=True)
class Told:
    """What a worker tells of a piece of calibration rows; scores and fingerprints stay in the object store.

    Parameters
    ----------
    held : Held or None
        Counts of the scores, None if counts are not enough for the rule.
    keeps_rows : bool
        Whether the rule keeps something of each row.
    n : int
        The number of rows that were calibrated on.
    totals : dict of arrays
        What the rule adds up over the rows.
    missing : int
        How many rows have no true value.
    known : int
        How many rows also occur among the training rows.
    is_whole : tuple of bool
        Whether all true values of each target are whole numbers.
    lacking : int
        How many other rows lack one of several targets, and cannot calibrate.
    smallest : array
        The smallest of the rows' fingerprints.
    weights : WeightTotals or None
        What is to be known of their weights, if they have any.
    seed : int
        A hash of their scores and weights, or of what they belong to and their true values.
    """

    held: Held | None
    keeps_rows: bool
    n: int
    totals: dict[str, Array]
    missing: int
    known: int
    is_whole: tuple[bool, ...]
    lacking: int
    smallest: Prints
    weights: WeightTotals | None = None
    seed: int = 0


def summarised(asked: Asked, reader: Reader, source: Source) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield of each piece what is told, references to what is kept of its rows and to fingerprints, and the piece.

    In place of what is told a worker may say that it failed.

    Parameters
    ----------
    asked : Asked
        The model.
    reader : Reader
        Reads the rows.
    source : Files or ray.data.Dataset
        The rows.
    """
    shared, run = Shared((asked, reader)), task(_summarised, returns=3)
    calls = (partial(_begun, run, shared, piece) for piece in pieces_of(source))
    yield from in_order(calls, AHEAD * workers())


def _begun(run: Any, shared: Shared, piece: Any) -> list[Any]:
    told, block, prints = run.remote(shared, piece)
    return [told, block, prints, piece]


def _summarised(shared: Shared, piece: Any) -> tuple[Told, dict[str, Array], Any]:
    """Return what is told of a piece, what the rule keeps of each of its rows, and their fingerprints."""
    import torch

    torch.set_num_threads(1)
    asked, reader = shared.get()
    total: Summary | None = None
    prints, missing, lacking, known = [], 0, 0, 0
    is_whole: tuple[bool, ...] = ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table, y, absent in reader.rows(piece):
            missing += absent
            if asked.needs_all_targets:
                complete = ~np.isnan(y).any(axis=1)
                lacking += int((~complete).sum())
                table, y = table.filter(complete), y[complete]
            if not len(y):
                continue
            own = asked.summarised(table, y, name_of(piece))
            total = own.summary if total is None else total + own.summary
            prints.append(own.prints)
            known += count_overlap(own.prints, asked.training_prints)
            is_whole = tuple(map(all, zip(is_whole, own.is_whole, strict=True))) if is_whole else own.is_whole
    if total is None:
        return Told(None, False, 0, {}, missing, 0, (), lacking, NONE), {}, None
    block = dict(total.joined().blocks[0]) if total.blocks else {}
    held = Held.of(asked.rule.countable(block), asked.groups) if asked.can_count and block else None
    every = np.concatenate(prints)
    told = Told(
        held,
        bool(block),
        total.n,
        dict(total.totals),
        missing,
        known,
        is_whole,
        lacking,
        smallest_prints(every, SAMPLE),
    )
    if "weight" in block:
        scores, weights = block["score"], block["weight"]
        told = replace(told, weights=WeightTotals.of(scores, weights), seed=seed_of(scores, weights))
    if "y" in block:
        told = replace(told, seed=seed_of_entities(block["entity"], block["y"]))
    return told, block, every
