"""Guardband beside what else a user could pick: the same splits, the same calibration rows, 90% intervals.

python benchmarks/sharpness/run.py -o FOLDER [--tables bike house] [--methods catboost guardband-default]
    [--repetitions 10] [--environments FOLDER] [--file TABLE.csv --target COLUMN]

Every cell is one method on one split in a process of its own; a run that was stopped goes on where it stopped. Peers
run in environments of their own, made by environments.sh. The table and the plot are made by report.py, at the end
and by itself.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from report import report
from rich.progress import Progress
from tables import NAMES, any_table, split, table

import guardband as gb

HERE = Path(__file__).parent
OURS = {"guardband-fast": "fast", "guardband-default": "default", "guardband-best": "best"}
TREES = ("lightgbm", "hist-gradient-boosting", "catboost", "quantile-forest", "ngboost")
NETWORKS = ("realmlp", "tabm")
COLUMNS = ("table", "method", "repetition", "n_test", "n_calibration", "covered", "coverage", "length", "score")
COLUMNS += ("worst_slab", "mae", "fit_seconds", "predict_seconds")


def main() -> None:
    """Run all cells that are not done yet."""
    asked = arguments()
    asked.output.mkdir(parents=True, exist_ok=True)
    results = asked.output / "results.csv"
    done = set()
    if results.exists():
        frame = pd.read_csv(results)
        done = set(zip(frame["table"], frame["method"], frame["repetition"], strict=True))
    tables = [asked.file.stem] if asked.file else asked.tables
    cells = [(t, m, r) for r in range(asked.repetitions) for t in tables for m in asked.methods]
    with Progress() as progress:
        task = progress.add_task("", total=len(cells))
        for cell in cells:
            progress.update(task, description=" ".join(map(str, cell)))
            if cell not in done:
                row = run_cell(*cell, asked)
                with results.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(row)
            progress.advance(task)
    report(asked.output)


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
    asked = parser.parse_args()
    if (asked.file is None) != (asked.target is None):
        parser.error("--file and --target go together")
    return asked


def run_cell(name: str, method: str, repetition: int, asked: argparse.Namespace) -> dict[str, object]:
    """Return the row of one method on one split."""
    x, y = any_table(asked.file, asked.target) if asked.file else table(name)
    parts = split(len(y), repetition)
    with tempfile.TemporaryDirectory() as folder:
        for part, rows in zip(("d1", "d2", "d3"), parts, strict=True):
            x.iloc[rows].assign(**{"the response": y[rows]}).to_parquet(Path(folder) / f"{part}.parquet", index=False)
        subprocess.run(
            [*command(method, asked.environments), folder],
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": str(asked.threads)},
            stdout=subprocess.DEVNULL,
        )
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
