"""A long table of numbers in single precision: the peak memory of each step, and whether ``fit`` holds a time limit.

Memory is what a step needs at its peak, the rows themselves included, as a multiple of the rows in single precision:
beyond what imports and a small fit hold, because on a GPU its libraries alone take about as much as the rows, and
beyond what imports hold. Every figure is from a process of its own. Models train for two epochs: what they have learnt
does not matter here, and more epochs need no more memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

STEPS = ("fit", "calibrate", "predict")
FEW = 20_000
"""Rows of the model that ``calibrate`` and ``predict`` start from."""
CHUNK = 100_000


def memory(which: str) -> int:
    """Return how many bytes of memory this process has, VmRSS, or the most that it has had, VmHWM."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if which in line).split()[1])


class Watch:
    """Remembers where the main thread was when the process had most memory."""

    def __init__(self) -> None:
        self._most, self.where = 0, ""
        threading.Thread(target=self._look, args=(threading.get_ident(),), daemon=True).start()

    def _look(self, main: int) -> None:
        while True:
            if (now := memory("VmRSS")) > self._most:
                frames = traceback.extract_stack(sys._current_frames()[main])
                own = [f"{Path(one.filename).stem}.{one.name}" for one in frames if "guardband" in one.filename]
                self._most, self.where = now, " < ".join(own[:-5:-1])
            time.sleep(0.02)


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


def measure(step: str, n: int, columns: int, preset: str | float) -> dict[str, Any]:
    """Return how long a step takes in this process, its peak memory as multiples of the rows, and where that was."""
    import guardband as gb

    limited = not isinstance(preset, str)
    arguments: dict[str, Any] = {"preset": preset, "random_state": 0} | ({} if limited else {"max_epochs": 2})
    make = gb.IntervalRegressor  # which imports torch
    imports = memory("VmHWM")
    few, few_y = rows(FEW, columns)
    model = make(**arguments | {"preset": "fast", "max_epochs": 2}).fit(few, few_y)
    libraries = memory("VmRSS")
    X, y = rows(n, columns)
    watch, started = Watch(), time.perf_counter()
    if step == "fit":
        make(**arguments).fit(X, y)
    elif step == "calibrate":
        X += 1e-3  # no row stands among those that trained
        model.calibrate(X, y)
    else:
        model.predict_interval(X)
    seconds, most = time.perf_counter() - started, memory("VmHWM")
    multiples = {"multiple": (most - libraries) / X.nbytes, "beyond imports": (most - imports) / X.nbytes}
    return {"seconds": seconds, "where": watch.where} | multiples


def measured(step: str, n: int, columns: int, preset: str | float) -> dict[str, Any]:
    """Return the same from a process of its own."""
    program = [sys.executable, __file__, "--rows", str(n), "--columns", str(columns), "--preset", str(preset)]
    done = subprocess.run([*program, "--step", step], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
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
        beyond = f"{found['beyond imports']:.2f} beyond imports, in {found['where']}"
        print(f"{step}: peak {found['multiple']:.2f} times the rows, {beyond}; {found['seconds']:.1f} s", flush=True)
    for limit in asked.limits:
        took = measured("fit", asked.limited_rows, asked.columns // 2, limit)["seconds"]
        print(
            f"fit with preset={limit:g} on {asked.limited_rows:,} rows of {asked.columns // 2} numbers: {took:.1f} s, "
            f"{took / limit - 1:+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
