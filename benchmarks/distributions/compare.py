"""guardband's distributions beside those of boosted trees and forests: CRPS on the same splits, calibrated likewise.

python benchmarks/distributions/compare.py -o FOLDER --quantiles FOLDER [--tables bike house] [--splits 3]
    [--methods guardband catboost]

Needs `GUARDBAND_DATA`, and in --quantiles what grow.py wrote. Every peer's 99 quantiles are calibrated by
`gb.DistributionCalibrator` on the calibration rows that guardband's network has too. One function scores them all, from
99 quantiles. results.csv gets a row per table, method and split; figures.py makes the page of it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from figures import SIGNIFICANCE, report
from grow import TABLES, path_of
from scipy.stats import ks_2samp
from scores import LEVELS, crps_of_quantiles

import guardband as gb

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from tables import split, table

METHODS = ("guardband", "catboost", "ngboost-normal", "ngboost-lognormal", "quantile-forest")
COLUMNS = ("table", "method", "split", "n_test", "n_calibration", "crps", "raw_crps", "exact_crps")
COLUMNS += ("pit_inside", "pit_distance", "pit_p", "seconds", "chosen")

Row = dict[str, Any]


def main() -> None:
    """Run all cells that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--quantiles", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=3)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "results.csv"
    for cell in [(n, m, r) for r in range(asked.splits) for n in asked.tables for m in asked.methods]:
        known = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(COLUMNS))
        if cell in set(zip(known["table"], known["method"], known["split"], strict=True)):
            continue
        row = _ours(cell[0], cell[2]) if cell[1] == "guardband" else _peer(*cell, asked.quantiles)
        if row is not None:
            _append(path, dict(zip(("table", "method", "split"), cell, strict=True)) | row)
    report(asked.output)


def _ours(name: str, repetition: int) -> Row:
    """Return the scores of guardband's network on one split."""
    x, y = table(name)
    d1, d2, d3 = split(len(y), repetition)
    started = time.perf_counter()
    model = gb.IntervalRegressor(distribution=True, calibration_size=None, random_state=repetition)
    model.fit(x.iloc[d1], y[d1]).calibrate(x.iloc[d2], y[d2])
    seconds = time.perf_counter() - started
    return _scores(model.predict_distribution(x.iloc[d3]), y[d3], len(d2)) | {"seconds": seconds}


def _peer(name: str, method: str, repetition: int, folder: Path) -> Row | None:
    """Return the scores of a peer's quantiles on one split, before and after calibration; None if it has none."""
    path = path_of(folder, name, method, repetition)
    if not path.exists():
        return None
    found = np.load(path)
    _, y = table(name)
    _, d2, d3 = split(len(y), repetition)
    rule = gb.DistributionCalibrator(levels=LEVELS).fit(found["calibration"], y[d2])
    row = _scores(rule.transform(found["test"]), y[d3], len(d2))
    raw = crps_of_quantiles(y[d3], found["test"]).mean()
    return row | {"raw_crps": raw, "seconds": float(found["seconds"]), "chosen": str(found["chosen"])}


def _scores(rows: gb.Distribution, y: np.ndarray, n_calibration: int) -> Row:
    """Return the scores of calibrated distributions on test rows."""
    quantiles = rows.quantile(LEVELS)
    return {
        "n_test": len(y),
        "n_calibration": n_calibration,
        "crps": crps_of_quantiles(y, quantiles).mean(),
        "exact_crps": rows.crps(y).mean(),
    } | _pit(rows, y, n_calibration)


def _pit(rows: gb.Distribution, y: np.ndarray, n_calibration: int) -> Row:
    """Return whether the PIT values of test rows lie inside their band, how far from uniform they are, and its p-value.

    Beside the band, which looks at 19 levels, all levels are compared: a value counts the calibration rows below it. If
    all rows are exchangeable, its law is that of two samples of one distribution (Kolmogorov and Smirnov).
    """
    below = np.rint(rows.cdf(y) * (n_calibration + 1))
    found = ks_2samp(np.arange(1, n_calibration + 1), below + 0.5)
    inside = gb.metrics.pit_band(len(y), n_calibration, delta=SIGNIFICANCE).contains(gb.metrics.pit(y, rows))
    return {"pit_inside": inside, "pit_distance": found.statistic, "pit_p": found.pvalue}


def _append(path: Path, row: Row) -> None:
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)
    print(*(row.get(c) for c in ("table", "method", "split", "crps", "seconds")), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    main()
