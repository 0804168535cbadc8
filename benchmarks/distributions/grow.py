"""All peers on all splits, one process at a time: their quantiles, kept for ``compare.py`` to calibrate and to score.

python benchmarks/distributions/grow.py -o FOLDER --peers PYTHON [--tables bike concrete] [--splits 3]

PYTHON is that of an environment with catboost, ngboost and quantile-forest (benchmarks/sharpness/environments.sh makes
one). A file that is there already is not made again.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from trees import PEERS, table

TABLES = ("concrete", "bike", "house", "traffic")


def path_of(folder: Path, name: str, method: str, repetition: int) -> Path:
    """Return the file of a method's quantiles on one split."""
    return folder / f"{name}-{method}-{repetition}.npz"


def main() -> None:
    """Run all cells that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--splits", type=int, default=3)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    program = str(Path(__file__).parent / "trees.py")
    for repetition in range(asked.splits):
        for name in asked.tables:
            positive = table(name)[1].min() > 0
            for method in asked.methods:
                path = path_of(asked.output, name, method, repetition)
                if path.exists() or (method == "ngboost-lognormal" and not positive):
                    continue
                subprocess.run([asked.peers, program, method, name, str(repetition), str(path)], check=True)
                print(path.name, flush=True)


if __name__ == "__main__":
    main()
