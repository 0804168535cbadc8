"""What a promise for each group changes: the worst group's coverage on test rows, width and interval score.

python benchmarks/groups/run.py -o FOLDER --predictions FOLDER [--tables bike house artificial] [--splits 10]
    [--peers PYTHON]

All promises, and MAPIE and crepes in the environment of ``--peers``, calibrate the same predictions on the same rows.
Writes TABLE.json; report.py makes the README of it. Needs GUARDBAND_DATA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from promises import LEVEL, METHODS, Labels, Parts, every_promise, found, groups_of, intervals

import guardband as gb
from guardband.metrics import worst_slab_counts
from predictions import Array, predicted
from report import report

TABLES = ("bike", "house", "artificial")
SEARCHED = ("one promise", 'groups="auto"')
"""The promises whose worst region is looked for."""


def main() -> None:
    """Judge all promises on all splits."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--peers", type=Path, help="a Python that has MAPIE and crepes")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    for name in asked.tables:
        kept: dict[str, dict[str, Any]] = {}
        about: dict[str, Any] = {"table": name, "splits": asked.splits, "level": LEVEL, "found": {}, "peers": []}
        for repetition in range(asked.splits):
            parts = predicted(asked.predictions, name, repetition)
            about |= {"rows": {part: len(own.y) for part, own in parts.items()}}
            groups = groups_of(name, parts)
            for method in METHODS:
                auto, names = found(method, parts)
                about["found"].setdefault(method, []).append(list(names))
                for promise, guarantee, labels in every_promise(groups, auto):
                    bands = intervals(method, parts, labels, guarantee)
                    own = kept.setdefault(f"guardband|{method}|{promise}|{guarantee}", _empty())
                    _judge(own, bands, parts, groups)
                    if promise in SEARCHED and guarantee == "marginal":
                        own.setdefault("regions", []).append(_region(bands, parts))
            if asked.peers:
                about["peers"] = _judge_peers(kept, asked.peers, parts, groups)
            print(name, repetition, flush=True)
        sizes = {own.name: _sizes(own) for own in groups[: max(1, len(groups) - 1)]}
        entries = about | {"calibration_rows": sizes, "promises": kept}
        (asked.output / f"{name}.json").write_text(json.dumps(entries, indent=1) + "\n")
    report(asked.output)


def _empty() -> dict[str, Any]:
    return {"coverage": [], "width": [], "score": [], "infinite": [], "groups": {}}


def _judge(out: dict[str, Any], bands: gb.Intervals, parts: Parts, groups: list[Labels]) -> None:
    """Add what the test rows of one split say."""
    y = parts["test"].y
    inside, finite = bands.contains(y), np.isfinite(bands.upper - bands.lower)
    own = gb.Intervals(bands.lower[finite], bands.point[finite], bands.upper[finite], LEVEL)
    out["coverage"].append(round(float(inside.mean()), 5))
    out["width"].append(float(f"{own.width.mean():.5g}"))
    out["score"].append(float(f"{gb.metrics.interval_score(y[finite], own):.5g}"))
    out["infinite"].append(round(1 - float(finite.mean()), 5))
    for labels in groups[: max(1, len(groups) - 1)]:
        counts = out["groups"].setdefault(labels.name, {})
        for value, rows in pd.Series(inside).groupby(labels.test.iloc[:, 0]):
            before = counts.get(str(value), [0, 0])
            counts[str(value)] = [before[0] + int(rows.sum()), before[1] + len(rows)]


def _region(bands: gb.Intervals, parts: Parts) -> list[int]:
    """Return how many rows of the worst region are covered, how many it holds, and how many calibration rows it has.

    It was found on a quarter of the test rows, among columns of numbers in units of their deviation, and counted on the
    others.
    """
    numbers = {part: own.x.select_dtypes("number").to_numpy(float) for part, own in parts.items()}
    spread = numbers["training"].std(axis=0)
    x = (numbers["test"] - numbers["training"].mean(axis=0)) / np.where(spread > 0, spread, 1)
    ((covered, n),) = worst_slab_counts(parts["test"].y, bands, x, mass=0.2)
    counted = len(x) - min(max(len(x) // 4, 1), 2000)
    return [int(covered), int(n), round(len(parts["calibration"].y) * n / counted)]


def _sizes(labels: Labels) -> dict[str, int]:
    return {str(value): int(n) for value, n in labels.calibration.iloc[:, 0].value_counts().items()}


def _judge_peers(kept: dict[str, dict[str, Any]], python: Path, parts: Parts, groups: list[Labels]) -> list[str]:
    given: dict[str, Array] = {}
    for part in ("calibration", "test"):
        given |= {f"{part}_y": parts[part].y, f"{part}_bands": np.stack(parts[part].bands)}
    for labels in groups:
        both = pd.concat([labels.calibration, labels.test]).agg("|".join, axis=1)
        codes = pd.factorize(both)[0]
        n = len(labels.calibration)
        given |= {f"calibration_bins|{labels.name}": codes[:n], f"test_bins|{labels.name}": codes[n:]}
        columns = pd.concat([labels.calibration, labels.test], ignore_index=True)
        given[f"members|{labels.name}"] = pd.get_dummies(columns).to_numpy(bool)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        np.savez(path, **given)
        subprocess.run([str(python), str(Path(__file__).with_name("peers.py")), str(path)], check=True)
        back = np.load(path.with_name("split-peers.npz"))
    for key in (key for key in back if key != "versions"):
        peer, method, name = key.split("|")
        promise = "one promise" if name == "one" else f"groups: {name}"
        lower, upper = np.minimum(*back[key]), np.maximum(*back[key])
        bands = gb.Intervals(lower, (lower + upper) / 2, upper, LEVEL)
        _judge(kept.setdefault(f"{peer}|{method}|{promise}|marginal", _empty()), bands, parts, groups)
    return [str(version) for version in back["versions"]]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
