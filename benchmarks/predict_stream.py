"""``guardband predict`` on a large table beside the network's bare forward pass: throughput, and memory by size.

Every figure is for rows of 20 numbers. The forward pass runs on encoded rows that lie in memory, in the blocks that the
library predicts in and in larger ones; the faster of the two counts. Commands run in processes of their own, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv, parquet

import guardband as gb

COLUMNS = 20
BLOCKS = (1024, 16_384)
CHUNK = 100_000


def write_tables(folder: Path, rows: int) -> dict[str, Path]:
    """Write the same rows as Parquet and CSV, in chunks."""
    random = np.random.default_rng(0)
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    paths = {kind: folder / f"{rows}.{kind}" for kind in ("parquet", "csv")}
    with parquet.ParquetWriter(paths["parquet"], schema) as first, csv.CSVWriter(paths["csv"], schema) as second:
        for start in range(0, rows, CHUNK):
            values = random.standard_normal((min(CHUNK, rows - start), COLUMNS)).round(4)
            table = pa.table(list(values.T), schema=schema)
            first.write_table(table)
            second.write_table(table)
    return paths


def fit(folder: Path, preset: str) -> tuple[gb.IntervalRegressor, Path]:
    """Fit a model in two epochs: what it has learnt does not matter here."""
    random = np.random.default_rng(1)
    X = random.standard_normal((3000, COLUMNS))
    table = pa.table({f"x{i}": X[:, i] for i in range(COLUMNS)})
    model = gb.IntervalRegressor(preset=preset, max_epochs=2, random_state=0).fit(table, X[:, 0])
    path = folder / f"{preset}.guardband"
    model.save(path)
    return model, path


@torch.no_grad()
def forward_seconds(model: gb.IntervalRegressor, rows: int) -> float:
    """Return how long the bare forward pass takes for so many rows, with the better block."""
    members = model.fitted_.learned.members
    members.train(False)
    x = torch.randn(rows, COLUMNS)
    best = float("inf")
    for block in BLOCKS:
        members(x[:block][None])
        started = time.perf_counter()
        for start in range(0, rows, block):
            members(x[start : start + block][None])
        best = min(best, time.perf_counter() - started)
    return best


def command_seconds(model: Path, table: Path, out: Path) -> tuple[float, float]:
    """Return how long the command takes from opening the table on, and its peak memory in MB."""
    program = (
        "import sys\nfrom guardband.cli import main\n"
        "try: main()\n"
        "finally: print(next(line for line in open('/proc/self/status') if 'VmHWM' in line), file=sys.stderr)"
    )
    arguments = ["predict", str(model), str(table), "-o", str(out), "--json", "--quiet", "--device", "cpu"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    out.unlink()
    return json.loads(done.stdout)["seconds"], float(done.stderr.split()[-2]) / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--presets", nargs="+", default=["fast", "default"])
    asked = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, torch {torch.__version__} on {torch.get_num_threads()} threads, {asked.rows:,} rows"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables, few = write_tables(folder, asked.rows), write_tables(folder, asked.rows // 10)
        for preset in asked.presets:
            model, path = fit(folder, preset)
            bare = float("inf")
            seconds, memory = dict.fromkeys(tables, float("inf")), dict.fromkeys(tables, 0.0)
            for _ in range(asked.turns):
                bare = min(bare, forward_seconds(model, asked.rows))
                for kind, table in tables.items():
                    took, peak = command_seconds(path, table, folder / f"out.{kind}")
                    seconds[kind], memory[kind] = min(seconds[kind], took), max(memory[kind], peak)
            print(f"{preset}: bare forward pass {bare:.2f} s")
            for kind in tables:
                _, small = command_seconds(path, few[kind], folder / f"out.{kind}")
                print(
                    f"  {kind}: predict {seconds[kind]:.2f} s, {bare / seconds[kind]:.2f} of its throughput; peak "
                    f"memory {memory[kind]:,.0f} MB, {small:,.0f} MB with a tenth of the rows",
                    flush=True,
                )


if __name__ == "__main__":
    main()
