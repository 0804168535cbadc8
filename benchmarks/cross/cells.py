"""What comparisons of cv+ with a split share: guardband's methods, how intervals are judged, the file of results."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import guardband as gb

LEVEL = 0.9
SEED = 2023
OURS: dict[str, dict[str, Any]] = {
    "guardband-split": {},
    "guardband-cv+": {"calibration": "cv+", "folds": 8},
    "guardband-cv-minmax": {"calibration": "cv-minmax", "folds": 8},
}
COLUMNS = ("table", "rows", "method", "repetition", "n_test", "covered", "infinite", "coverage", "width", "score")
COLUMNS += ("seconds", "chosen")

Row = dict[str, Any]


def ours(method: str, x: pd.DataFrame, y: np.ndarray, x3: pd.DataFrame) -> tuple[np.ndarray, float]:
    """Return guardband's lower bounds, predictions and upper bounds, ``(3, n)``, and the seconds of the fit.

    Rows are drawn at random, so that equal rows are rows of their own (``split_by=[]``): concrete has some, and cv+
    would refuse them otherwise.
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gb.IntervalRegressor(confidence_level=LEVEL, split_by=[], random_state=0, **OURS[method]).fit(x, y)
        seconds = time.perf_counter() - started
        bands = model.predict_interval(x3)
    return np.stack([bands.lower, bands.point, bands.upper]), seconds


def judged(bands: np.ndarray, y: np.ndarray) -> Row:
    """Return coverage, mean width and mean interval score of intervals on test rows."""
    intervals = gb.Intervals(*bands, confidence_level=LEVEL)
    covered = int(((bands[0] <= y) & (y <= bands[2])).sum())
    return {
        "n_test": len(y),
        "covered": covered,
        "infinite": int(np.isinf(bands).any(axis=0).sum()),
        "coverage": covered / len(y),
        "width": gb.metrics.mean_length(y, intervals),
        "score": np.mean(gb.metrics.interval_score(y, intervals)),
    }


def done(path: Path) -> set[tuple[str, int, str, int]]:
    """Return the cells that a file holds already."""
    if not path.exists():
        return set()
    frame = pd.read_csv(path)
    return set(zip(frame["table"], frame["rows"], frame["method"], frame["repetition"], strict=True))


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a file, which gets its header if it is new."""
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        for row in rows:
            writer.writerow(row)
            print(*(row.get(c) for c in ("table", "rows", "method", "repetition", "score", "seconds")), flush=True)
