"""What intervals by cross-validation cost: peak memory beyond the model, and time beside a model with held-out rows.

Bar at 10,000 training rows and 10,000 new rows: less than 300 MB beyond the model, and at most 3 times the time of
``predict_interval`` of a model with ``calibration="split"``. Every round times all models, one after the other, and
what counts is the median of the ratios within rounds: a busy machine slows a round as a whole.

python benchmarks/cross/memory_and_time.py [rows] [new rows] [rounds]
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import guardband as gb

PAGE = 4096


def resident() -> float:
    """Return the memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def peak(work: Callable[[], Any]) -> float:
    """Return by how many MB memory rises above where it was, at most, looked at every millisecond."""
    before, most, done = resident(), [0.0], threading.Event()

    def look() -> None:
        while not done.is_set():
            most[0] = max(most[0], resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return most[0] - before


def seconds(work: Callable[[], Any]) -> float:
    """Return the time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def memory(folder: str) -> None:
    """Print what ``predict_interval`` of a saved model needs beyond the model, its rows and its result."""
    torch.set_num_threads(1)
    model, new = gb.load(f"{folder}/model"), np.load(f"{folder}/new.npy")
    model.predict_interval(new[:100])
    print(f"{peak(lambda: model.predict_interval(new)):6.0f} MB beyond the model (bar 300)")


def main() -> None:
    """Print memory and ratios."""
    if sys.argv[1:2] == ["--memory"]:
        return memory(sys.argv[2])
    n, new, rounds = (int(given) for given in (*sys.argv[1:], *("10000", "10000", "7")[len(sys.argv) - 1 :]))
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n + new, 10))
    y = x[:, 0] + np.sin(3 * x[:, 1]) + np.exp(0.5 * x[:, 2]) * rng.standard_normal(n + new)
    models = {}
    for kind in ("split", "cv+", "cv-minmax"):
        made = gb.IntervalRegressor("conf-nn", calibration=kind, max_epochs=3, random_state=0, split_by=[])
        print(f"fit {kind}: {seconds(lambda made=made: made.fit(x[:n], y[:n])):.1f} s", flush=True)
        models[kind] = made
    few = x[n : n + 100]
    for own in models.values():
        own.predict_interval(few)  # the first call takes longer
    print(f"{n:,} rows, {new:,} new rows, {torch.get_num_threads()} thread")
    with TemporaryDirectory() as folder:
        np.save(f"{folder}/new.npy", x[n:])
        for kind, own in models.items():
            own.save(f"{folder}/model")  # a process of its own: this one has memory to spare from training
            again = [sys.executable, __file__, "--memory", folder]
            print(f"{kind:10} {subprocess.run(again, check=True, capture_output=True, text=True).stdout.strip()}")
    times: dict[str, list[float]] = {kind: [] for kind in models}
    for _ in range(rounds):
        for kind, own in models.items():
            times[kind].append(seconds(lambda own=own: own.predict_interval(x[n:])))
    for kind, own in times.items():
        ratio = median(a / b for a, b in zip(own, times["split"], strict=True))
        print(f"{kind:10} predict_interval {median(own):.3f} s, {ratio:.2f} times the split model's (bar 3)")


if __name__ == "__main__":
    main()
