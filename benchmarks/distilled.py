"""One small network in place of all copies, ``distill=True``: interval score, time, size of files and ONNX graphs.

python benchmarks/distilled.py -o FOLDER [--preset best] [--tables bike house concrete] [--repetitions 3]

Both models have the same training and calibration rows. Times are seconds of processors on one thread. A run that was
stopped goes on where it stopped. FOLDER/distilled.csv has a line for each fit, FOLDER/README.md the means.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import guardband as gb

sys.path.insert(0, str(Path(__file__).parent / "sharpness"))
from tables import NAMES, split, table

ROWS = 20_000
"""So many rows are predicted to measure the time; those of the test set are repeated."""


def main() -> None:
    """Run what is not done yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--preset", default="best")
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=["bike", "house", "concrete"])
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "distilled.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {(row["table"], row["repetition"], row["preset"], row["distill"]) for row in rows}
    for repetition in range(asked.repetitions):
        for name in asked.tables:
            for distill in (False, True):
                if (name, repetition, asked.preset, distill) in done:
                    continue
                figures = measured(name, repetition, asked.preset, distill, asked.output)
                rows.append(
                    {"table": name, "repetition": repetition, "preset": asked.preset, "distill": distill} | figures
                )
                print(rows[-1], flush=True)
                pd.DataFrame(rows).to_csv(path, index=False)
    (asked.output / "README.md").write_text(text(pd.DataFrame(rows)))


def measured(name: str, repetition: int, preset: str, distill: bool, folder: Path) -> dict[str, float]:
    """Return the figures of one fit."""
    X, y = table(name)
    train, calibrate, test = split(len(y), repetition)
    model = gb.IntervalRegressor(
        preset=preset, distill=distill, calibration_size=None, split_by=[], verbose=False, random_state=0
    )
    started = time.process_time()
    model.fit(X.iloc[train], y[train]).calibrate(X.iloc[calibrate], y[calibrate])
    fitted = time.process_time() - started
    bands, many = model.predict_interval(X.iloc[test]), X.iloc[np.resize(test, ROWS)]
    seconds = []
    for _ in range(3):
        started = time.process_time()
        model.predict_interval(many)
        seconds.append(time.process_time() - started)
    saved, graph = folder / "model.guardband", folder / "model.onnx"
    model.save(saved)
    gb.export_onnx(model, X.iloc[test[:2]], graph)
    sizes = {"file": saved.stat().st_size, "graph": graph.stat().st_size}
    for one in (saved, graph):
        one.unlink()
    return {
        "score": gb.metrics.interval_score(y[test], bands),
        "width": gb.metrics.mean_length(y[test], bands),
        "coverage": gb.metrics.coverage(y[test], bands),
        "fit": fitted,
        "predict": min(seconds),
        **sizes,
    }


def text(rows: pd.DataFrame) -> str:
    """Return the means as a page."""
    keys = ["preset", "table", "repetition"]
    whole, small = (rows[rows["distill"] == own].drop(columns="distill").set_index(keys) for own in (False, True))
    ratio = (small / whole).dropna()
    lines = [
        "# One small network in place of all copies",
        "",
        "`python benchmarks/distilled.py`. Each figure is that of `distill=True` divided by that of all copies, on the",
        "same rows. Behind ± stands the standard error over splits. `fit` and",
        f"`predict` ({ROWS:,} rows) are seconds of processors.",
        "",
        "| preset | table | interval score | width | fit | predict | model file | ONNX graph |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (preset, name), own in ratio.groupby(["preset", "table"]):
        error = own["score"].sem() if len(own) > 1 else float("nan")
        cells = [f"{own['score'].mean():.4f} ± {error:.4f}"]
        cells += [f"{own[column].mean():.3g}" for column in ("width", "fit", "predict", "file", "graph")]
        lines.append(f"| {preset} | {name} | {' | '.join(cells)} |")
    means = np.exp(np.log(ratio[["score", "predict"]].astype(float)).groupby("preset").mean())
    lines += [
        "",
        *(f"Geometric mean of {p}: score {m.score:.4f}, predict {m.predict:.3g}." for p, m in means.iterrows()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
