"""Rows for the tests of guardband on Ray."""

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

QUICK = {"preset": "fast", "hidden": (8,), "max_epochs": 2, "random_state": 0, "verbose": False}
COLUMNS = ["a", "b", "letter"]


def table(n, seed):
    """Return rows whose noise grows with b."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    y = a + rng.standard_normal(n) * (1 + abs(b))
    return pa.table({"a": a, "b": b, "letter": rng.choice(["u", "v", "w"], n), "y": y, "id": np.arange(n)})


def frame(rows):
    """Return what a model learns from."""
    return rows.select(COLUMNS).to_pandas()


def write(folder, rows, parts):
    """Write rows into so many files, and return their pattern."""
    folder.mkdir(parents=True)
    for i, part in enumerate(np.array_split(np.arange(len(rows)), parts)):
        parquet.write_table(rows.take(part), folder / f"{i}.parquet")
    return str(folder / "*.parquet")


def same_networks(one, other):
    """Assert that what was learnt twice is the same, but for rounding."""
    a, b = (learned.members.snapshot() for learned in (one, other))
    assert one.epochs == other.epochs
    for name, t in a.items():
        # Products of stacks of other sizes differ in their last bits, and so do the steps that follow.
        torch.testing.assert_close(t, b[name], rtol=1e-4, atol=1e-5)
