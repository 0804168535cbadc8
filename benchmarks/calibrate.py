"""Calibrating ten million bands: time beside one ``numpy.partition`` of as many values, and memory beyond the scores.

python benchmarks/calibrate.py [rows]
"""

import sys
import time
import tracemalloc

import numpy as np

import guardband as gb


def seconds(work) -> float:
    """Return the least of five times."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print the ratio and the memory."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    rng = np.random.default_rng(0)
    point = rng.standard_normal(n)
    lower, upper, y = point - 1 - rng.random(n), point + 1 + rng.random(n), point + rng.standard_normal(n)
    partition = seconds(lambda: np.partition(y, n * 9 // 10))
    fit = seconds(lambda: gb.BandCalibrator().fit(lower, point, upper, y))
    tracemalloc.start()
    gb.BandCalibrator().fit(lower, point, upper, y)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    print(f"{n:,} bands: {fit:.3f} s, {fit / partition:.2f} times a partition ({partition:.3f} s); bar: 5")
    print(f"memory beyond inputs and scores: {peak - 8 * n / 1e6:.0f} MB; bar: 200")


if __name__ == "__main__":
    main()
