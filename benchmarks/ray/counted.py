"""Calibrates on scores that never meet, and measures time, memory and how much travels.

    python benchmarks/ray/counted.py --scores 100000000 --workers 2
    python benchmarks/ray/counted.py --scores 20000000 --of weights
    python benchmarks/ray/counted.py --scores 20000000 --of entities

Scores are drawn by the workers, block by block. The threshold is checked by counting once more: fewer than k scores are
below it, and at least k are not above it. No other number has both properties. Of rows with weights, and of entities
that share one, the same is checked with exact sums of weights. Entities have five rows on average, in any blocks.
"""

from __future__ import annotations

import argparse
import json
import time
from fractions import Fraction
from functools import partial

import numpy as np
from processes import Peak

import guardband.calibration.weighted_search as weighted_search
import guardband.data.order_statistics as order_statistics
import guardband.data.weight_statistics as weight_statistics
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.calibration.cut import MarginalCut, SharedCut
from guardband.calibration.weighted_cut import WeightedCut
from guardband.calibration.weighted_search import WeightTotals
from guardband.data.exact_sum import ExactSum
from guardband.data.fingerprint import mix
from guardband.ray.cluster import in_order, task
from guardband.ray.meeting import EntityScores, met
from guardband.ray.spread import Held, Spread, with_weights

BLOCK = 1 << 20
LEVELS = Levels.of([0.8, 0.9, 0.99], None)


def drawn(seed, n, of, every):
    """Return scores, and what is told of them."""
    rng = np.random.default_rng(seed)
    block = {"score": rng.exponential(size=n)}
    if of == "weights":
        block["weight"] = np.exp(rng.standard_normal(n))
        return (Held.of(block, 0), WeightTotals.of(block["score"], block["weight"])), block
    if of == "entities":
        number = rng.integers(0, every // 5, n).astype(np.uint64)
        block["entity"] = mix(np.zeros(n, dtype=np.uint64), number).view(np.int64)
    return (Held.of(block, 0), None), block


def around(reference, threshold):
    """Return how much scores below a threshold weigh, and how much those that are not above it."""
    import ray

    (own,) = reference
    block = ray.get(own)
    below, not_above = block["score"] < threshold, block["score"] <= threshold
    if "weight" in block:
        return np.array([ExactSum.of(block["weight"][rows]).exact for rows in (below, not_above)])
    if "size" in block:
        counts = [np.bincount(block["size"][rows].astype(np.int64)) for rows in (below, not_above)]
        return np.array([sum(Fraction(int(k), i) for i, k in enumerate(own) if k) for own in counts])
    return np.array([below.sum(), not_above.sum()])


def calibrated(of, blocks, told):
    """Return the thresholds of rows of weight 0, what weights must reach there, and the blocks that say so."""
    held, totals = zip(*told, strict=True)
    n = sum(own.n["score"] for own in held)
    if of == "rows":
        found = MarginalCut().calibrate_counted(Spread("score", blocks, held), LEVELS, False)
        return found.arrays["threshold"], list(found.promise.rank), blocks
    if of == "weights":
        every = sum(totals, WeightTotals())
        cut = WeightedCut()
        found = cut.calibrate_counted(with_weights(blocks, every), LEVELS, False)
        thresholds = cut.thresholds(found.arrays, Context(weight=np.zeros(1)))[0]
        return thresholds, [level * every.sum.exact for level in LEVELS.values], blocks
    together = met(blocks, n, None)
    found = SharedCut().calibrate_counted(EntityScores(together, "score", held), LEVELS, False)
    return found.arrays["threshold"], [level * (together.entities + 1) for level in LEVELS.values], together.blocks


def watch(kind, sent):
    """Note how large the answers to questions of a kind are."""
    together = kind.together

    def watched(self, answers):
        sent.extend(answer.nbytes for answer in answers)
        return together(self, answers)

    kind.together = watched


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scores", type=int, default=10**8)
    parser.add_argument("--of", choices=["rows", "weights", "entities"], default="rows")
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
    for kind in (order_statistics.Digits, weight_statistics.WeightDigits, weighted_search.Between):
        watch(kind, sent)
    with Peak() as peak:
        began = time.monotonic()
        run = task(drawn, returns=2)
        sizes = [min(BLOCK, asked.scores - first) for first in range(0, asked.scores, BLOCK)]
        begin = (partial(run.remote, i, n, asked.of, asked.scores) for i, n in enumerate(sizes))
        calls = ((lambda own=own: list(own())) for own in begin)
        told, blocks = zip(*in_order(calls, 2 * asked.workers), strict=True)
        made = time.monotonic()
        thresholds, reached, checked = calibrated(asked.of, list(blocks), told)
        done = time.monotonic()
    counts = []
    check = task(around)
    for needed, threshold in zip(reached, thresholds, strict=True):
        below, not_above = sum(ray.get([check.remote([own], threshold) for own in checked]))
        counts.append(bool(below < needed <= not_above))
    print(
        json.dumps(
            {
                "scores": asked.scores,
                "of": asked.of,
                "workers": asked.workers,
                "seconds to draw": round(made - began, 1),
                "seconds to calibrate": round(done - made, 1),
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
