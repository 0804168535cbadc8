"""A long table of numbers in single precision: the peak memory of each step, and whether ``fit`` holds a time limit.

Memory is what a step needs at its peak beyond what imports need, the rows themselves included, as a multiple of the
rows in single precision. Every figure is from a process of its own. Models train for two epochs: what they have learnt
does not matter here, and more epochs need no more memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STEPS = ("fit", "calibrate", "predict")
FEW = 20_000
"""Rows of the model that ``calibrate`` and ``predict`` start from."""
CHUNK = 100_000


def peak() -> int:
    """Return the most bytes of memory that this process has had."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])


def rows(n: int, columns: int) -> tuple[Any, Any]:
    """Return rows and targets in single precision, made in chunks."""
    import numpy as np

    random = np.random.default_rng(0)
    X, y = np.empty((n, columns), dtype=np.float32), np.empty(n, dtype=np.float32)
    for start in range(0, n, CHUNK):
        part = X[start : start + CHUNK]
        random.standard_normal(out=part, dtype=np.float32)
        noise = random.standard_normal(len(part), dtype=np.float32)
        y[start : start + CHUNK] = part[:, 0] + np.sin(2 * part[:, 1]) + (0.5 + (part[:, 2] > 0)) * noise
    return X, y


def measure(step: str, n: int, columns: int, preset: str | float) -> dict[str, float]:
    """Return how long a step takes in this process, and its peak memory as a multiple of the rows."""
    import guardband as gb

    limited = not isinstance(preset, str)
    arguments: dict[str, Any] = {"preset": preset, "random_state": 0} | ({} if limited else {"max_epochs": 2})
    make = gb.IntervalRegressor  # which imports torch
    before = peak()
    few, few_y = rows(FEW, columns)
    model = make(**arguments | {"preset": "fast", "max_epochs": 2}).fit(few, few_y)
    X, y = rows(n, columns)
    started = time.perf_counter()
    if step == "fit":
        make(**arguments).fit(X, y)
    elif step == "calibrate":
        X += 1e-3  # no row stands among those that trained
        model.calibrate(X, y)
    else:
        model.predict_interval(X)
    return {"seconds": time.perf_counter() - started, "multiple": (peak() - before) / X.nbytes}


def measured(step: str, n: int, columns: int, preset: str | float) -> dict[str, float]:
    """Return the same from a process of its own."""
    program = [sys.executable, __file__, "--rows", str(n), "--columns", str(columns), "--preset", str(preset)]
    done = subprocess.run([*program, "--step", step], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--steps", nargs="*", default=STEPS, choices=STEPS)
    parser.add_argument("--limits", nargs="*", type=float, default=[30.0, 60.0], help="seconds, for half the columns")
    parser.add_argument("--limited-rows", type=int, default=1_000_000)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step is not None:
        preset = asked.preset if asked.preset.isalpha() else float(asked.preset)
        print(json.dumps(measure(asked.step, asked.rows, asked.columns, preset)))
        return
    print(f"{os.cpu_count()} cores, {asked.rows:,} rows of {asked.columns} numbers, preset {asked.preset}")
    for step in asked.steps:
        found = measured(step, asked.rows, asked.columns, asked.preset)
        print(f"{step}: peak {found['multiple']:.2f} times the rows, {found['seconds']:.1f} s", flush=True)
    for limit in asked.limits:
        took = measured("fit", asked.limited_rows, asked.columns // 2, limit)["seconds"]
        print(
            f"fit with preset={limit:g} on {asked.limited_rows:,} rows of {asked.columns // 2} numbers: {took:.1f} s, "
            f"{took / limit - 1:+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
