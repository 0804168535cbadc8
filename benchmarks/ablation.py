"""What each ingredient of the network for tables brings: the interval score without it, relative to that with it.

python benchmarks/ablation.py -o FOLDER [--tables bike house concrete] [--repetitions 3]

Splits are others than those of benchmarks/sharpness. A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd

import guardband as gb
from guardband.data.codes import NumberCode, RobustCode
from guardband.learning import options, presets
from guardband.nn import tabular

sys.path.insert(0, str(Path(__file__).parent / "sharpness"))
from tables import NAMES, split, table

FIRST_SPLIT = 100
Patch = Callable[[], Any]


def changed(every: dict[str, presets.Preset], **given: Any) -> Any:
    """Return what changes the default among presets."""
    return patch.dict(every, default=replace(every["default"], **given))


def with_muon(**given: Any) -> Any:
    """Return what changes the default for tables that Muon learns."""
    return changed(presets.WITH_MUON, **given)


VARIANTS: dict[str, tuple[dict[str, Any], list[Patch]]] = {
    "all of it": ({}, []),
    "Adam in place of Muon": ({}, [lambda: with_muon(muon=0.0)]),
    "without Muon: Adam, 256 units, eight copies": (
        {},
        [lambda: patch.object(presets, "WITH_MUON", presets.WITH_ADAM)],
    ),
    "no embeddings of numbers": ({}, [lambda: patch.object(tabular, "MOST_WAVES", 0)]),
    "extreme numbers not compressed": ({}, [lambda: patch.object(RobustCode, "encode", NumberCode.encode)]),
    "scales of inputs not learnt faster": ({}, [lambda: patch.object(tabular, "FASTER", 0.0)]),
    "parameters not averaged": ({}, [lambda: patch.object(options, "AVERAGING", 0.0)]),
    "four copies": ({}, [lambda: with_muon(copies=4), lambda: changed(presets.FOR_FEW_ROWS, copies=4)]),
    "one layer": ({"hidden": (128,)}, []),
    "dropout 0.1": ({"dropout": 0.1}, []),
    "batches of 256 for all": ({"batch_size": 256}, []),
    "no early stopping, 100 epochs": ({"epochs": 100}, []),
    'network="plain"': ({"network": "plain"}, []),
}


def main() -> None:
    """Run what is not done yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=["bike", "house", "concrete"])
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "ablation.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {(row["table"], row["variant"], row["repetition"]) for row in rows}
    for repetition in range(asked.repetitions):
        for name in asked.tables:
            for variant in VARIANTS:
                if (name, variant, repetition) not in done:
                    rows.append(cell(name, variant, repetition))
                    pd.DataFrame(rows).to_csv(path, index=False)
    (asked.output / "ablation.md").write_text(text(pd.DataFrame(rows)))


def cell(name: str, variant: str, repetition: int) -> dict[str, Any]:
    """Return the interval score and the seconds of one variant on one split."""
    x, y = table(name)
    d1, d2, d3 = split(len(y), FIRST_SPLIT + repetition)
    given, patches = VARIANTS[variant]
    started = time.perf_counter()
    with all_of(patches):
        model = gb.IntervalRegressor(calibration_size=None, random_state=0, **given).fit(x.iloc[d1], y[d1])
        seconds = time.perf_counter() - started
        bands = model.calibrate(x.iloc[d2], y[d2]).predict_interval(x.iloc[d3])
    score = gb.metrics.interval_score(y[d3], bands)
    return {"table": name, "variant": variant, "repetition": repetition, "score": score, "seconds": seconds}


@contextmanager
def all_of(patches: list[Patch]) -> Iterator[None]:
    """Have all patches in place."""
    with ExitStack() as stack:
        for make in patches:
            stack.enter_context(make())
        yield


def text(rows: pd.DataFrame) -> str:
    """Return the scores relative to the whole, with standard errors over repetitions, as Markdown."""
    wide = rows.pivot_table(index=["table", "repetition"], columns="variant", values="score")
    relative = wide.div(wide["all of it"], axis=0)
    names = list(dict.fromkeys(rows["table"]))
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for variant in VARIANTS:
        each = [relative.loc[name, variant].dropna() for name in names]
        cells = [f"{own.mean():.3f} ± {own.sem():.3f}" if own.std() else "1" for own in each]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
