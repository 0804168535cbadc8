"""Peak memory of quantiles, scores and samples beyond their inputs and outputs, from 10^4 to 10^6 rows.

python benchmarks/distributions/memory.py
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from guardband.bands.distribution import Distribution
from guardband.bands.placement import ByQuantiles
from guardband.learning.placed import LEVELS


def main() -> None:
    """Print the figures."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.random(5000))
    print("      rows  what        seconds  MB beyond inputs and outputs")
    for n in (10_000, 100_000, 1_000_000):
        predictions = np.sort(rng.normal(size=(n, len(LEVELS))), axis=1)
        own, y = Distribution(predictions, ByQuantiles.of(LEVELS), places), rng.normal(size=n)
        for what, compute in (
            ("quantile", lambda own=own: own.quantile([0.05, 0.5, 0.95])),
            ("cdf", lambda own=own, y=y: own.cdf(y)),
            ("crps", lambda own=own, y=y: own.crps(y)),
            ("mean", lambda own=own: own.mean()),
            ("sample", lambda own=own: own.sample(10)),
        ):
            tracemalloc.start()
            began = time.perf_counter()
            out = compute()
            seconds = time.perf_counter() - began
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{n:10,}  {what:10s}  {seconds:7.2f}  {(peak - out.nbytes) / 1e6:8.1f}", flush=True)


if __name__ == "__main__":
    main()
