"""How much faster ``fit`` is on more cores: whole fits, each in a process that may use so many cores, in turns."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

TABLES = {
    "1,030 x 8, default": (1030, 8, "default"),
    "20,000 x 12, default": (20_000, 12, "default"),
    "100,000 x 12, fast": (100_000, 12, "fast"),
}
"""Rows, columns and preset."""


def one(name: str, cores: int) -> dict[str, float]:
    """Return the seconds of one fit in this process, on so many cores, after a small fit that loads everything."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import time

    import numpy as np
    import torch

    import guardband as gb

    torch.set_num_threads(cores)
    rows, columns, preset = TABLES[name]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + (0.5 + np.abs(X[:, 3])) * rng.standard_normal(rows)
    options = {"preset": preset, "random_state": 0, "device": "cpu", "split_by": [], "verbose": False}
    gb.IntervalRegressor(**options | {"preset": "fast"}).fit(X[:500], y[:500])
    before, own = time.perf_counter(), time.process_time()
    model = gb.IntervalRegressor(**options).fit(X, y)
    wall = time.perf_counter() - before
    width = float(np.mean(model.predict_interval(X[:1000]).width))
    return {"seconds": wall, "processor": time.process_time() - own, "width": width}


def main() -> None:
    """Print the time on each number of cores, relative to one, as medians over rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--one", nargs=2)
    parser.add_argument("-o", type=Path)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one[0], int(args.one[1]))))
        return
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(args.rounds):
        for name in (name for name in TABLES if args.only in name):
            for cores in args.cores:
                command = [sys.executable, __file__, "--one", name, str(cores)]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    print(done.stderr[-2000:])
                    continue
                found.setdefault((name, cores), []).append(json.loads(done.stdout.splitlines()[-1]))
                print(name, cores, found[name, cores][-1], flush=True)
    rows = []
    for (name, cores), every in found.items():
        seconds = statistics.median(own["seconds"] for own in every)
        one_core = statistics.median(own["seconds"] for own in found.get((name, 1), every))
        rows.append(
            {"table": name, "cores": cores, "seconds": round(seconds, 2), "speed-up": round(one_core / seconds, 2)}
        )
        print(rows[-1])
    if args.o:
        args.o.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
