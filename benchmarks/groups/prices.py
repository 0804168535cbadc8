"""What each promise costs in width, on the same predictions of four tables.

python benchmarks/groups/prices.py -o FOLDER --predictions FOLDER [--splits 10]

Writes prices.json: for each table and promise the mean width relative to one promise for all rows, on average over
splits, and its standard error. One bound has no width: its distance from the prediction is compared with that of the
same bound of both. Needs GUARDBAND_DATA.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from promises import LEVEL, Parts, found, groups_of, intervals

import guardband as gb
from predictions import Array, predicted

TABLES = ("bike", "house", "concrete", "traffic")
GROUPS = {"bike": "workingday", "house": "grade", "concrete": None, "traffic": "hour"}
"""The column whose values have a promise each. For concrete it is whether the age is at most 28 days."""


def main() -> None:
    """Measure all prices."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    asked = parser.parse_args()
    out: dict[str, Any] = {"level": LEVEL, "splits": asked.splits, "groups": GROUPS, "rows": {}, "prices": {}}
    for name in TABLES:
        kept: dict[str, list[float]] = {}
        for repetition in range(asked.splits):
            parts = predicted(asked.predictions, name, repetition)
            out["rows"][name] = len(parts["calibration"].y)
            for promise, ratio in _prices(name, parts):
                kept.setdefault(promise, []).append(ratio)
        out["prices"][name] = {
            promise: {
                "mean": round(float(np.mean(ratios)), 4),
                "error": round(float(np.std(ratios, ddof=1) / np.sqrt(len(ratios))), 4),
            }
            for promise, ratios in kept.items()
        }
        print(name, out["prices"][name], flush=True)
    (asked.output / "prices.json").write_text(json.dumps(out, indent=1) + "\n")


def _prices(name: str, parts: Parts) -> Iterator[tuple[str, float]]:
    one = intervals("conf-nn", parts)
    for promise, labels in (("each group", _labels(name, parts)), ("auto", found("conf-nn", parts)[0])):
        for guarantee in ("marginal", "pac"):
            bands = intervals("conf-nn", parts, labels, guarantee)
            finite = np.isfinite(bands.width)
            yield f"{promise}, {guarantee}", float(bands.width[finite].mean() / one.width[finite].mean())
    yield "pac", float(intervals("conf-nn", parts, guarantee="pac").width.mean() / one.width.mean())
    upper = _one_rule(parts, side="upper", confidence_level=LEVEL)
    yield "upper", float((upper.upper - upper.point).mean() / (one.upper - one.point).mean())
    yield "tails", float(_one_rule(parts, tails=(0.05, 0.05)).width.mean() / one.width.mean())
    yield "weights", _weighted(parts, one)


def _labels(name: str, parts: Parts) -> Any:
    column = GROUPS[name]
    (labels,) = [own for own in groups_of(name, parts) if column in (None, own.name)]
    if column is not None:
        return labels
    early = [
        (own.iloc[:, [0]].astype(float) <= 28).astype(str) for own in (labels.training, labels.calibration, labels.test)
    ]
    return type(labels)("age", *early)


def _one_rule(parts: Parts, **promise: Any) -> gb.Intervals:
    rule = gb.BandCalibrator("conf-nn", **promise).fit(*parts["calibration"].bands, parts["calibration"].y)
    return rule.transform(*parts["test"].bands)


def _weighted(parts: Parts, one: gb.Intervals) -> float:
    """Return the price for a population in which rows with large predictions are up to three times as frequent."""
    low, high = np.quantile(parts["training"].point, [0.05, 0.95])

    def weight(point: Array) -> Array:
        return 1 + 2 * np.clip((point - low) / (high - low), 0, 1)

    own, new = (weight(parts[part].point) for part in ("calibration", "test"))
    rule = gb.BandCalibrator("conf-nn", confidence_level=LEVEL)
    rule.fit(*parts["calibration"].bands, parts["calibration"].y, weights=own)
    bands = rule.transform(*parts["test"].bands, weights=new)
    return float(np.average(bands.width, weights=new) / np.average(one.width, weights=new))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
