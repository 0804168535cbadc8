"""A problem: the rows of one repetition, and what is known about them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.bands.intervals import Intervals
from guardband.data.artificial import PaperModel
from guardband.data.table import Table, read_table

Array = NDArray[np.float64]
N_TEST = 20_000


@dataclass(frozen=True)
class Part:
    """Rows with their responses."""

    table: Table
    y: Array


@dataclass(frozen=True)
class Problem:
    """One repetition: ``d1`` trains, ``d2`` calibrates, ``d3`` judges.

    Of artificial data the oracle and beta'x on ``d3`` are known.
    """

    repetition: int
    seed: int
    d1: Part
    d2: Part
    d3: Part
    oracle: Intervals | None = None
    signal: Array | None = None


def generator(seed: int, *what: str | int) -> np.random.Generator:
    """Return random numbers that depend on the run's seed and on what they are for, and on nothing else."""
    return np.random.default_rng([seed, *(zlib.crc32(str(word).encode()) for word in what)])


def simulated(n: int, repetition: int, seed: int, n_test: int = N_TEST) -> Problem:
    """Return n rows of the artificial data, three quarters of them training rows, and new ones to judge on."""
    random = generator(seed, "simulation", n, repetition)
    model = PaperModel()
    X, y = model.draw(n, random)
    X_test, y_test = model.draw(n_test, random)
    n1 = n - n // 4
    return Problem(
        repetition,
        int(random.integers(2**31 - 1)),
        Part(read_table(X[:n1]), y[:n1]),
        Part(read_table(X[n1:]), y[n1:]),
        Part(read_table(X_test), y_test),
        model.oracle(X_test),
        model.signal(X_test),
    )


def partitioned(table: Table, y: Array, name: str, repetition: int, seed: int) -> Problem:
    """Return all rows of a table, parted at random 3 : 1 : 1."""
    random = generator(seed, name, repetition)
    order, fifth = random.permutation(len(y)), len(y) // 5
    d2, d3, d1 = order[:fifth], order[fifth : 2 * fifth], order[2 * fifth :]
    own = int(random.integers(2**31 - 1))
    one, two, three = (Part(table.take(rows), y[rows]) for rows in (d1, d2, d3))
    return Problem(repetition, own, one, two, three)
