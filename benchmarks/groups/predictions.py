"""Predictions that all promises are compared on: one network for each table and split, asked once and kept.

python benchmarks/groups/predictions.py -o FOLDER [--tables bike house] [--splits 10] [--preset fast]

A file that is there already is not made again. Training rows have predictions of copies that did not train on them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import guardband as gb
from guardband.bands.predicted import Predicted
from guardband.data.artificial import PaperModel

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from tables import split, table

TABLES = ("bike", "house", "artificial", "concrete", "traffic")
PARTS = ("training", "calibration", "test")
ARTIFICIAL_ROWS = (9_000, 3_000, 12_000)

Array = np.ndarray


@dataclass(frozen=True)
class Part:
    """Rows with their columns, true values, and what the network predicts for them."""

    x: pd.DataFrame
    y: Array
    lower: Array
    point: Array
    upper: Array

    @property
    def bands(self) -> tuple[Array, Array, Array]:
        """Lower bound, prediction and upper bound."""
        return self.lower, self.point, self.upper


def rows_of(name: str, repetition: int) -> list[tuple[pd.DataFrame, Array]]:
    """Return training, calibration and test rows of a table, split at random by the repetition."""
    if name == "artificial":
        x, y = PaperModel().draw(sum(ARTIFICIAL_ROWS), seed=repetition)
        frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(x.shape[1])])
        parts = np.split(np.arange(len(y)), np.cumsum(ARTIFICIAL_ROWS)[:-1])
    else:
        frame, y = table(name)
        parts = list(split(len(y), repetition))
    return [(frame.iloc[rows].reset_index(drop=True), y[rows]) for rows in parts]


def predicted(folder: Path, name: str, repetition: int, preset: str = "fast") -> dict[str, Part]:
    """Return all rows with predictions, from a file if they were made before."""
    path, rows = folder / f"{name}-{repetition}.npz", rows_of(name, repetition)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, **_train(rows, repetition, preset))
    found = np.load(path)
    return {
        part: Part(x.iloc[found["seen"]] if part == "training" else x, found[f"{part}_y"], *found[f"{part}_bands"])
        for part, (x, _) in zip(PARTS, rows, strict=True)
    }


def _train(rows: list[tuple[pd.DataFrame, Array]], repetition: int, preset: str) -> dict[str, Array]:
    started, (x, y) = time.perf_counter(), rows[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that may depend on each other: all promises have the same rows
        model = gb.IntervalRegressor(preset=preset, calibration_size=None, random_state=repetition, device="cpu")
        model.fit(x, y)
    learned = model.fitted_.learned
    apart, seen = learned.predict_left_out(learned.encoder.encode(model.read_rows(x)))
    out = {"seen": seen, "training_y": y[seen], "training_bands": _bands(apart)}
    for part, (own, true) in zip(PARTS[1:], rows[1:], strict=True):
        out |= {f"{part}_y": true, f"{part}_bands": _bands(model.fitted_.predict(model.read_rows(own)))}
    return out | {"seconds": np.array(time.perf_counter() - started)}


def _bands(found: Predicted) -> Array:
    return np.stack([part.reshape(-1) for part in found.parts])


def main() -> None:
    """Make all predictions that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--preset", default="fast")
    asked = parser.parse_args()
    for repetition in range(asked.splits):
        for name in asked.tables:
            started = time.perf_counter()
            predicted(asked.output, name, repetition, asked.preset)
            print(f"{name} {repetition}: {time.perf_counter() - started:.1f} s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
