"""From how many rows on a split is as good as cv+: both with 100 to 12,800 rows of large tables.

python benchmarks/cross/sizes.py -o FOLDER [--tables bike house] [--methods guardband-split guardband-cv+]
    [--repetitions 10] [--sizes 100 200 400]

Needs `GUARDBAND_DATA`. In each repetition a method gets the first so many rows of a random order, and 2,000 further
rows judge it; concrete has fewer. sizes.csv gets a row per table, size, method and repetition. What is there already is
not run again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from cells import OURS, SEED, append, done, judged, ours

sys.path.append(str(Path(__file__).parents[1] / "sharpness"))

from tables import NAMES, table

SIZES = (100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800)
TEST_ROWS = 2_000
FEWEST_TEST_ROWS = 200


def main() -> None:
    """Run all cells that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--methods", nargs="+", choices=list(OURS), default=["guardband-split", "guardband-cv+"])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--repetitions", type=int, default=10)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / "sizes.csv"
    for repetition in range(asked.repetitions):
        for size in asked.sizes:
            for name in asked.tables:
                x, y = table(name)
                order = np.random.default_rng([SEED + 1, repetition]).permutation(len(y))
                train, test = order[:size], order[-TEST_ROWS:] if len(y) > 2 * TEST_ROWS else order[size:]
                for method in asked.methods:
                    if len(test) < FEWEST_TEST_ROWS or (name, size, method, repetition) in done(path):
                        continue
                    bands, seconds = ours(method, x.iloc[train], y[train], x.iloc[test])
                    row = {"table": name, "rows": size, "method": method, "repetition": repetition, "seconds": seconds}
                    append(path, [row | judged(bands, y[test])])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
