"""Calibrates on scores that never meet, and measures time, memory and how much travels.

    python benchmarks/ray/counted.py --scores 100000000 --workers 2

Scores are drawn by the workers, block by block. The threshold is checked by counting once more: fewer than k scores are
below it, and at least k are not above it. No other number has both properties.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from processes import Peak

import guardband.data.order_statistics as order_statistics
from guardband.bands.levels import Levels
from guardband.calibration.cut import MarginalCut
from guardband.ray.cluster import in_order, task
from guardband.ray.spread import Held, Spread

BLOCK = 1 << 20


def drawn(seed, n):
    """Return scores, and what is told of them."""
    scores = np.random.default_rng(seed).exponential(size=n)
    block = {"score": scores}
    return Held.of(block, 0), block


def around(reference, threshold):
    """Return how many scores are below a threshold, and how many are not above it."""
    import ray

    (own,) = reference
    scores = ray.get(own)["score"]
    return np.array([(scores < threshold).sum(), (scores <= threshold).sum()])


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scores", type=int, default=10**8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", type=int, default=1100, help="MB of the object store")
    asked = parser.parse_args()
    import ray

    ray.init(
        address="local",
        num_cpus=asked.workers,
        object_store_memory=asked.store << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=40,
    )
    sent = []
    together = order_statistics.Digits.together

    def watched(self, answers):
        sent.extend(answer.nbytes for answer in answers)
        return together(self, answers)

    order_statistics.Digits.together = watched
    with Peak() as peak:
        began = time.monotonic()
        run = task(drawn, returns=2)
        sizes = [min(BLOCK, asked.scores - first) for first in range(0, asked.scores, BLOCK)]
        calls = ((lambda i=i, n=n: list(run.remote(i, n))) for i, n in enumerate(sizes))
        held, blocks = zip(*in_order(calls, 2 * asked.workers), strict=True)
        made = time.monotonic()
        spread = Spread("score", list(blocks), list(held))
        found = MarginalCut().calibrate_counted(spread, Levels.of([0.8, 0.9, 0.99], None), False)
        calibrated = time.monotonic()
    counts = []
    check = task(around)
    for k, threshold in zip(found.promise.rank, found.arrays["threshold"], strict=True):
        below, not_above = sum(ray.get([check.remote([own], threshold) for own in blocks]))
        counts.append(bool(below < k <= not_above))
    print(
        json.dumps(
            {
                "scores": spread.n,
                "workers": asked.workers,
                "seconds to draw": round(made - began, 1),
                "seconds to calibrate": round(calibrated - made, 1),
                "peak MB of all processes": peak.most >> 20,
                "peak MB of the driver": peak.driver >> 20,
                "answers": len(sent),
                "largest answer, bytes": max(sent),
                "exact": counts,
            },
            indent=1,
        )
    )
    ray.shutdown()


if __name__ == "__main__":
    main()
