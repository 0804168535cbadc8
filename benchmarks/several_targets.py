"""Several targets: one promise for all of them, compared with Bonferroni's correction and with one promise for each.

All three use the predictions of one network: boxes by the largest score ("joint"), a promise for each target at the
level 1 - alpha / q ("Bonferroni"), and one for each at 1 - alpha ("each"). The artificial targets have equal
correlations; the real ones are casual and registered riders of the bike table. Nothing is chosen on the test rows.

    python benchmarks/several_targets.py -o benchmarks/results/several_targets
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import guardband as gb
from guardband.experiments.sources import data_file

ALPHA = 0.1
COLUMNS = ("table", "seed", "way", "targets", "rows", "all_inside", "least_inside", "width", "score")


def artificial(correlation, targets, n, seed):
    """Return four columns, and targets whose errors have this correlation and depend on the second column."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 4))
    common, own = random.standard_normal((n, 1)), random.standard_normal((n, targets))
    errors = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    Y = X[:, :1] * np.arange(1, targets + 1) + np.exp(0.5 * X[:, 1:2]) * errors * 10.0 ** np.arange(targets)
    return pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=[f"y{j}" for j in range(targets)])


def bike():
    """Return columns that are known an hour ahead, and the numbers of casual and of registered riders."""
    frame = pd.read_csv(data_file("bike", None))
    X = frame[["holiday", "workingday", "temp", "atemp", "hum", "windspeed"]].astype(float)
    for column in ("season", "mnth", "hr", "weekday", "weathersit", "yr"):
        X[column] = "c" + frame[column].astype(str)
    return X, frame[["casual", "registered"]].astype(float)


def judged(name, X, Y, seed):
    """Yield how each way does on test rows; all calibrate the same network on the same rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, calibrate, test = np.split(order, [len(X) // 2, 3 * len(X) // 4])
    q = Y.shape[1]
    fitted = gb.IntervalRegressor(
        "conf-nn", targets="joint", calibration_size=None, preset="fast", random_state=seed, split_by=[], verbose=False
    ).fit(X.iloc[train], Y.iloc[train])
    scales, scale = fitted.fitted_.rule.scales, Y.iloc[train].std().to_numpy()
    truth = Y.iloc[test].to_numpy()

    def raw(rows):
        """Return lower bound, point and upper bound of the network, in the units of the targets."""
        predicted = fitted.fitted_.predict(fitted.read_rows(X.iloc[rows]))
        each = [[part[0, 0] for part in own.parts] for own in predicted.targets]
        return [np.stack(side, axis=1) for side in zip(*each, strict=True)]

    known, new = raw(calibrate), raw(test)
    for way, rule in {
        "joint": gb.BandCalibrator(targets="joint", scales=scales, alpha=ALPHA),
        "Bonferroni": gb.BandCalibrator(targets="each", alpha=ALPHA / q),
        "each": gb.BandCalibrator(targets="each", alpha=ALPHA),
    }.items():
        boxes = rule.fit(*known, Y.iloc[calibrate]).transform(*new)
        inside = (boxes.lower <= truth) & (truth <= boxes.upper)
        beyond = np.maximum(boxes.lower - truth, 0) + np.maximum(truth - boxes.upper, 0)
        level = ALPHA / q  # what Bonferroni allows each target: one score for all ways
        yield {
            "table": name,
            "seed": seed,
            "way": way,
            "targets": q,
            "rows": len(test),
            "all_inside": inside.all(axis=1).mean(),
            "least_inside": inside.mean(axis=0).min(),
            "width": float(np.exp(np.log(boxes.width / scale).mean())),
            "score": float(((boxes.width + 2 / level * beyond) / scale).mean()),
        }


def main():
    """Write a line for each table, seed and way, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=8000)
    asked = parser.parse_args()
    asked.o.mkdir(parents=True, exist_ok=True)
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(asked.seeds):
            for correlation in (0.0, 0.5, 0.9):
                for q in (2, 5):
                    name = f"artificial, {q} targets, correlation {correlation:g}"
                    lines += judged(name, *artificial(correlation, q, asked.rows, seed), seed)
            lines += judged("bike, casual and registered", *bike(), seed)
            with (asked.o / "runs.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)
    frame = pd.DataFrame(lines)
    means = frame.groupby(["table", "way"], sort=False)[["all_inside", "least_inside", "width", "score"]].mean()
    print(means.round(4).to_string())


if __name__ == "__main__":
    main()
