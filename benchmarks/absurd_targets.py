"""How much absurd targets among house prices change the intervals, and how often a heavy tail is taken for one.

python benchmarks/absurd_targets.py [--methods conf-nn,neg-ll] [--seeds 3] [--tails]

Reads house/kc_house_data.csv from the folder named in GUARDBAND_DATA. 3,000 rows fit, 4,000 others judge.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import guardband as gb
from guardband.data.absurd import absurd

ROWS, NEW_ROWS = 3000, 4000
SENTINELS = ROWS // 200
CASES: dict[str, tuple[float, str]] = {
    "clean": (0.0, "none"),
    "1e12": (1e12, "training"),
    "1e300": (1e300, "training"),
    "-1e12": (-1e12, "training"),
    "1e9": (1e9, "training"),
    "1e8": (1e8, "training"),
    "1e12, calibration": (1e12, "calibration"),
    "sentinels": (999_999_999.0, "anywhere"),
}
TAILS = {
    "lognormal, sigma 3": lambda random, n: np.exp(3 * random.standard_normal(n)),
    "Cauchy": lambda random, n: random.standard_cauchy(n),
    "Pareto, index 0.7": lambda random, n: random.pareto(0.7, n),
    "claims, 95% zeros": lambda random, n: (random.random(n) > 0.95) * np.exp(7 + 2 * random.standard_normal(n)),
}


def wrong_rows(where: str, seed: int) -> Any:
    """Return the rows that get an absurd target; the split of fit is the permutation of its seed."""
    order = np.random.RandomState(seed).permutation(ROWS)
    return {"none": order[:0], "training": order[-1:], "calibration": order[:1], "anywhere": order[::200]}[where]


def judge(method: str, case: str, seed: int) -> tuple[float, float, float]:
    """Return mean length, interval score and coverage of new rows with clean targets."""
    table = pd.read_csv(Path(os.environ["GUARDBAND_DATA"]) / "house" / "kc_house_data.csv")
    X, y = table.drop(columns=["id", "price", "date"]), table["price"].to_numpy(float)
    order = np.random.default_rng(seed).permutation(len(y))
    fit, new = order[:ROWS], order[ROWS : ROWS + NEW_ROWS]
    value, where = CASES[case]
    response = y[fit]
    response[wrong_rows(where, seed)] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.TargetWarning)
        model = gb.IntervalRegressor(method, preset="fast", random_state=seed).fit(X.iloc[fit], response)
    bands, truth = model.predict_interval(X.iloc[new]), y[new]
    covered = (bands.lower <= truth) & (truth <= bands.upper)
    return float((bands.upper - bands.lower).mean()), gb.metrics.interval_score(truth, bands), float(covered.mean())


def main() -> None:
    """Print a line for each method, case and seed: length and score relative to the clean table's, and coverage."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--methods", default="conf-nn")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--tails", action="store_true", help="only count heavy tails that are taken for absurd values")
    given = asked.parse_args()
    if given.tails:
        random = np.random.default_rng(0)
        for name, draw in TAILS.items():
            shares = {n: np.mean([absurd(draw(random, n)).any() for _ in range(2000)]) for n in (60, 200, 1000, 3000)}
            print(name, *(f"n = {n}: {share:.2%}" for n, share in shares.items()), sep="  ", flush=True)
        return
    for method in given.methods.split(","):
        for seed in range(given.seeds):
            clean = judge(method, "clean", seed)
            for case in CASES:
                length, score, coverage = judge(method, case, seed)
                ratios = f"length {length / clean[0]:.3f}  score {score / clean[1]:.3f}"
                print(f"{method}  seed {seed}  {case:18} {ratios}  coverage {coverage:.3f}", flush=True)


if __name__ == "__main__":
    main()
