"""guardband's cv+ beside its split, and beside MAPIE over boosted trees, on tables of 200 to 1,000 rows.

python benchmarks/cross/small_tables.py -o FOLDER --files FOLDER [--peers PYTHON] [--methods guardband-cv+ mapie]
    [--repetitions 20]

--files is what write_tables.py wrote; concrete comes from `GUARDBAND_DATA`, and so many of its rows as its name says.
Seven tenths of a table's rows are given to a method, chosen at random in each repetition; all others are test rows.
results.csv gets a row per table, method and repetition. What is there already is not run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from cells import OURS, SEED, Row, append, done, judged, ours

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from tables import any_table, table

SHARE = 0.7
SUBSAMPLES = {"concrete-200": 200, "concrete-500": 500, "concrete-1000": 1_000}
MAPIE = ("mapie-cv+", "mapie-split")
HERE = Path(__file__).parent

Part = tuple[pd.DataFrame, np.ndarray]


def main() -> None:
    """Run all cells that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--peers", help="the python of an environment with mapie, lightgbm and catboost")
    parser.add_argument("--methods", nargs="+", choices=[*OURS, "mapie"], default=[*OURS, "mapie"])
    parser.add_argument("--repetitions", type=int, default=20)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "results.csv"
    names = [*SUBSAMPLES, *sorted(p.stem for p in asked.files.glob("*.parquet"))]
    for repetition in range(asked.repetitions):
        for name in names:
            x, y, n_train = _table(name, asked.files)
            order = np.random.default_rng([SEED, repetition]).permutation(len(y))
            train, test = order[:n_train], order[n_train:]
            for method in asked.methods:
                key = (name, n_train, MAPIE[0] if method == "mapie" else method, repetition)
                if key in done(path):
                    continue
                same = {"table": name, "rows": n_train, "repetition": repetition}
                parts = [(x.iloc[rows], y[rows]) for rows in (train, test)]
                append(path, [same | row for row in _rows(method, asked.peers, *parts)])


def _table(name: str, files: Path) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Return columns, response, and how many rows train."""
    if name in SUBSAMPLES:
        x, y = table("concrete")
        return x, y, round(SHARE * SUBSAMPLES[name])
    path = files / f"{name}.parquet"
    x, y = any_table(path, pd.read_parquet(path).columns[-1])
    return x, y, round(SHARE * len(y))


def _rows(method: str, peers: str | None, train: Part, test: Part) -> list[Row]:
    """Return what is measured of one method, or of MAPIE's two, on one split."""
    (x, y), (x3, y3) = train, test
    if method in OURS:
        bands, seconds = ours(method, x, y, x3)
        return [{"method": method, "seconds": seconds} | judged(bands, y3)]
    if peers is None:
        raise SystemExit("MAPIE needs --peers, the python of an environment that has it.")
    with tempfile.TemporaryDirectory() as folder:
        for part, (columns, response) in {"train": train, "test": test}.items():
            frame = columns.assign(**{"the response": response})
            frame.to_parquet(Path(folder) / f"{part}.parquet", index=False)
        subprocess.run([peers, str(HERE / "boosted_trees.py"), folder], check=True)
        found = np.load(Path(folder) / "bands.npz")
        return [
            {"method": name, "seconds": float(found[f"{name} seconds"]), "chosen": str(found["chosen"])}
            | judged(found[name], y3)
            for name in MAPIE
        ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
