"""What networks cover by cross-validation: stopped within their training folds, and stopped on the fold left out.

Many small tables are drawn from one source. For each, the networks of ``calibration="cv+"`` stop early on rows of their
training folds. Beside them stand networks that stop early on the fold which they leave out and which then calibrates
them: their scores are too small. And a model that holds out a quarter of the rows. With ``noise`` there is nothing to
learn from the columns, and networks go on for 100 epochs with large steps: then it matters most where they stop.

python benchmarks/cross/networks.py [tables] [rows] [noise]
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import guardband as gb
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import CrossConformal
from guardband.calibration.score import Scaled
from guardband.data.table import read_table
from guardband.learning.learned import Learned

Array = NDArray[np.float64]
FOLDS, NEW, LEVEL = 8, 500, 0.9
NETWORK = {"hidden": (64, 64), "max_epochs": 60, "split_by": [], "verbose": False}
RESTLESS = NETWORK | {"max_epochs": 100, "patience": 100, "learning_rate": 0.03}


def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return rows of ten columns, of which three matter, with errors that are larger for some."""
    x = rng.standard_normal((n, 10))
    return x, x[:, 0] + np.sin(2 * x[:, 1]) + np.exp(0.5 * x[:, 2]) * rng.standard_normal(n)


def draw_noise(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return rows of twenty columns that say nothing of the target."""
    return rng.standard_normal((n, 20)), rng.standard_normal(n)


def unclean(x: Array, y: Array, new: Array, seed: int, network: dict[str, Any]) -> Intervals:
    """Return intervals by cv+ of copies that each stopped early on the fold that they leave out."""
    model = gb.IntervalRegressor("conf-nn", calibration_size=None, random_state=seed, **network).fit(x, y)
    learned = model.fitted_.learned
    assert isinstance(learned, Learned)
    assert learned.left_out is not None
    encoded = learned.encoder.encode(read_table(x))
    predicted, seen = learned.predict_left_out(encoded)
    rule = CrossConformal("conf-nn", Levels.of(LEVEL), Scaled(), "cv+", FOLDS)
    found = Calibrated.from_blocks(rule, [(predicted, y[seen], Context(fold=learned.left_out[seen]))])
    copies = learned.predict(read_table(new), each_copy=True).map(lambda part: part.transpose(1, 0, 2))
    return found.intervals(found.ends(copies, Context()))


def main() -> None:
    """Print coverage, width and interval score of each way, with standard errors over tables."""
    is_noise = sys.argv[-1] == "noise"
    given = sys.argv[1:-1] if is_noise else sys.argv[1:]
    tables, n = (int(own) for own in (*given, *("200", "200")[len(given) :]))
    source, network = (draw_noise, RESTLESS) if is_noise else (draw, NETWORK)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found: dict[str, list[tuple[float, float, float]]] = {}
    for table in range(tables):
        rng = np.random.default_rng(table)
        (x, y), (new, true) = source(rng, n), source(rng, NEW)
        ways = {"cv+, stopped on the fold left out": unclean(x, y, new, table, network)}
        for kind in ("split", "cv+", "cv-minmax"):
            model = gb.IntervalRegressor("conf-nn", calibration=kind, random_state=table, **network).fit(x, y)
            ways[kind] = model.predict_interval(new)
        for name, bands in ways.items():
            inside = (bands.lower <= true) & (true <= bands.upper)
            score = gb.metrics.interval_score(true, bands)
            found.setdefault(name, []).append((inside.mean(), (bands.upper - bands.lower).mean(), score))
        if (table + 1) % 20 == 0:
            print(f"{table + 1} of {tables}", file=sys.stderr, flush=True)
    print(f"{tables} tables of {n:,} rows, {NEW:,} new rows each, level {LEVEL}")
    for name, own in found.items():
        mean, error = np.mean(own, axis=0), np.std(own, axis=0, ddof=1) / np.sqrt(tables)
        words = [
            f"{what} {m:.4f} ± {e:.4f}" for what, m, e in zip(("coverage", "width", "score"), mean, error, strict=True)
        ]
        spread = np.std([one[0] for one in own], ddof=1)
        print(f"{name:36} {', '.join(words)}; coverage varies by {spread:.4f} from table to table")


if __name__ == "__main__":
    main()
