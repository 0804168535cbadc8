"""One of guardband's presets on one split, as ``peers.py`` does it for the others.

python ours.py PRESET FOLDER DEVICE [independent]

With ``independent``, rows that repeat others count as independent, as they do for the other methods.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from guardband import IntervalRegressor


def main() -> None:
    """Run the preset that the command line names."""
    preset, folder, device, *independent = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    d1, d2, d3 = (pd.read_parquet(folder / f"{part}.parquet") for part in ("d1", "d2", "d3"))
    given = {"split_by": []} if independent else {}
    started = time.perf_counter()
    model = IntervalRegressor(preset=preset, calibration_size=None, device=device, random_state=0, **given)
    model.fit(d1.iloc[:, :-1], d1.iloc[:, -1]).calibrate(d2.iloc[:, :-1], d2.iloc[:, -1])
    fitted = time.perf_counter()
    bands = model.predict_interval(d3.iloc[:, :-1])
    seconds = np.array([fitted - started, time.perf_counter() - fitted])
    np.savez(folder / "bands.npz", lower=bands.lower, point=bands.point, upper=bands.upper, seconds=seconds)


if __name__ == "__main__":
    main()
