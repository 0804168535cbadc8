"""Rows for the tests of guardband on Ray."""

import numpy as np
import pyarrow as pa

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
