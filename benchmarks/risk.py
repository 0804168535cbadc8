"""A risk on real tables: the mean loss of new rows, and what it costs in width, over many divisions of one table.

python benchmarks/risk.py [--divisions 300] [--rows]

Boosted trees predict three quantiles, trained once on half of the rows (6,000 of bike). The others are divided at
random into calibration rows and new rows. Every division is as likely as any other, so the mean loss over divisions is
at most the limit, but for chance. ``--rows`` measures the time of calibration and audit by number of rows instead.
Needs ``GUARDBAND_DATA``.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import guardband as gb

LEAVE_OUT = ["instant", "dteday", "casual", "registered", "cnt"]


def tables() -> dict[str, tuple[np.ndarray, np.ndarray, int, gb.Risk]]:
    """Return inputs, target, training rows and risk of each table."""
    folder = Path(os.environ["GUARDBAND_DATA"])
    concrete = pd.read_csv(folder / "concrete" / "Concrete_Data.csv").to_numpy(float)
    bike = pd.read_csv(folder / "bike" / "hour.csv")
    return {
        "concrete": (concrete[:, :-1], concrete[:, -1], len(concrete) // 2, gb.Risk(0.5, 20)),
        "bike": (bike.drop(columns=LEAVE_OUT).to_numpy(float), bike["cnt"].to_numpy(float), 6000, gb.Risk(3, 200)),
    }


def measure(name: str, divisions: int) -> None:
    """Print mean loss, width and coverage of each promise."""
    X, y, n1, risk = tables()[name]
    order = np.random.default_rng(0).permutation(len(y))
    first, rest = order[:n1], order[n1:]
    trees = [HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0) for q in (0.05, 0.5, 0.95)]
    bands = np.sort([tree.fit(X[first], y[first]).predict(X[rest]) for tree in trees], axis=0)
    n, truth = len(rest) // 2, y[rest]
    low = risk.limit - 2 * risk.cap / (n + 1)
    print(f"{name}: {n} calibration rows, limit {risk.limit:g}, cap {risk.cap:g}, expected {low:.3f} to {risk.limit:g}")
    for asked in ({"risk": risk}, {"risk": risk, "guarantee": "pac"}, {"confidence_level": 0.9}):
        found = []
        for i in range(divisions):
            rows = np.random.default_rng([i, 0]).permutation(len(rest))
            known, new = rows[:n], rows[n:]
            own = gb.BandCalibrator("conf-nn", **asked).fit(*bands[:, known], truth[known]).transform(*bands[:, new])
            losses = risk.losses(truth[new], own.lower, own.upper)
            found.append((losses.mean(), own.width.mean(), own.contains(truth[new]).mean()))
        loss, width, inside = np.mean(found, axis=0)
        above = np.mean([own[0] > risk.limit for own in found])
        error = np.std([own[0] for own in found]) / divisions**0.5
        print(f"  {asked}: loss {loss:.4f} ({error:.4f}), above {above:.0%}, width {width:.2f}, inside {inside:.2%}")


def measure_time() -> None:
    """Print how long calibration and audit take."""
    for n in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        point = rng.standard_normal(2 * n)
        y, half = point + rng.standard_normal(2 * n), slice(0, n)
        for asked in ({"risk": gb.Risk(0.05, 3)}, {"confidence_level": 0.9}):
            start = time.process_time()
            rule = gb.BandCalibrator(**asked).fit(point[half] - 1, point[half], point[half] + 1, y[half])
            calibrated = time.process_time()
            if n < 1_000_000:
                rule.audit(point[n:] - 1, point[n:], point[n:] + 1, y[n:])
            print(n, asked, f"{calibrated - start:.2f} s, audit {time.process_time() - calibrated:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--divisions", type=int, default=300)
    parser.add_argument("--rows", action="store_true")
    given = parser.parse_args()
    if given.rows:
        measure_time()
    else:
        for name in ("concrete", "bike"):
            measure(name, given.divisions)
