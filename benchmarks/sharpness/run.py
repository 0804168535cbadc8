"""Guardband beside what else a user could pick: the same splits, the same calibration rows, 90% intervals.

python benchmarks/sharpness/run.py -o FOLDER [--tables bike house] [--methods catboost guardband-default]
    [--repetitions 10] [--environments FOLDER] [--file TABLE.csv --target COLUMN]
    [--jobs 1] [--threads 2] [--device cpu] [--independent-rows]

Every cell is one method on one split in a process of its own; a run that was stopped goes on where it stopped. Peers
run in environments of their own, made by environments.sh. Several jobs at a time have cores of their own, as many each
as they have threads. The table and the plot are made by report.py, at the end and by itself.
"""

from __future__ import annotations

import argparse
import csv
import os
import queue
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from rich.progress import Progress
from tables import NAMES, any_table, split, table

import guardband as gb
from report import report

HERE = Path(__file__).parent
OURS = {"guardband-fast": "fast", "guardband-default": "default", "guardband-best": "best"}
TREES = ("lightgbm", "hist-gradient-boosting", "catboost", "quantile-forest", "ngboost")
NETWORKS = ("realmlp", "tabm")
COLUMNS = ("table", "method", "repetition", "n_test", "n_calibration", "covered", "coverage", "length", "score")
COLUMNS += ("worst_slab", "mae", "fit_seconds", "predict_seconds", "device")


def main() -> None:
    """Run all cells that are not done yet."""
    asked = arguments()
    asked.output.mkdir(parents=True, exist_ok=True)
    results = asked.output / "results.csv"
    done = set()
    if results.exists():
        frame = pd.read_csv(results)
        frame = frame[frame["device"] == asked.device]
        done = set(zip(frame["table"], frame["method"], frame["repetition"], strict=True))
    tables = [asked.file.stem] if asked.file else asked.tables
    cells = [(t, m, r) for r in range(asked.repetitions) for t in tables for m in asked.methods]
    cores = shares_of_cores(asked.jobs, asked.threads)
    with Progress() as progress, ThreadPoolExecutor(asked.jobs) as pool:
        task = progress.add_task("", total=len(cells), completed=len(done & set(cells)))
        running = [pool.submit(run_cell, *cell, asked, cores) for cell in cells if cell not in done]
        try:
            for finished in as_completed(running):
                row = finished.result()
                with results.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(row)
                progress.update(task, advance=1, description=f"{row['table']} {row['method']} {row['repetition']}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    report(asked.output)


def shares_of_cores(jobs: int, threads: int) -> queue.SimpleQueue[list[str]]:
    """Return for each job what begins its command: one alone has all cores, several have some of their own."""
    shares: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    usable = sorted(os.sched_getaffinity(0)) if jobs > 1 else []
    if len(usable) < jobs * threads and jobs > 1:
        raise SystemExit(f"{jobs} jobs of {threads} threads need as many cores, found {len(usable)}.")
    for job in range(jobs):
        own = usable[job * threads : (job + 1) * threads]
        shares.put(["taskset", "-c", ",".join(map(str, own))] if own else [])
    return shares


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--file", type=Path, help="a CSV or Parquet file of one's own")
    parser.add_argument("--target", help="its response")
    every = [*OURS, *TREES, *NETWORKS]
    parser.add_argument("--methods", nargs="+", choices=every, default=every)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--environments", type=Path, default=HERE / "environments")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--independent-rows", action="store_true", help="take repeated rows for independent ones")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where networks train")
    asked = parser.parse_args()
    if (asked.file is None) != (asked.target is None):
        parser.error("--file and --target go together")
    return asked


def run_cell(
    name: str, method: str, repetition: int, asked: argparse.Namespace, cores: queue.SimpleQueue[list[str]]
) -> dict[str, object]:
    """Return the row of one method on one split."""
    x, y = any_table(asked.file, asked.target) if asked.file else table(name)
    parts = split(len(y), repetition)
    with tempfile.TemporaryDirectory() as folder:
        for part, rows in zip(("d1", "d2", "d3"), parts, strict=True):
            x.iloc[rows].assign(**{"the response": y[rows]}).to_parquet(Path(folder) / f"{part}.parquet", index=False)
        own = cores.get()
        independent = ["independent"] if asked.independent_rows and method in OURS else []
        try:
            subprocess.run(
                [*own, *command(method, asked.environments), folder, asked.device, *independent],
                check=True,
                env=os.environ | {"OMP_NUM_THREADS": str(asked.threads)},
                stdout=subprocess.DEVNULL,
            )
        finally:
            cores.put(own)
        found = np.load(Path(folder) / "bands.npz")
        bands = gb.Intervals(found["lower"], found["point"], found["upper"], confidence_level=0.9)
    y3, x3 = y[parts[2]], x.iloc[parts[2]]
    numbers = x3.select_dtypes("number").to_numpy()
    covered = int(((bands.lower <= y3) & (y3 <= bands.upper)).sum())
    fit, predict = found["seconds"]
    return {
        "table": name,
        "method": method,
        "repetition": repetition,
        "n_test": len(y3),
        "n_calibration": len(parts[1]),
        "covered": covered,
        "coverage": covered / len(y3),
        "length": gb.metrics.mean_length(y3, bands),
        "score": np.mean(gb.metrics.interval_score(y3, bands)),
        "worst_slab": gb.metrics.worst_slab_coverage(y3, bands, numbers),
        "mae": np.abs(bands.point - y3).mean(),
        "fit_seconds": fit,
        "predict_seconds": predict,
        "device": asked.device,
    }


def command(method: str, environments: Path) -> list[str]:
    """Return the program that runs a method, but for the folder."""
    if method in OURS:
        return [sys.executable, str(HERE / "ours.py"), OURS[method]]
    python = environments / ("trees" if method in TREES else "networks") / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{method} needs {python}: run benchmarks/sharpness/environments.sh.")
    return [str(python), str(HERE / "peers.py"), method]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
